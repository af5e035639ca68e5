/**
 * The logs of a gateway's records: `gateway` has a line a call, `session` what a model and its tools said to each
 * other, `audit` what administrators did and who was refused.
 */
export const RECORD_LOGS = ["gateway", "session", "audit"] as const;

/** One of them. */
export type RecordLog = (typeof RECORD_LOGS)[number];

/** Name of the file that is written now. */
export function recordFileName(log: RecordLog): string {
  return `${log}.jsonl`;
}

/** Name of a file that is written no more, closed at that time; `nth` tells apart what was closed in one millisecond. */
export function closedRecordName(log: RecordLog, atMs: number, nth: number): string {
  const time = new Date(atMs).toISOString().replaceAll(":", "-");
  return nth === 0 ? `${log}-${time}.jsonl` : `${log}-${time}-${nth}.jsonl`;
}

/** Of these names those of the log's closed files, oldest first. */
export function closedRecordNames(log: RecordLog, names: readonly string[]): readonly string[] {
  const pattern = /^-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z)(?:-(\d{1,6}))?\.jsonl$/;
  const found = names.flatMap((name) => {
    const parts = name.startsWith(log) ? pattern.exec(name.slice(log.length)) : null;
    return parts === null ? [] : [{ name, time: parts[1] ?? "", nth: Number(parts[2] ?? 0) }];
  });
  return found.toSorted((a, b) => a.time.localeCompare(b.time) || a.nth - b.nth).map(({ name }) => name);
}
