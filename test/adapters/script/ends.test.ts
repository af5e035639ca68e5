import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { Upstream } from "../../../src/core/adapter.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { childrenOf } from "./child-processes.ts";
import { adapterFor, allGone, call, invoke, isAlive, openTool, type TestFolder, testFolder } from "./fixture.ts";

const run = promisify(execFile);

/** A tool of a script that notes the processes it starts in `pids`. */
function opened(
  folder: TestFolder,
  script: string,
  delivery: "conclusive" | "incremental" = "conclusive",
): Promise<Upstream> {
  return openTool({
    folder: folder.path,
    keys: { command: "sh", args: ["-c", `echo $$ >> pids\n${script}`] },
    delivery,
  });
}

async function pidsOf(folder: TestFolder, count: number): Promise<number[]> {
  return (await folder.waitForLines("pids", count)).map(Number);
}

const DEADLINE = new GatewayError("CALL_DEADLINE_EXCEEDED", "time is up");

test.for([
  "sleep 60; echo x > sentinel",
  "sleep 60 & echo $! >> pids; (sleep 30; touch sentinel) & echo $! >> pids; wait",
])("a deadline ends the call and every process of its group: %s [S-D01] [S2-43]", async (script) => {
  await using folder = await testFolder();
  await using tool = await opened(folder, script);
  const stop = new AbortController();
  const ended = call(tool, {}, { signal: stop.signal });
  const pids = await pidsOf(folder, script.includes("$!") ? 3 : 1);
  stop.abort(DEADLINE);
  expect((await ended).error).toMatchObject({ reason: "CALL_DEADLINE_EXCEEDED", effect: "unknown" });
  await allGone(pids);
  expect(await folder.lines("sentinel")).toEqual([]);
});

const READ_MS = 50_000;

/** The system's clock, and the moment from which a limit of so many milliseconds counts. */
function clockThatTells(limitMs: number): { readonly clock: Clock; readonly begun: Promise<void> } {
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const after: Clock["after"] = (ms, task) => {
    if (Math.abs(ms - limitMs) < 1) resolve();
    return systemClock.after(ms, task);
  };
  return { clock: { ...systemClock, after }, begun };
}

test.for([
  ["read", "sleep 600"],
  ["idle", "echo begun; sleep 600"],
])("a deadline that passes says that the time went to `%s`", async ([phase = "", script = ""]) => {
  await using folder = await testFolder();
  // The program may be quicker than the word that it was started: with that the limit of reading begins to count.
  const { clock, begun } = clockThatTells(READ_MS);
  await using tool = await openTool({
    folder: folder.path,
    keys: { command: "sh", args: ["-c", script] },
    delivery: "incremental",
    timeouts: { connectMs: 60_000, readMs: READ_MS },
    clock,
  });
  const stop = new AbortController();
  const events = invoke(tool, {}, { signal: stop.signal })[Symbol.asyncIterator]();
  const first = events.next();
  await (phase === "idle" ? first : begun);
  const ended = phase === "idle" ? events.next() : first;
  stop.abort(new GatewayError("CALL_DEADLINE_EXCEEDED", "time is up", { metadata: { limit: "tool" } }));
  await expect(ended).rejects.toMatchObject({ effect: "unknown", metadata: { limit: "tool", phase } });
});

test("a process that holds the output open does not hang the call, and does not outlive it [S-D01]", async () => {
  await using folder = await testFolder();
  await using tool = await opened(folder, "sleep 600 & echo $! >> pids; echo done");
  const { result } = await call(tool);
  expect(result).toMatchObject({ content: [{ type: "text", text: "done\n" }], effect: "committed" });
  await allGone(await pidsOf(folder, 2));
});

test("a process that left the group and holds the output open does not hang the call [S-D01]", async () => {
  await using folder = await testFolder();
  await using tool = await opened(folder, "setsid sleep 20 & echo done");
  const startMs = performance.now();
  expect((await call(tool)).result?.content).toEqual([{ type: "text", text: "done\n" }]);
  expect(performance.now() - startMs).toBeLessThan(18_000);
});

test("output that is written after the program's own end is not lost", async () => {
  await using folder = await testFolder();
  await using tool = await opened(folder, "(sleep 0.1; echo late) & echo early");
  expect((await call(tool)).result?.content).toEqual([{ type: "text", text: "early\nlate\n" }]);
});

test("a program that ignores TERM is killed after the grace of 2 s [S-D06]", async () => {
  await using folder = await testFolder();
  await using tool = await opened(folder, "trap '' TERM; while :; do sleep 0.1; done");
  const stop = new AbortController();
  const ended = call(tool, {}, { signal: stop.signal });
  const pids = await pidsOf(folder, 1);
  const startMs = performance.now();
  stop.abort(DEADLINE);
  await ended;
  // The call does not wait for it.
  expect(pids.every(isAlive)).toBe(true);
  await allGone(pids);
  expect(performance.now() - startMs).toBeGreaterThan(1_900);
});

