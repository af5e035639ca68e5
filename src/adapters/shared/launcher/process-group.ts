import { readdirSync, readFileSync } from "node:fs";

/** How often it is looked whether a group is empty: at first, and at most. */
const POLL_MS = { first: 4, most: 100 } as const;

/** After KILL: what is left then cannot be killed. */
const GIVE_UP_MS = 1_000;

/**
 * Signals every process of the group that a program leads; signal 0 only looks. Whether any is left that could be
 * signalled. Windows has no groups: there the program alone counts.
 */
export function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(process.platform === "win32" ? pid : -pid, signal);
  } catch {
    // ESRCH: nobody is left. EPERM: what is left are zombies (macOS) or belong to another user.
    return false;
  }
}

/**
 * Whether every process of the group is dead and only not reaped yet, which can take for ever where process 1 is no
 * init. Only Linux tells.
 */
function onlyZombies(group: number): boolean {
  if (process.platform !== "linux") return false;
  return readdirSync("/proc").every((name) => !/^\d/.test(name) || !livesIn(group, name));
}

function livesIn(group: number, pid: string): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // What stands before is the name, which may hold anything. Source: proc_pid_stat(5).
    const [state = "", , leader = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(leader) === group && state !== "Z" && state !== "X";
  } catch {
    // It is gone.
    return false;
  }
}

/** A group to be ended. */
export interface EndedGroup {
  /** Its leader. */
  readonly pid: number;
  /** From TERM to KILL. */
  readonly graceMs: number;
  /** Whether the leader has been reaped. */
  leaderGone(): boolean;
  /** Called once nothing of it runs any more, at the latest a second after KILL. */
  onEmpty(): void;
}

/** Ends a group: TERM, and KILL after the grace. */
export function endGroup({ pid, graceMs, leaderGone, onEmpty }: EndedGroup): void {
  const startedMs = performance.now();
  let killed = false;
  let pauseMs: number = POLL_MS.first;
  const look = (): void => {
    const passedMs = performance.now() - startedMs;
    if (!killed && passedMs >= graceMs) {
      killed = true;
      signalGroup(pid, "SIGKILL");
    }
    if (!signalGroup(pid, 0) || (leaderGone() && onlyZombies(pid)) || passedMs >= graceMs + GIVE_UP_MS) {
      onEmpty();
      return;
    }
    setTimeout(look, killed ? pauseMs : Math.min(pauseMs, Math.max(1, graceMs - passedMs)));
    pauseMs = Math.min(pauseMs * 2, POLL_MS.most);
  };
  if (graceMs > 0) signalGroup(pid, "SIGTERM");
  look();
}
