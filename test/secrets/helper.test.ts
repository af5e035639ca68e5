import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createRunHelper } from "../../src/adapters/shared/launcher/run-helper.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { RunHelper, SecretHelper } from "../../src/core/secrets.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { createLogRecorder } from "../registry/support.ts";

const OPEN_END = new AbortController().signal;

async function open(run: RunHelper, helper: Partial<SecretHelper> = {}) {
  const clock = createFakeClock();
  const logger = createLogRecorder();
  const secrets = createSecrets({});
  const all = { command: ["get", "--raw"], timeoutMs: 5_000, cacheMs: 60_000, ...helper };
  await secrets.take({ keyFile: undefined, folder: undefined, helper: all }, { clock, logger, run });
  onTestFinished(() => secrets[Symbol.asyncDispose]());
  return { secrets, source: secrets.source, clock, logger };
}

test("a helper is asked once for all who wait, and again when its answer is old [S2-48, S2-49]", async () => {
  const asked: unknown[] = [];
  const { source, clock } = await open(({ file, args }) => {
    asked.push([file, ...args]);
    return Promise.resolve({ output: Buffer.from(`value-${asked.length}\n`) });
  });
  await Promise.all(Array.from({ length: 20 }, async () => source.fresh(["a/TOKEN"], OPEN_END)));
  expect(source.resolve("a/TOKEN")).toBe("value-1");
  expect(source.fresh(["a/TOKEN"], OPEN_END)).toBeUndefined();
  expect(asked).toEqual([["get", "--raw", "a/TOKEN"]]);
  await clock.advance(60_000);
  // What is old is not kept either.
  expect(source.peek("a/TOKEN")).toBeUndefined();
  await source.fresh(["a/TOKEN"], OPEN_END);
  expect(source.resolve("a/TOKEN")).toBe("value-2");
  expect(asked).toHaveLength(2);
});

test("what a helper does not give is missing with the reason, and asked for again after a while", async () => {
  let problem: string | undefined = "it ended with exit code 3";
  const { source, clock, logger } = await open(() =>
    Promise.resolve(problem === undefined ? { output: Buffer.from("value") } : { problem }),
  );
  // Nothing says yet that there is none.
  expect(source.has("TOKEN")).toBe(true);
  await source.fresh(["TOKEN"], OPEN_END);
  expect(source.missing("TOKEN")).toEqual({
    why: "is not set, and the helper does not give it: it ended with exit code 3",
    mend: "Set the environment variable TOKEN where the gateway is started, or see why `get --raw TOKEN` does not print it.",
  });
  expect(() => source.resolve("TOKEN")).toThrow(GatewayError);
  expect(logger.lines.filter(({ message }) => message === "secret-helper-failed")).toHaveLength(1);
  problem = undefined;
  expect(source.fresh(["TOKEN"], OPEN_END)).toBeUndefined();
  await clock.advance(5_000);
  await source.fresh(["TOKEN"], OPEN_END);
  expect(source.resolve("TOKEN")).toBe("value");
});

test.for(["--help", "../../etc/passwd", "a b", "$(id)", "", "a/../b", "x".repeat(300)])(
  "a reference such as %j is not passed on",
  async (reference) => {
    const { source } = await open(() => Promise.reject(new Error("was run")));
    await source.fresh([reference], OPEN_END);
    expect(source.missing(reference)?.why).toContain("characters that are not passed on");
  },
);

test("a helper that does not end is ended, and nobody waits longer than for its limit or the caller's", async () => {
  const ended: unknown[] = [];
  const { source, clock } = await open((_run, signal) => {
    return new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        ended.push(signal.reason);
        reject(signal.reason);
      });
    });
  });
  const caller = new AbortController();
  const left = source.fresh(["TOKEN"], caller.signal);
  const waits = source.fresh(["TOKEN"], OPEN_END);
  caller.abort(new GatewayError("CALL_CANCELLED", "gone"));
  await expect(left).rejects.toThrow("gone");
  expect(ended).toHaveLength(0);
  await clock.advance(5_000);
  await waits;
  expect(ended).toHaveLength(1);
  expect(source.missing("TOKEN")?.why).toContain("no end within 5000 ms");
});

/** A program that prints what it is asked for. */
async function program(text: string): Promise<{ readonly file: string; readonly folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-helper-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "helper.sh");
  await writeFile(file, `#!/bin/sh\n${text}\n`);
  await chmod(file, 0o700);
  return { file, folder };
}

const run = createRunHelper({ environment: { ...process.env, VAULT: "vault-token" }, cwd: "/" });

test("a program is run without a shell, with the gateway's environment, and its error output is nobody's [K-D01, K-D02]", async () => {
  const { file, folder } = await program(
    `echo "sk-from-stderr" >&2; echo "$VAULT:$1"; tr '\\0' ' ' < /proc/$$/cmdline > $(dirname $0)/argv`,
  );
  const ran = await run({ file, args: ["a;b $(id)"], maxBytes: 1_000 }, OPEN_END);
  expect("output" in ran ? ran.output.toString() : ran).toBe("vault-token:a;b $(id)\n");
  expect(await readFile(join(folder, "argv"), "utf8")).toContain("a;b $(id)");
  expect(await readFile(join(folder, "argv"), "utf8")).not.toContain("vault-token");
});

test("a program that fails, prints too much or is not there is a problem in words", async () => {
  const failing = await program("echo sk-live-0123456789; exit 3");
  expect(await run({ file: failing.file, args: [], maxBytes: 1_000 }, OPEN_END)).toEqual({
    problem: "it ended with exit code 3",
  });
  const endless = await program("while :; do echo 0123456789; done");
  expect(await run({ file: endless.file, args: [], maxBytes: 1_000 }, OPEN_END)).toEqual({
    problem: "it printed more than 1000 bytes",
  });
  expect(await run({ file: "/nowhere/helper", args: [], maxBytes: 1_000 }, OPEN_END)).toEqual({
    problem: "it cannot be started (ENOENT)",
  });
});

test("a program that nobody waits for any more is ended with all it started", async () => {
  const { file, folder } = await program(`echo $$ > $(dirname $0)/pid; sleep 600 & sleep 600`);
  const stop = new AbortController();
  const running = run({ file, args: [], maxBytes: 1_000 }, stop.signal);
  const pid = async (): Promise<number> => Number(await readFile(join(folder, "pid"), "utf8").catch(() => "0"));
  await expect.poll(pid, { timeout: 30_000 }).toBeGreaterThan(0);
  stop.abort(new GatewayError("UPSTREAM_TIMEOUT", "helper"));
  await expect(running).rejects.toThrow("helper");
  const group = await pid();
  const isThere = (): boolean => {
    try {
      return process.kill(-group, 0);
    } catch {
      return false;
    }
  };
  await expect.poll(isThere, { timeout: 30_000 }).toBe(false);
});
