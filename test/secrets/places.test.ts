import { chmod, mkdir, mkdtemp, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { RunHelper, SecretSettings } from "../../src/core/secrets.ts";
import { parseKeyFile, readKeyFile } from "../../src/secrets/key-file.ts";
import { createSecrets, type Secrets } from "../../src/secrets/secrets.ts";
import { createFakeClock, type FakeClock } from "../core/fake-clock.ts";
import { createLogRecorder } from "../registry/support.ts";

const OPEN_END = new AbortController().signal;

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-secrets-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function keyFile(text: string, mode = 0o600): Promise<string> {
  const file = join(await temporaryFolder(), "secrets.env");
  await writeFile(file, text, { mode });
  await chmod(file, mode);
  return file;
}

const NOWHERE: SecretSettings = { keyFile: undefined, folder: undefined, helper: undefined };

interface Opened {
  readonly secrets: Secrets;
  readonly clock: FakeClock;
  readonly logger: ReturnType<typeof createLogRecorder>;
  /** Looks again after a second, as a call does. */
  value(reference: string): Promise<string | undefined>;
}

async function open(
  settings: Partial<SecretSettings>,
  environment: Record<string, string> = {},
  run: RunHelper = () => Promise.resolve({ problem: "none" }),
): Promise<Opened> {
  const clock = createFakeClock();
  const logger = createLogRecorder();
  const secrets = createSecrets(environment);
  await secrets.take({ ...NOWHERE, ...settings }, { clock, logger, run });
  onTestFinished(() => secrets[Symbol.asyncDispose]());
  return {
    secrets,
    clock,
    logger,
    async value(reference) {
      await clock.advance(1_001);
      await secrets.source.fresh([reference], OPEN_END);
      return secrets.source.missing(reference) === undefined ? secrets.source.resolve(reference) : undefined;
    },
  };
}

test.for([
  ["A=plain", "plain"],
  ["export A = spaced out  ", "spaced out"],
  ["A=with=equals", "with=equals"],
  ["A=value # comment", "value"],
  ["A=value#none", "value#none"],
  ["A='single $B \\n' # comment", "single $B \\n"],
  ['A="double \\"quoted\\" \\\\ line\\nend"', 'double "quoted" \\ line\nend'],
  ["\ufeff# comment\r\n\r\nA=crlf\r\nB=2\r\n", "crlf"],
  ["A=", ""],
  ["A=$B", "$B"],
] as const)("%j of a key file is read as dotenv has it [S2-48]", ([text, value]) => {
  expect(parseKeyFile(text)).toEqual({ values: expect.objectContaining({}) });
  const parsed = parseKeyFile(text);
  expect("values" in parsed ? parsed.values.get("A") : parsed).toBe(value);
});

test.for([
  ["sk-live-0123456789abcdef", 1, "is no `NAME=value`"],
  ["A=1\n=sk-live-0123456789abcdef", 2, "is no `NAME=value`"],
  ["A=1\nA=2", 2, "A stands there twice: remove one"],
  ['A="sk-live-0123456789abcdef', 1, "the quotes of A do not end"],
] as const)("a key file with %j is refused by its line, without a word of it [K-D01]", ([text, line, problem]) => {
  expect(parseKeyFile(text)).toEqual({ line, problem });
});

test("a key file that others may read or change is refused with the mend [S2-48]", async () => {
  for (const [mode, shown] of [
    [0o640, "0640"],
    [0o604, "0604"],
    [0o620, "0620"],
  ] as const) {
    const file = await keyFile("A=1", mode);
    await expect(readKeyFile(file)).rejects.toThrow(
      `secrets.key_file ${file} can be read or changed by others (mode ${shown}): chmod 600 ${file}`,
    );
  }
  await expect(readKeyFile("/nowhere/secrets.env")).rejects.toThrow("cannot be read: write lines `NAME=value` there");
});

test("a changed key file counts at the next call, and one that cannot be used leaves the last good one [S2-48, S2-49]", async () => {
  const file = await keyFile("TOKEN=first\n");
  const { value, logger } = await open({ keyFile: file });
  expect(await value("TOKEN")).toBe("first");
  await writeFile(file, "TOKEN=second value\n");
  expect(await value("TOKEN")).toBe("second value");
  await chmod(file, 0o644);
  expect(await value("TOKEN")).toBe("second value");
  await chmod(file, 0o600);
  await writeFile(file, "TOKEN=sk-live-0123456789abcdef\nsk-live-0123456789abcdef\n");
  expect(await value("TOKEN")).toBe("second value");
  expect(logger.lines.filter(({ message }) => message === "secrets-rejected")).toHaveLength(2);
  expect(JSON.stringify(logger.lines)).not.toContain("sk-live");
  await writeFile(file, "OTHER=x\n");
  expect(await value("TOKEN")).toBeUndefined();
});

/** A folder as Kubernetes mounts it: every file is a symlink through `..data`. */
async function mounted(first: Readonly<Record<string, string>>) {
  const folder = await temporaryFolder();
  let version = 0;
  const swap = async (values: Readonly<Record<string, string>>): Promise<void> => {
    version += 1;
    const data = `..2024_${version}`;
    await mkdir(join(folder, data));
    for (const [name, text] of Object.entries(values)) await writeFile(join(folder, data, name), text, { mode: 0o644 });
    await symlink(data, join(folder, "..data_tmp"));
    await rename(join(folder, "..data_tmp"), join(folder, "..data"));
  };
  await swap(first);
  for (const name of Object.keys(first)) await symlink(join("..data", name), join(folder, name));
  return { folder, swap };
}

test("a folder gives each file as a secret, and takes a swap of all of them over at the next call [S2-48, S2-49]", async () => {
  const { folder, swap } = await mounted({ TOKEN: "first\n", "api.key": "  kept as it is  \n\n", EMPTY: "\n" });
  await mkdir(join(folder, "sub"));
  await writeFile(join(folder, ".hidden"), "hidden");
  const { value, secrets } = await open({ folder });
  expect(await value("TOKEN")).toBe("first");
  expect(await value("api.key")).toBe("  kept as it is  \n");
  for (const name of ["EMPTY", "sub", ".hidden", "..data", "../secrets", "constructor"]) {
    expect(await value(name)).toBeUndefined();
  }
  await swap({ TOKEN: "second\n", "api.key": "other" });
  expect(await value("TOKEN")).toBe("second");
  await unlink(join(folder, "TOKEN"));
  expect(await value("TOKEN")).toBeUndefined();
  expect(secrets.source.missing("TOKEN")).toEqual({
    why: "is not set",
    mend: `Set the environment variable TOKEN where the gateway is started, or write it to ${join(folder, "TOKEN")}.`,
  });
  await rm(folder, { recursive: true });
  expect(await value("api.key")).toBe("other");
});

test("a place that cannot be used is refused, and what was there stays [S2-48]", async () => {
  const { secrets, clock, logger, value } = await open({ keyFile: await keyFile("TOKEN=value") });
  const run: RunHelper = () => Promise.resolve({ problem: "none" });
  const take = (settings: Partial<SecretSettings>) => secrets.take({ ...NOWHERE, ...settings }, { clock, logger, run });
  await expect(take({ folder: "/nowhere/secrets" })).rejects.toThrow("secrets.folder /nowhere/secrets: it cannot be");
  const large = await temporaryFolder();
  await writeFile(join(large, "BIG"), "x".repeat(70_000));
  await expect(take({ folder: large })).rejects.toThrow("BIG has 70000 bytes; at most 65536 are read");
  expect(await value("TOKEN")).toBe("value");
  await take({});
  expect(await value("TOKEN")).toBeUndefined();
});

test("the environment counts first, then the file, the folder and the program [S2-48]", async () => {
  const folder = await temporaryFolder();
  for (const name of ["A", "B", "C"]) await writeFile(join(folder, name), "folder");
  const asked: string[] = [];
  const run: RunHelper = ({ args }) => {
    asked.push(args.at(-1) ?? "");
    return Promise.resolve({ output: Buffer.from("program\n") });
  };
  const helper = { command: ["get"], timeoutMs: 5_000, cacheMs: 60_000 };
  const places = { keyFile: await keyFile("A=file\nB=file"), folder, helper };
  const { value } = await open(places, { A: "environment" }, run);
  expect(await Promise.all(["A", "B", "C", "D"].map(value))).toEqual(["environment", "file", "folder", "program"]);
  expect(asked).toEqual(["D"]);
});
