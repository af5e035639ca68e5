import { type LoadResult, median } from "./measure.ts";
import type { Subject, Suite } from "./subjects.ts";

/** Medians of a subject over all rounds. */
export interface Figures {
  readonly perSecond: number;
  readonly megabytesPerSecond: number;
  readonly p50: number | undefined;
  readonly p99: number | undefined;
  readonly cpuMicros: number | undefined;
}

/** Medians, figure by figure. */
export function summarize(results: readonly LoadResult[]): Figures {
  const known = (pick: (result: LoadResult) => number | undefined): number | undefined => {
    const values = results.map(pick).filter((value) => value !== undefined);
    return values.length === 0 ? undefined : median(values);
  };
  return {
    perSecond: median(results.map(({ count, seconds }) => count / seconds)),
    megabytesPerSecond: median(results.map(({ bytes, seconds }) => bytes / seconds / 1e6)),
    p50: known(({ p50 }) => p50),
    p99: known(({ p99 }) => p99),
    cpuMicros: known(({ cpuMicros }) => cpuMicros),
  };
}

/** A Markdown table of a suite: figures, then the ratio to each baseline. */
export function suiteTable(suite: Suite, figures: ReadonlyMap<string, Figures>): string {
  const columns: Column[] = [
    { title: "subject", cell: (subject) => subject.name },
    { title: suite.kind === "stream" ? "messages/s" : "calls/s", cell: (_, own) => own.perSecond.toFixed(0) },
    ...(suite.kind === "stream"
      ? [{ title: "MB/s", cell: (_: Subject, own: Figures) => own.megabytesPerSecond.toFixed(1) }]
      : [
          { title: "p50 ms", cell: (_: Subject, own: Figures) => fixed(own.p50, 3) },
          { title: "p99 ms", cell: (_: Subject, own: Figures) => fixed(own.p99, 3) },
        ]),
    { title: "CPU µs each", cell: (subject, own) => cpuCell(subject, own) },
    { title: "against", cell: (subject, own) => comparisons(suite, subject, own, figures).join("; ") },
  ];
  const rows = suite.subjects.flatMap((subject) => {
    const own = figures.get(subject.name);
    return own === undefined ? [] : [columns.map((column) => column.cell(subject, own))];
  });
  return markdown([columns.map(({ title }) => title), ...rows]);
}

interface Column {
  readonly title: string;
  cell(subject: Subject, own: Figures): string;
}

/** A direct call has no server of ours: its CPU is the caller's. */
function cpuCell(subject: Subject, own: Figures): string {
  return own.cpuMicros === undefined
    ? "–"
    : `${own.cpuMicros.toFixed(1)}${subject.client === "direct" ? " (caller)" : ""}`;
}

function comparisons(suite: Suite, subject: Subject, own: Figures, all: ReadonlyMap<string, Figures>): string[] {
  return subject.baselines.flatMap((name) => {
    const other = all.get(name);
    if (other === undefined) return [];
    const parts: string[] = [];
    if (suite.kind !== "first-delta") parts.push(`${(own.perSecond / other.perSecond).toFixed(2)}x rate`);
    if (own.cpuMicros !== undefined && other.cpuMicros !== undefined && name !== "direct undici") {
      parts.push(`${(own.cpuMicros / other.cpuMicros).toFixed(2)}x CPU`);
    }
    if (own.p50 !== undefined && other.p50 !== undefined && suite.inFlight === 1) {
      parts.push(`${own.p50 >= other.p50 ? "+" : "−"}${Math.abs(own.p50 - other.p50).toFixed(3)} ms p50`);
    }
    return [`${name}: ${parts.join(", ")}`];
  });
}

function fixed(value: number | undefined, digits: number): string {
  return value === undefined ? "–" : value.toFixed(digits);
}

function markdown(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => (row[i] ?? "").length)));
  const lines = rows.map((row) => `| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(" | ")} |`);
  lines.splice(1, 0, `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`);
  return lines.join("\n");
}

/** A figure that travels from machine to machine, with what it is to be. */
export interface Goal {
  readonly what: string;
  readonly measured: string;
  readonly goal: string;
}

/** Figures and their goals as a table of Markdown. */
export function goalsTable(goals: readonly Goal[]): string {
  const rows = goals.map(({ what, measured, goal }) => `| ${what} | ${measured} | ${goal} |`);
  return ["## Goals\n", "| what | measured | goal |", "| --- | --- | --- |", ...rows].join("\n");
}
