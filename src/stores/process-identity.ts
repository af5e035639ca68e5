import { readFile, readlink } from "node:fs/promises";

/** Which process, of all that ever had its number. */
export interface ProcessIdentity {
  readonly pid: number;
  /**
   * The run of the machine, the space its numbers are of and the moment it began, as Linux tells them; empty where the
   * system does not say.
   */
  readonly since: string;
}

/** This process. */
export async function processIdentity(): Promise<ProcessIdentity> {
  return { pid: process.pid, since: await sinceOf(process.pid) };
}

/**
 * Whether a process of a machine of this name runs. `unknown`: its number means nothing here, or another process may
 * have got it since.
 */
export async function processState(
  { pid, since }: ProcessIdentity,
  own: ProcessIdentity,
): Promise<"alive" | "dead" | "unknown"> {
  if (since !== "" && own.since !== "") {
    if (spaceOf(since) !== spaceOf(own.since)) return "unknown";
    return (await sinceOf(pid)) === since ? "alive" : "dead";
  }
  return pid <= 0 || isRunning(pid) ? "unknown" : "dead";
}

/** `BOOT SPACE START`. Source: proc(5). */
async function sinceOf(pid: number): Promise<string> {
  try {
    const [boot, space, status] = await Promise.all([
      readFile("/proc/sys/kernel/random/boot_id", "utf8"),
      readlink("/proc/self/ns/pid"),
      readFile(`/proc/${pid}/stat`, "utf8"),
    ]);
    // The name before it may hold spaces and brackets; a zombie has ended, though its number is not free yet.
    const fields = status.slice(status.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? "" : `${boot.trim()} ${space} ${fields[19]}`;
  } catch {
    // No such process, or no such system.
    return "";
  }
}

function spaceOf(since: string): string {
  return since.split(" ").slice(0, 2).join(" ");
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Somebody else's process may not be signalled.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
