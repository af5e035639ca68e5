import { expect, test } from "vitest";
import type { JsonObject } from "../../../src/core/json.ts";
import {
  call,
  callOnce,
  invoke,
  isAlive,
  openTool,
  problemsOf,
  type ToolOptions,
  testFolder,
  textOf,
} from "./fixture.ts";

function sh(script: string, options: Partial<ToolOptions> = {}): ToolOptions {
  const args = ["-c", script.replaceAll("{", "{{").replaceAll("}", "}}")];
  return { ...options, keys: { command: "sh", args, ...options.keys } };
}

function node(script: string, options: Partial<ToolOptions> = {}): ToolOptions {
  const args = ["-e", script.replaceAll("{", "{{").replaceAll("}", "}}")];
  return { ...options, keys: { command: process.execPath, args, ...options.keys } };
}

test("what a program prints is its result [S2-40]", async () => {
  const outcome = await callOnce(sh("echo one; echo two"));
  expect(outcome.result).toEqual({
    content: [{ type: "text", text: "one\ntwo\n" }],
    upstreamCode: 0,
    effect: "committed",
  });
});

test("JSON objects and lists are structured, everything else is text [S2-44]", async () => {
  const value = async (script: string, options: Partial<ToolOptions> = {}): Promise<unknown> =>
    (await callOnce(sh(script, options))).result?.value;
  expect(await value(`printf ' {"id": 12345678901234567890} '`)).toEqual({ id: 12345678901234567890n });
  expect(await value("echo '[1]'")).toEqual([1]);
  expect(await value("echo 42")).toBeUndefined();
  expect(await value("echo 42", { format: "json" })).toBe(42);
  expect(await value("echo '{not JSON'")).toBeUndefined();
  expect(await value("echo loading; echo '{}'")).toBeUndefined();
  expect(await value("echo '{}'", { format: "text" })).toBeUndefined();
  expect(textOf(await callOnce(sh("echo '{}'", { format: "text" })))).toBe("{}\n");
});

test("output that must be JSON and is not is a failure that shows how it begins [S2-44]", async () => {
  const { result } = await callOnce(sh("echo loading; echo '{}'", { format: "json" }));
  expect(result?.failure).toMatchObject({
    reason: "UPSTREAM_BAD_RESPONSE",
    message:
      'run_report: the program\'s output cannot be read: expected JSON, got other text; it begins "loading\\n{}"',
  });
});

test("error output is not part of a result [S2-41]", async () => {
  expect(textOf(await callOnce(sh("echo out; echo warning >&2")))).toBe("out\n");
});

test("a failure has the exit code, the output and the end of the error output [S2-41] [S-D07]", async () => {
  const locked = await callOnce(sh(`echo '{"error":"locked","retry":false}'; exit 1`));
  expect(locked.result).toMatchObject({
    value: { error: "locked", retry: false },
    failure: { reason: "EXIT_CODE", message: "run_report: the program ended with exit code 1", upstreamCode: 1 },
    upstreamCode: 1,
    effect: "unknown",
  });
  const nothing = await callOnce(sh("exit 1"));
  expect(nothing.result).toMatchObject({ content: [], failure: { upstreamCode: 1 } });
  const told = await callOnce(sh("echo some; echo 'first line' >&2; echo 'no such order' >&2; exit 3"));
  expect(told.result?.failure?.message).toBe(
    "run_report: the program ended with exit code 3: first line no such order",
  );
  expect(textOf(told)).toBe("some\n");
});

test("only the end of long error output is told [S2-41]", async () => {
  const { result } = await callOnce(
    node("process.stderr.write('x'.repeat(1e6) + ' the cause', () => process.exit(1))"),
  );
  expect(result?.failure?.message).toMatch(/ended with exit code 1: …x+ the cause$/);
  expect(result?.failure?.message.length).toBeLessThan(1_600);
});

test("`success_codes` says which exit codes are no failure [S-D07]", async () => {
  const keys = { command: "sh", args: ["-c", "exit 1"], success_codes: [0, 1] };
  expect((await callOnce({ keys })).result).toEqual({ content: [], upstreamCode: 1, effect: "committed" });
});

