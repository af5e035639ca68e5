import { cpus } from "node:os";

/**
 * Makes a function that tells how many of the machine's cores, on average, had nothing to do since it was asked last; 0
 * the first time, and where the system does not tell.
 */
export function createIdleCores(): () => number {
  let before: Totals | undefined;
  return () => {
    const now = totals();
    const all = now.allMs - (before?.allMs ?? now.allMs);
    const idle = now.idleMs - (before?.idleMs ?? now.idleMs);
    before = now;
    return all > 0 ? (idle / all) * now.cores : 0;
  };
}

interface Totals {
  readonly cores: number;
  readonly allMs: number;
  readonly idleMs: number;
}

function totals(): Totals {
  let [allMs, idleMs] = [0, 0];
  const cores = cpus();
  for (const { times } of cores) {
    allMs += times.user + times.nice + times.sys + times.idle + times.irq;
    idleMs += times.idle;
  }
  return { cores: cores.length, allMs, idleMs };
}
