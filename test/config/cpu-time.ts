/** Milliseconds of processor time that work takes, so that a busy machine makes no test slow. */
export function cpuMs(work: () => void): number {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
}
