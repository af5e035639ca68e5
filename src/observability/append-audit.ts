import { appendFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { AuditEntry } from "../core/observation.ts";
import { recordFileName } from "../core/record-files.ts";

/**
 * Puts an act on record that happens beside the gateway, which may be writing the same file: a line that is appended at
 * once is not torn.
 *
 * @throws what the file system throws.
 */
export async function appendAudit(folder: string, entry: AuditEntry, nowMs: number): Promise<void> {
  const { action, outcome, actor, facts } = entry;
  const line = { level: "info", time: new Date(nowMs).toISOString(), outcome, actor, ...facts, message: action };
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await appendFile(join(folder, recordFileName("audit")), `${JSON.stringify(line)}\n`, { mode: 0o600 });
}