test("a program can clean up when TERM comes [S-D06]", async () => {
  await using folder = await testFolder();
  await using tool = await opened(folder, "trap 'echo bye >> log; exit' TERM; while :; do sleep 0.05; done");
  const stop = new AbortController();
  const ended = call(tool, {}, { signal: stop.signal });
  await pidsOf(folder, 1);
  stop.abort(DEADLINE);
  await ended;
  expect(await folder.waitForLines("log", 1)).toEqual(["bye"]);
});

test("closing a tool ends its programs, those that ignore TERM after their grace [S-D06]", async () => {
  await using folder = await testFolder();
  const tool = await opened(folder, "trap '' TERM; while :; do sleep 0.1; done");
  const ended = call(tool);
  const pids = await pidsOf(folder, 1);
  await tool[Symbol.asyncDispose]();
  expect(pids.some(isAlive)).toBe(false);
  expect((await ended).error).toMatchObject({ reason: "GATEWAY_STOPPING", effect: "unknown" });
});

test("a tool that only reads has no effect when its call is cut", async () => {
  await using folder = await testFolder();
  const hints = { readOnly: true };
  const keys = { command: "sh", args: ["-c", "echo $$ >> pids; exec sleep 600"] };
  await using tool = await openTool({ folder: folder.path, keys, hints });
  const stop = new AbortController();
  const ended = call(tool, {}, { signal: stop.signal });
  await pidsOf(folder, 1);
  stop.abort(DEADLINE);
  expect((await ended).error).toMatchObject({ effect: "none", retryable: true });
});

test("tools share one launcher, which ends with the last of them", { timeout: 180_000 }, async () => {
  const before = childrenOf(process.pid).length;
  const adapter = adapterFor({});
  const tools = await Promise.all([1, 2, 3].map(() => openTool({ keys: { command: "true" }, adapter })));
  expect(childrenOf(process.pid).length - before).toBe(1);
  for (const tool of tools) {
    expect((await call(tool)).result?.upstreamCode).toBe(0);
    await tool[Symbol.asyncDispose]();
  }
  expect(childrenOf(process.pid)).toHaveLength(before);
  await using again = await openTool({ keys: { command: "true" }, adapter });
  expect((await call(again)).result?.upstreamCode).toBe(0);
});

test("the launcher's death ends the calls of the moment, and the next has another", { timeout: 180_000 }, async () => {
  await using folder = await testFolder();
  const script = "echo $PPID; [ -e again ] || exec sleep 600; echo ok";
  await using tool = await opened(folder, script, "incremental");
  const events = invoke(tool)[Symbol.asyncIterator]();
  const { value: first } = await events.next();
  const [pid] = await pidsOf(folder, 1);
  const next = events.next();
  process.kill(Number(first?.type === "upstream-delta" ? first.text : ""), "SIGKILL");
  await expect(next).rejects.toMatchObject({ reason: "UPSTREAM_ANSWER_LOST", effect: "unknown" });
  await allGone([Number(pid)]);
  await folder.program("again", "");
  expect((await call(tool)).deltas.join("")).toMatch(/^\d+\nok\n$/);
});

// In a process of its own: this one is full of timers and sockets of the runner and of other tests.
test("after 1,000 calls processes, descriptors, listeners and timers are back at the start [S-D11]", {
  timeout: 240_000,
}, async () => {
  const file = fileURLToPath(new URL("many-calls.ts", import.meta.url));
  const { stdout } = await run(process.execPath, [file]);
  const { before, after, warnings } = JSON.parse(stdout);
  expect(before).toMatchObject({ launchers: 1, programs: 0 });
  expect(after).toEqual(before);
  expect(warnings).toEqual([]);
});

test("500 calls aborted at random times leave no process [R-D07]", { timeout: 240_000 }, async () => {
  await using folder = await testFolder();
  await using tool = await opened(folder, "echo one; sleep 0.02; echo two; exec sleep 600", "incremental");
  let seed = 7;
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const one = async (): Promise<void> => {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(DEADLINE), random() * 120);
    try {
      for await (const event of invoke(tool, {}, { signal: stop.signal })) {
        if (event.type === "upstream-delta" && random() < 0.2) break;
      }
    } catch (error) {
      expect(error).toBeInstanceOf(GatewayError);
    } finally {
      clearTimeout(timer);
    }
  };
  for (let round = 0; round < 25; round++) await Promise.all(Array.from({ length: 20 }, one));
  await allGone((await folder.lines("pids")).map(Number));
  await tool[Symbol.asyncDispose]();
  expect((await folder.lines("pids")).map(Number).filter(isAlive)).toEqual([]);
});
