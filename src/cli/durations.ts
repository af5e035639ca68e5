/** Milliseconds as people read them: `850ms`, `1.5s`, `2m`, `1h30m`. */
export function durationWords(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${Math.round(ms / 100) / 10}s`;
  const seconds = Math.round(ms / 1000);
  const parts: [number, string][] = [
    [Math.floor(seconds / 3600), "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ];
  return parts.flatMap(([value, unit]) => (value === 0 ? [] : [`${value}${unit}`])).join("");
}
