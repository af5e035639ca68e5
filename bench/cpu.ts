import { readdirSync, readFileSync } from "node:fs";

/**
 * CPU time of a process since its start, all threads that live, in microseconds; `undefined` where the system has no
 * `schedstat`. Source: Documentation/scheduler/sched-stats.rst of the Linux kernel.
 */
export function cpuMicros(pid: number): number | undefined {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const nanos = threads.map((thread) =>
      Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]),
    );
    return nanos.reduce((sum, value) => sum + value, 0) / 1000;
  } catch {
    // Another system, or the process is gone: there is no figure then.
    return undefined;
  }
}
