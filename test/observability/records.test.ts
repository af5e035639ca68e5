import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../src/core/logger.ts";
import { Records } from "../../src/observability/records.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import { createFakeClock } from "../core/fake-clock.ts";

test("a flood of strangers hides no refusal of another kind", async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-records-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const records = new Records({
    folder,
    keeps: { gateway: false, session: false, audit: true },
    limits: { fileBytes: 1e6, fileAgeMs: 3.6e6, retentionMs: 8.64e7, maxFiles: 100, maxBytes: 1e8 },
    clock: createFakeClock(Date.now()),
    redactor: createSecrets({}).redactor,
    logger: silentLogger,
  });
  for (let i = 0; i < 1_000; i++) records.note({ action: "authenticate", outcome: "refused", actor: "127.0.0.1" });
  records.note({ action: "tool-call", outcome: "refused", actor: "key:viewer" });
  await records[Symbol.asyncDispose]();
  const lines = (await readFile(join(folder, "audit.jsonl"), "utf8")).trim().split("\n");
  const actions = lines.map((line) => (JSON.parse(line) as { readonly message: string }).message);
  expect(actions.filter((action) => action === "authenticate")).toHaveLength(100);
  expect(actions.filter((action) => action === "tool-call")).toHaveLength(1);
});
