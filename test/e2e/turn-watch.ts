// Preloaded into a gateway (`--import`): measures the CPU time that its thread takes in each turn of the event loop, and on
// SIGUSR2 writes the most since the last time. CPU time, since a turn takes any wall time on a machine with other work.
import { LONGEST_TURN } from "./turn-marks.ts";

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

let startedMs = threadCpuMs();
let longestMs = 0;

function endTurn(): void {
  const endedMs = threadCpuMs();
  longestMs = Math.max(longestMs, endedMs - startedMs);
  startedMs = endedMs;
}

setInterval(endTurn, 1).unref();
process.on("SIGUSR2", () => {
  endTurn();
  process.stderr.write(`${LONGEST_TURN} ${longestMs.toFixed(1)}\n`);
  longestMs = 0;
});
