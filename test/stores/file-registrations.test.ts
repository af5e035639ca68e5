import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createFileRegistrations } from "../../src/stores/file-registrations.ts";
import { sampleRegistration } from "../conformance/registration-sample.ts";
import { storeConformance } from "../conformance/store.ts";

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-store-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

storeConformance(async () => {
  const folder = join(await temporaryFolder(), "state", "tools");
  return { store: createFileRegistrations(folder), reopen: async () => createFileRegistrations(folder) };
});

test("one file a registration, and nothing beside them", async () => {
  const folder = join(await temporaryFolder(), "state");
  const store = createFileRegistrations(folder);
  await store.put(sampleRegistration("order_status", { text: "name: order_status\n", leaseExpireTimeMs: undefined }));
  await store.check();
  expect(await readdir(folder)).toEqual(["tool-order_status.json"]);
  const file = join(folder, "tool-order_status.json");
  expect(await readFile(file, "utf8")).toBe(`{
  "form": 1,
  "name": "order_status",
  "text": "name: order_status\\n",
  "format": "yaml",
  "principal": "anonymous",
  "createTimeMs": 1767225600000,
  "updateTimeMs": 1767225600001.5,
  "leaseExpireTimeMs": null
}
`);
});

test.skipIf(process.platform === "win32")("what is kept can be read by its owner alone", async () => {
  const folder = join(await temporaryFolder(), "state");
  await createFileRegistrations(folder).put(sampleRegistration("a"));
  expect((await stat(join(folder, "tool-a.json"))).mode & 0o777).toBe(0o600);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
});

test("damaged files are reported by tool name, left alone, and hide no other; leavings of a crash are swept up", async () => {
  const folder = await temporaryFolder();
  const store = createFileRegistrations(folder);
  await store.put(sampleRegistration("good"));
  const whole = await readFile(join(folder, "tool-good.json"), "utf8");
  const damaged = {
    "tool-torn.json": whole.slice(0, 40),
    "tool-empty.json": "",
    "tool-list.json": "[]",
    "tool-later.json": whole.replace('"form": 1', '"form": 2'),
    "tool-other.json": whole,
    "tool-odd%zz.json": whole,
    "tool-typed.json": whole.replace('"yaml"', "7"),
  };
  for (const [name, text] of Object.entries(damaged)) await writeFile(join(folder, name), text);
  await mkdir(join(folder, "tool-folder.json"));
  await writeFile(join(folder, "notes.txt"), "not ours");
  await writeFile(join(folder, ".tool-good.json.0b5a.tmp"), "half");
  const reports: string[] = [];
  const kept = await createFileRegistrations(folder).load((entry, problem) => reports.push(`${entry}: ${problem}`));
  expect(kept).toEqual([sampleRegistration("good")]);
  const mend = "register the tool again, or delete the file";
  const report = (entry: string, file: string, what: string): string =>
    `${entry}: the registration in ${join(folder, file)} ${what}: ${mend}`;
  expect(reports.toSorted()).toEqual([
    report("empty", "tool-empty.json", "is damaged"),
    report("folder", "tool-folder.json", "cannot be read (EISDIR)"),
    report("later", "tool-later.json", "is damaged"),
    report("list", "tool-list.json", "is damaged"),
    report("other", "tool-other.json", "belongs to a tool of another name"),
    report("tool-odd%zz.json", "tool-odd%zz.json", "belongs to a tool of another name"),
    report("torn", "tool-torn.json", "is damaged"),
    report("typed", "tool-typed.json", "is damaged"),
  ]);
  expect((await readdir(folder)).toSorted()).toEqual(
    [...Object.keys(damaged), "notes.txt", "tool-folder.json", "tool-good.json"].toSorted(),
  );
});

test("a folder that cannot be made or written is STORE_FAILED with the mend, and the cause stays inside", async () => {
  const parent = await temporaryFolder();
  await writeFile(join(parent, "state"), "a file");
  const store = createFileRegistrations(join(parent, "state"));
  const message = "registrations cannot be written: check space and permissions of the state folder";
  await expect(store.put(sampleRegistration("a"))).rejects.toMatchObject({ reason: "STORE_FAILED", message });
  await expect(store.check()).rejects.toMatchObject({ reason: "STORE_FAILED", message });
  await expect(store.load(() => undefined)).rejects.toMatchObject({ reason: "STORE_FAILED" });
});

test("a put that fails leaves the registration before it and no leavings", async () => {
  const folder = await temporaryFolder();
  const store = createFileRegistrations(folder);
  await mkdir(join(folder, "tool-a.json", "in-the-way"), { recursive: true });
  await expect(store.put(sampleRegistration("a"))).rejects.toMatchObject({ reason: "STORE_FAILED" });
  expect(await readdir(folder)).toEqual(["tool-a.json"]);
});
