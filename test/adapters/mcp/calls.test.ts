import { expect, test } from "vitest";
import { GatewayError } from "../../../src/core/errors.ts";
import { call, invoke, openServer, testFolder, textOf } from "./fixture.ts";

test("a program's tools are listed and called [S2-99]", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  expect(server.upstream.availability()).toEqual({ state: "unavailable", reason: "starting", starting: true });
  await server.ready();
  expect(server.names()).toContain("quick");
  const outcome = await call(server, "quick");
  expect(outcome.error).toBeUndefined();
  expect(textOf(outcome)).toBe("ok");
  expect(outcome.result?.value).toEqual({ code: 0 });
});

test("progress in the same read as the answer comes before it, all of it", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  const { events } = await call(await server.ready(), "burst");
  expect(events.map((event) => (event.type === "progress" ? event.current : event.type))).toEqual([
    1,
    2,
    3,
    4,
    5,
    "upstream-result",
  ]);
});

test("an id that comes back as text is that of the request [M-D08]", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  const outcome = await call(await server.ready(), "text_id");
  expect(textOf(outcome)).toBe("text");
  expect(outcome.events[0]).toEqual({ type: "log", level: "info", message: "working" });
});

test("messages in arrays are taken one by one, and an empty array is nothing [M-D19]", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  await server.ready();
  const outcome = await call(server, "arrays");
  expect(textOf(outcome)).toBe("array");
  expect(outcome.events[0]).toMatchObject({ type: "log" });
  expect(textOf(await call(server, "empty_array"))).toBe("after");
});

test("lines that are no messages are skipped, counted, and shown by a probe [M-D01]", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  await server.ready();
  expect(textOf(await call(server, "noise"))).toBe("quiet again");
  expect(textOf(await call(server, "quick"))).toBe("ok");
  const report = await server.upstream.probe(new AbortController().signal);
  expect(report).toMatchObject({ ok: true, mend: "" });
  expect(report.message).toMatch(/^fake 1\.0\.0 speaks MCP 2025-11-25 and has \d+ tools; 3 lines .* \{"level":30,/);
});

test("every caller gets the answer to its own call, whatever the order of the answers [M-D23]", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  await server.ready();
  const answers = Array.from({ length: 200 }, async (_, i) => textOf(await call(server, "whoami", { token: `t${i}` })));
  expect(await Promise.all(answers)).toEqual(Array.from({ length: 200 }, (_, i) => `t${i}`));
});

test("a cancel is told to the server once, with the id of the call, and what comes late is dropped [M-D10]", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  await server.ready();
  const controller = new AbortController();
  const ended = call(server, "late", { ms: 1_000 }, { signal: controller.signal });
  const other = call(server, "late", { ms: 1_200 });
  await folder.waitFor('"late"');
  controller.abort(new GatewayError("CALL_CANCELLED", "stopped by the test"));
  expect((await ended).error).toMatchObject({ reason: "CALL_CANCELLED", effect: "unknown" });
  expect(textOf(await other)).toBe("late");
  const sent = folder.lines().filter((line) => line.startsWith("{"));
  const late = sent.find((line) => line.includes('"late"'));
  const cancels = sent.filter((line) => line.includes("notifications/cancelled"));
  expect(cancels).toHaveLength(1);
  expect(JSON.parse(cancels[0] ?? "")).toMatchObject({
    params: { requestId: (JSON.parse(late ?? "") as { id: number }).id },
  });
});

test("progress keeps a call alive beyond its idle limit, and a token is sent always [M-D09]", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake(), timeouts: { readMs: 2_000, idleMs: 2_000 } });
  await server.ready();
  const outcome = await call(server, "steps", { count: 9, ms: 250 });
  expect(textOf(outcome)).toBe("done");
  expect(outcome.events.filter(({ type }) => type === "progress")).toHaveLength(9);
});

test("a server that gives no sign within the limit is told that the call is over [M-D10] [R-D08]", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake(), timeouts: { readMs: 100 } });
  await server.ready();
  const { error } = await call(server, "silent");
  expect(error).toMatchObject({ reason: "UPSTREAM_TIMEOUT", effect: "unknown", metadata: { limit: "read" } });
  await folder.waitFor("notifications/cancelled");
});

test.for([
  ["silent", "read"],
  ["endless", "idle"],
] as const)("a call of `%s` whose deadline passes says that it was at `%s`", async ([tool, phase]) => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  await server.ready();
  const controller = new AbortController();
  const events = invoke(server, tool, {}, { signal: controller.signal })[Symbol.asyncIterator]();
  const first = events.next();
  await folder.waitFor("tools/call");
  if (phase === "idle") await first;
  const ended = phase === "idle" ? events.next() : first;
  controller.abort(new GatewayError("CALL_DEADLINE_EXCEEDED", "too late"));
  await expect(ended).rejects.toMatchObject({ reason: "CALL_DEADLINE_EXCEEDED", metadata: { phase } });
});

test("integers of 64 bits keep their digits both ways", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  await server.ready();
  const { result } = await call(server, "digits", { id: 9_007_199_254_740_993n });
  expect(result?.value).toEqual({ id: 9_007_199_254_740_993n, echo: expect.anything() as unknown });
  expect(folder.lines().some((line) => line.includes('"id":9007199254740993'))).toBe(true);
});

test("trace context and deadline go along with a call", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  await server.ready();
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const trace = { traceparent, tracestate: "vendor=1,other=2", baggage: "user=7" };
  const outcome = await call(server, "meta", {}, { ...trace, deadlineMs: Date.UTC(2030, 0, 1) });
  expect(JSON.parse(textOf(outcome))).toMatchObject({ ...trace, "toolgate/deadline": "2030-01-01T00:00:00.000Z" });
  const without = JSON.parse(textOf(await call(server, "meta")));
  for (const key of Object.keys(trace)) expect(without).not.toHaveProperty(key);
});

test("an answer over the limit is an error, and the server goes on", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake(), maxResponseBytes: 10_000 });
  await server.ready();
  const { error } = await call(server, "huge", { bytes: 20_000 });
  expect(error).toMatchObject({ reason: "RESULT_TOO_LARGE", effect: "unknown" });
  const beyond = await call(server, "huge", { bytes: 17 * 1024 * 1024 });
  expect(beyond.error).toMatchObject({ reason: "RESULT_TOO_LARGE" });
  expect(textOf(await call(server, "quick"))).toBe("ok");
});

test("an error of the protocol is a failure of the call", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  const { result } = await call(await server.ready(), "rpc_error");
  expect(result?.failure).toMatchObject({ reason: "UPSTREAM_REJECTED", upstreamCode: -32_602 });
});

test("a reader that is slow loses old progress, never the answer", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  await server.ready();
  const events = invoke(server, "burst")[Symbol.asyncIterator]();
  await events.next();
  await folder.waitFor('"burst"');
  let last: unknown;
  for (let step = await events.next(); step.done !== true; step = await events.next()) last = step.value;
  expect(last).toMatchObject({ type: "upstream-result" });
});