test("a program that dies of a signal is a failure that names it", async () => {
  const { result } = await callOnce(sh("kill -SEGV $$"));
  expect(result).toMatchObject({ failure: { reason: "EXIT_CODE", upstreamFault: true }, effect: "unknown" });
  expect(result?.failure?.message).toBe("run_report: the program was ended by SIGSEGV");
});

test("a tool that only reads has no effect, whatever its program says", async () => {
  const hints = { readOnly: true };
  expect((await callOnce(sh("true", { hints }))).result?.effect).toBe("none");
  expect((await callOnce(sh("false", { hints }))).result?.effect).toBe("none");
});

test.for([
  ["gbk", "\\266\\251\\265\\245", "订单"],
  ["latin1", "caf\\351", "café"],
  ["utf-16", "\\377\\376\\242\\213U\\123", "订单"],
  ["utf-16", "\\376\\377\\213\\242\\123U", "订单"],
  ["utf-16le", "\\242\\213U\\123", "订单"],
  ["shift_jis", "\\222\\215", "注"],
  ["utf-8", "\\357\\273\\277caf\\303\\251", "café"],
] as const)("output in %s is decoded as declared [S2-42] [S-D02]", async ([encoding, bytes, text]) => {
  const keys = { command: "printf", args: [bytes], encoding };
  expect(textOf(await callOnce({ keys }))).toBe(text);
  const streamed = await callOnce({ keys, delivery: "incremental" });
  expect(streamed.deltas.join("")).toBe(text);
});

test("bytes that are not in the declared encoding are flagged, and the result is well-formed [S2-42] [S-D02]", async () => {
  const keys = { command: "printf", args: ["\\266\\251\\265\\245 ok"] };
  const outcome = await callOnce({ keys });
  expect(textOf(outcome)).toMatch(/\ufffd+ ok\|\[output is not valid UTF-8, set encoding\]$/);
  const streamed = await callOnce({ keys, delivery: "incremental" });
  expect(streamed.logs).toEqual(["run_report: output is not valid utf-8"]);
  expect(textOf(streamed)).toBe("[output is not valid UTF-8, set encoding]");
  const json = await callOnce({ keys: { command: "printf", args: ['{{"a":"\\266"}}'] }, format: "json" });
  expect(json.result?.failure?.message).toContain("output is not valid UTF-8, set encoding");
  expect(textOf(await callOnce({ keys: { command: "printf", args: ["a\\357\\277\\275b"] } }))).toBe("a\ufffdb");
  expect(problemsOf({ keys: { command: "ls", encoding: "klingon" } })).toEqual([
    "/encoding `klingon` is no encoding that is known, such as utf-8, gbk, utf-16 or latin1",
  ]);
});

test.for(["conclusive", "incremental"] as const)(
  "characters stay whole across writes: %s [S-D03]",
  async (delivery) => {
    const script = `const w = (b) => new Promise((r) => process.stdout.write(b, r));
    const b = Buffer.from("订"); await w(b.subarray(0, 1)); await new Promise((r) => setTimeout(r, 100));
    await w(b.subarray(1)); await w("你".repeat(50000)); await w("🙂")`;
    const outcome = await callOnce(node(`(async () => { ${script} })()`, { delivery }));
    expect(outcome.deltas.join("") + textOf(outcome)).toBe(`订${"你".repeat(50_000)}🙂`);
    expect(outcome.deltas.every((delta) => delta.isWellFormed() && Buffer.byteLength(delta) <= 65_536)).toBe(true);
  },
);

test("10 MB of output are whole, with as much error output beside it [S-D04]", async () => {
  const script = `const e = "e".repeat(65536); for (let i = 0; i < 160; i++) require("fs").writeSync(2, e);
    process.stdout.write('{"x":"' + "y".repeat(1e7) + '"}')`;
  const outcome = await callOnce(node(script));
  const value = outcome.result?.value as JsonObject;
  expect(value["x"]).toHaveLength(10_000_000);
  expect(outcome.result?.failure).toBeUndefined();
});

test("output over the limit is an error that names it, and ends the program [S-D04]", async () => {
  await using folder = await testFolder();
  const script = "echo $$ > pid; exec cat /dev/zero";
  const outcome = await callOnce(sh(script, { maxResponseBytes: 1_000_000, folder: folder.path }));
  expect(outcome.error).toMatchObject({ reason: "RESULT_TOO_LARGE", effect: "unknown" });
  expect(outcome.error?.message).toBe("run_report: the program's output is larger than the limit of 1000000 bytes");
  const [pid] = await folder.waitForLines("pid", 1);
  expect(isAlive(Number(pid))).toBe(false);
});

