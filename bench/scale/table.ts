import type { Usage } from "./meter.ts";

/** Names of the columns: figures with no tools are the baseline of the same run. */
const COLUMNS = ["", "no tools", "many tools", "goal"] as const;

/** One figure of a run. */
export interface Figure {
  readonly name: string;
  readonly value: string;
}

/** Puts the figures of two runs side by side, as Markdown. */
export function table(
  without: readonly Figure[],
  many: readonly Figure[],
  goals: ReadonlyMap<string, string>,
): readonly string[] {
  const names = [...new Set([...without, ...many].map(({ name }) => name))];
  const cell = (figures: readonly Figure[], name: string): string =>
    figures.find((figure) => figure.name === name)?.value ?? "";
  const rows = names.map((name) => [name, cell(without, name), cell(many, name), goals.get(name) ?? ""]);
  const widths = COLUMNS.map((column, i) => Math.max(column.length, ...rows.map((row) => (row[i] ?? "").length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((text, i) => text.padEnd(widths[i] ?? 0)).join(" | ")} |`;
  return [line(COLUMNS), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)];
}

/** Time, CPU time and how long the loop was held up. */
export function loopFigures(what: string, { wallMs, cpuMs, longestDelayMs, longestTurnMs }: Usage): readonly Figure[] {
  return [
    { name: what, value: `${wallMs.toFixed(0)} ms, ${cpuMs.toFixed(0)} ms of CPU` },
    {
      name: `${what}: loop held up`,
      value: `late by ${longestDelayMs.toFixed(0)} ms, longest turn ${longestTurnMs.toFixed(0)} ms of CPU`,
    },
  ];
}
