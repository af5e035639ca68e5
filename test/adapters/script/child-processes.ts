import { readdirSync, readFileSync } from "node:fs";

/** Processes that another has started, but for those that are dead and not yet collected. */
export function childrenOf(pid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "latin1");
        const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        return Number(parent) === pid && state !== "Z";
      } catch {
        return false;
      }
    })
    .map(Number);
}
