import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { GatewayError } from "../../../src/core/errors.ts";
import {
  adapterFor,
  allGone,
  call,
  isAlive,
  openTool,
  problemsOf,
  type TestFolder,
  type ToolOptions,
  testFolder,
} from "./fixture.ts";

/** A worker that does what its argument `do` says, and notes each process in `pids`. */
const WORKER = `
const { appendFileSync } = require("node:fs");
const { createInterface } = require("node:readline");
appendFileSync("pids", process.pid + "\\n");
const say = (message) => process.stdout.write(JSON.stringify(message) + "\\n");
console.log("ready, and this is no answer");
createInterface({ input: process.stdin }).on("line", (line) => {
  const call = JSON.parse(line);
  const { id } = call;
  switch (call.arguments.do) {
    case "echo": return say({ id, result: call });
    case "env": return say({ id, result: process.env });
    case "pid": return say({ id, result: process.pid });
    case "text": return say({ id, result: "订单" });
    case "number": return process.stdout.write('{"id":"' + id + '","result":12345678901234567890}\\n');
    case "fail": return say({ id, error: { message: "no such order", retryable: true } });
    case "exit": console.error("out of memory"); return process.exit(9);
    case "hang": return appendFileSync("asked", id + "\\n");
    case "stream":
      say({ id, progress: { current: 1, total: 2, message: "half" } });
      say({ id, log: { level: "warning", message: "slow" } });
      say({ id: "another", result: "not for this call" });
      say({ id, delta: "one " });
      say({ id, delta: "two" });
      return say({ id, result: null });
    case "long": return say({ id, result: "x".repeat(2_000_000) });
    default: return setTimeout(() => say({ id, result: process.pid }), 100);
  }
});
`;

async function workerTool(folder: TestFolder, options: Partial<ToolOptions> = {}): ReturnType<typeof openTool> {
  await folder.program("worker.cjs", WORKER);
  const { keys, ...rest } = options;
  return openTool({
    folder: folder.path,
    params: { do: { type: "string" } },
    ...rest,
    keys: { command: process.execPath, args: ["worker.cjs"], worker: {}, ...keys },
  });
}

test("a worker answers one call after the other, and is started once", { timeout: 180_000 }, async () => {
  await using folder = await testFolder();
  await using tool = await workerTool(folder);
  const how = { callId: "call-1", sessionId: "s-1", deadlineMs: 2_000_000_000_000 };
  const { result } = await call(tool, { do: "echo" }, how);
  expect(result).toMatchObject({
    value: {
      id: "call-1",
      tool: "run_report",
      arguments: { do: "echo" },
      attempt: 1,
      deadline_ms: 2_000_000_000_000,
      session_id: "s-1",
    },
    effect: "committed",
  });
  expect((await call(tool, { do: "text" })).result).toMatchObject({ value: "订单" });
  expect((await call(tool, { do: "number" })).result).toMatchObject({ value: 12345678901234567890n });
  expect((await call(tool, { do: "fail" })).result).toMatchObject({
    failure: { reason: "TOOL_FAILED", message: "run_report: no such order", retryable: true },
    effect: "unknown",
  });
  expect(await folder.lines("pids")).toHaveLength(1);
});

test("deltas, progress and logs of a worker are passed on; lines for nobody are skipped", {
  timeout: 180_000,
}, async () => {
  await using folder = await testFolder();
  await using tool = await workerTool(folder, { delivery: "incremental" });
  const outcome = await call(tool, { do: "stream" });
  expect(outcome.deltas).toEqual(["one ", "two"]);
  expect(outcome.progress).toEqual([{ type: "progress", current: 1, total: 2, message: "half" }]);
  expect(outcome.logs).toEqual(["slow"]);
  expect(outcome.result).toMatchObject({ value: null, effect: "committed" });
});

test("`worker.processes` is how many run at a time, one call each", { timeout: 180_000 }, async () => {
  await using folder = await testFolder();
  await using tool = await workerTool(folder, { keys: { worker: { processes: 2 } } });
  const outcomes = await Promise.all(Array.from({ length: 8 }, () => call(tool, { do: "wait" })));
  const pids = outcomes.map(({ result }) => result?.value);
  expect(new Set(pids).size).toBe(2);
  expect(await folder.lines("pids")).toHaveLength(2);
});

test("`worker.max_calls` is how many calls one answers", { timeout: 180_000 }, async () => {
  await using folder = await testFolder();
  await using tool = await workerTool(folder, { keys: { worker: { max_calls: 2 } } });
  const pids: unknown[] = [];
  for (let i = 0; i < 4; i++) pids.push((await call(tool, { do: "pid" })).result?.value);
  expect(pids[0]).toBe(pids[1]);
  expect(pids[2]).toBe(pids[3]);
  expect(pids[0]).not.toBe(pids[2]);
});

