import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { RecordLog } from "../../src/core/record-files.ts";

/** A line of a log, parsed. */
export type RecordLine = Readonly<Record<string, unknown>>;

/** The lines of a log's files, the oldest first; none where there is no such log. */
export async function recordsOf(folder: string, log: RecordLog): Promise<readonly RecordLine[]> {
  const names = await filesOf(folder, log);
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  return texts.flatMap((text) =>
    text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as RecordLine),
  );
}

/** Names of a log's files, the one that is written last. */
export async function filesOf(folder: string, log: RecordLog): Promise<readonly string[]> {
  const names = await readdir(folder).catch(() => []);
  const closed = names.filter((name) => name.startsWith(`${log}-`)).toSorted();
  return [...closed, ...names.filter((name) => name === `${log}.jsonl`)];
}
