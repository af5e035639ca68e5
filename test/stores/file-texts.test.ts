import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createFileTexts } from "../../src/stores/file-texts.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolgate-texts-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

test("a text is kept over instances, for its owner's eyes alone", async () => {
  const texts = createFileTexts(join(folder, "servers"));
  expect(await texts.read("a1")).toBeUndefined();
  await Promise.all([texts.write("a1", "first"), texts.write("a1", "second"), texts.write("b2", "other")]);
  expect(await createFileTexts(join(folder, "servers")).read("a1")).toBe("second");
  expect(await readdir(join(folder, "servers"))).toEqual(["a1.json", "b2.json"]);
  expect((await stat(join(folder, "servers", "a1.json"))).mode & 0o077).toBe(0);
});

test("what cannot be kept or read is no failure", async () => {
  await writeFile(join(folder, "file"), "");
  const texts = createFileTexts(join(folder, "file"));
  await texts.write("a1", "text");
  expect(await texts.read("a1")).toBeUndefined();
});