test("a worker that dies is a failure that says why, and the next call has another", { timeout: 180_000 }, async () => {
  await using folder = await testFolder();
  await using tool = await workerTool(folder);
  expect((await call(tool, { do: "exit" })).result).toMatchObject({
    failure: {
      reason: "EXIT_CODE",
      message: "run_report: the worker ended with exit code 9 before it answered: out of memory",
      upstreamCode: 9,
    },
    effect: "unknown",
  });
  const first = (await call(tool, { do: "pid" })).result?.value;
  process.kill(Number(first), "SIGKILL");
  await allGone([Number(first)]);
  await delay(100);
  expect((await call(tool, { do: "pid" })).result?.value).not.toBe(first);
});

test("a call that is cancelled ends its worker, and no other", { timeout: 180_000 }, async () => {
  await using folder = await testFolder();
  await using tool = await workerTool(folder, { keys: { worker: { processes: 2 } } });
  const stop = new AbortController();
  const ended = call(tool, { do: "hang" }, { signal: stop.signal });
  await folder.waitForLines("asked", 1);
  const [hanging] = (await folder.lines("pids")).map(Number);
  const other = Number((await call(tool, { do: "pid" })).result?.value);
  stop.abort(new GatewayError("CALL_DEADLINE_EXCEEDED", "time is up"));
  expect((await ended).error).toMatchObject({ reason: "CALL_DEADLINE_EXCEEDED", effect: "unknown" });
  await allGone([hanging ?? 0]);
  expect(isAlive(other)).toBe(true);
});

test("a call that waits for a worker ends with its signal, and nothing happened", { timeout: 180_000 }, async () => {
  await using folder = await testFolder();
  await using tool = await workerTool(folder);
  const stop = new AbortController();
  const running = call(tool, { do: "hang" }, { signal: stop.signal });
  await folder.waitForLines("asked", 1);
  const waits = new AbortController();
  const waiting = call(tool, { do: "pid" }, { signal: waits.signal });
  await delay(50);
  waits.abort(new GatewayError("CALL_CANCELLED", "gone"));
  expect((await waiting).error).toMatchObject({ reason: "CALL_CANCELLED", effect: "none" });
  stop.abort(new GatewayError("CALL_CANCELLED", "gone"));
  await running;
});

test("a secret that changed is what the next worker is started with", { timeout: 180_000 }, async () => {
  await using folder = await testFolder();
  const environment = { ORDER_API_TOKEN: "tok-1" };
  const keys = { env: { TOKEN: { secret_ref: "ORDER_API_TOKEN" } } };
  await using tool = await workerTool(folder, { keys, environment });
  expect((await call(tool, { do: "env" })).result?.value).toMatchObject({ TOKEN: "tok-1", TOOLGATE_WORKER: "1" });
  environment.ORDER_API_TOKEN = "tok-2";
  expect((await call(tool, { do: "env" })).result?.value).toMatchObject({ TOKEN: "tok-2" });
});

test("an answer over the limit is an error, and ends the worker", { timeout: 180_000 }, async () => {
  await using folder = await testFolder();
  await using tool = await workerTool(folder, { maxResponseBytes: 1_000_000 });
  expect((await call(tool, { do: "long" })).error).toMatchObject({ reason: "RESULT_TOO_LARGE", effect: "unknown" });
  expect((await call(tool, { do: "pid" })).error).toBeUndefined();
  expect(await folder.lines("pids")).toHaveLength(2);
});

test("closing a tool ends its workers, idle ones too", { timeout: 180_000 }, async () => {
  await using folder = await testFolder();
  const tool = await workerTool(folder, { adapter: adapterFor({ folder: folder.path }) });
  const pid = Number((await call(tool, { do: "pid" })).result?.value);
  await tool[Symbol.asyncDispose]();
  expect(isAlive(pid)).toBe(false);
});

test("an explained call shows the line a worker was asked with", { timeout: 180_000 }, async () => {
  await using folder = await testFolder();
  await using tool = await workerTool(folder);
  const { exchange } = await call(tool, { do: "pid" }, { explain: true, callId: "call-1" });
  expect(exchange).toMatchObject({ method: "RUN", requestBody: expect.stringContaining('"id":"call-1"') });
});

test("what a worker cannot have is refused", () => {
  const params = { a: { type: "string" } };
  const refused = (keys: object): string[] => problemsOf({ params, keys: { command: "node", worker: {}, ...keys } });
  expect(refused({ args: ["{a}"] })).toEqual([
    "/worker a worker is started before its calls, so its command takes no `{param}`",
  ]);
  expect(refused({ stdin: "arguments" })).toEqual(["/stdin a worker reads its calls there; remove `stdin`"]);
  expect(refused({ success_codes: [0], encoding: "gbk" }).map((line) => line.split(" ")[0])).toEqual([
    "/success_codes",
    "/encoding",
  ]);
  expect(refused({})).toEqual([]);
});