test("incremental output is passed on as it appears", async () => {
  await using folder = await testFolder();
  const script = "echo one; while [ ! -e go ]; do sleep 0.01; done; printf two";
  await using tool = await openTool(sh(script, { folder: folder.path, delivery: "incremental" }));
  const events = invoke(tool)[Symbol.asyncIterator]();
  expect((await events.next()).value).toEqual({ type: "upstream-delta", text: "one\n" });
  await folder.program("go", "");
  expect((await events.next()).value).toEqual({ type: "upstream-delta", text: "two" });
  expect((await events.next()).value).toMatchObject({
    type: "upstream-result",
    result: { content: [], effect: "committed" },
  });
  expect(await events.next()).toMatchObject({ done: true });
});

test("`stream: lines` passes whole lines on", async () => {
  const keys = {
    command: "sh",
    args: ["-c", "printf on; sleep 0.1; printf 'e\\ntw'; sleep 0.1; printf o"],
    stream: "lines",
  };
  expect((await callOnce({ keys, delivery: "incremental" })).deltas).toEqual(["one\n", "two"]);
  expect(problemsOf({ keys })).toEqual([
    "/stream only `delivery: incremental` passes output on as it comes; add it, or remove `stream`",
  ]);
  const endless = { command: "cat", args: ["/dev/zero"], stream: "lines" };
  expect((await callOnce({ keys: endless, delivery: "incremental" })).error?.message).toContain(
    "one line of the program's output is longer",
  );
});

test("a failing program keeps what was streamed, and says why at the end", async () => {
  const outcome = await callOnce(sh("echo half; echo broken >&2; exit 4", { delivery: "incremental" }));
  expect(outcome.deltas).toEqual(["half\n"]);
  expect(outcome.result).toMatchObject({
    content: [],
    failure: { message: "run_report: the program ended with exit code 4: broken" },
  });
});

test("JSON in pieces makes no sense: with `format: json` an incremental tool gives it whole", async () => {
  const outcome = await callOnce(sh(`echo '{"a":1}'`, { delivery: "incremental", format: "json" }));
  expect(outcome).toMatchObject({ deltas: [], result: { value: { a: 1 } } });
});

test("a slow reader stops the program, not the gateway's memory", async () => {
  await using folder = await testFolder();
  const script = "i=0; while [ $i -lt 400 ]; do head -c 16384 /dev/zero; i=$((i + 1)); echo $i >> written; done";
  await using tool = await openTool(sh(script, { folder: folder.path, delivery: "incremental" }));
  const events = invoke(tool)[Symbol.asyncIterator]();
  await events.next();
  let before = -1;
  let written = 0;
  while (written !== before) {
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 300));
    written = (await folder.lines("written")).length;
  }
  expect(written * 16_384).toBeLessThan(2 * 1024 * 1024);
  let rest = 0;
  for (let step = await events.next(); step.done !== true; step = await events.next()) rest += 1;
  expect(rest).toBeGreaterThan(100);
  expect(await folder.lines("written")).toHaveLength(400);
});

test("an explained call shows the command line and the environment, secrets masked", async () => {
  const keys = { command: "echo", args: ["it's {a}"], env: { MODE: "fast", TOKEN: { secret_ref: "ORDER_API_TOKEN" } } };
  const environment = { ORDER_API_TOKEN: "tok-123456" };
  await using tool = await openTool({ keys, params: { a: { type: "string" } }, environment });
  const { exchange } = await call(tool, { a: "x" }, { explain: true, callId: "call-1" });
  expect(exchange).toMatchObject({ method: "RUN", url: "echo 'it'\\''s x'", requestBody: "", status: 0 });
  expect(exchange?.requestHeaders).toContainEqual(["MODE", "fast"]);
  expect(exchange?.requestHeaders).toContainEqual(["TOKEN", "***"]);
  expect(exchange?.requestHeaders).toContainEqual(["TOOLGATE_CALL_ID", "call-1"]);
  expect(exchange?.requestHeaders.map(([name]) => name)).not.toContain("PATH");
});
