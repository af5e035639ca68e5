import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { expect, onTestFinished, test } from "vitest";
import { Effect } from "../../gen/toolgate/v1/errors_pb.ts";
import { type CallStreamResponse, ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { CallContext, ToolEvent } from "../../src/core/call.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Principal } from "../../src/core/principal.ts";
import { collect, failureOf } from "./clients.ts";
import { completed, type Run, textResult } from "./fake-registry.ts";
import { createKept, grpcClients, PATIENT, recordingLogger, type Served, serve } from "./serve.ts";

/** A tool whose calls wait until they are let go on. */
function gate() {
  const contexts: CallContext[] = [];
  const ended: unknown[] = [];
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const run: Run = async function* (_call, context) {
    contexts.push(context);
    await context.key?.claim();
    yield { type: "delta", index: 0, text: "one " };
    yield { type: "progress", current: 1, total: 2, message: "half" };
    try {
      await Promise.race([opened, aborted(context.signal)]);
      if (context.signal.aborted) throw GatewayError.from(context.signal.reason);
    } catch (error) {
      ended.push(error);
      throw new GatewayError("UPSTREAM_ANSWER_LOST", "lost", { effect: "unknown" });
    }
    yield { type: "delta", index: 0, text: "two" };
    yield { ...completed({ ...textResult(""), content: [] }), effect: "committed" } as ToolEvent;
  };
  return { run, contexts, ended, open };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

const WINDOW = { seconds: 20n, nanos: 0 };

async function serving(tool: Run, options: Parameters<typeof serve>[0] = {}): Promise<Served> {
  const kept = options.kept ?? createKept();
  const served = await serve({ kept, ...options });
  onTestFinished(async () => {
    await served[Symbol.asyncDispose]();
    await kept[Symbol.asyncDispose]();
  });
  served.registry.add({ name: "pay" }, tool);
  return served;
}

function textOf(messages: readonly CallStreamResponse[]): string {
  return messages
    .map(({ event }) => (event.case === "output" && event.value.delta.case === "text" ? event.value.delta.value : ""))
    .join("");
}

const pay = { name: "pay", requestId: "k1" };

test("calls with the same key at the same time run once, and each gets the whole output [S2-72]", async () => {
  const { run, contexts, open } = gate();
  const logger = recordingLogger();
  const served = await serving(run, { logger });
  const { tools } = grpcClients(served.url);
  const streams = [1, 2, 3].map(() => collect(tools.callStream({ invocation: pay })));
  const unary = tools.call({ invocation: pay });
  // A caller has its lease from when it joins.
  await expect.poll(() => served.registry.leases, PATIENT).toBe(4);
  open();
  const all = await Promise.all(streams);
  for (const messages of all) {
    expect(messages.map(({ event }) => event.case)).toEqual(["started", "output", "progress", "output", "completed"]);
    expect(messages.map(({ sequence }) => sequence)).toEqual([0n, 1n, 2n, 3n, 4n]);
    expect(textOf(messages)).toBe("one two");
  }
  const ends = all.map((messages) => messages.at(-1)?.event);
  const replayed = ends.map((end) => end?.case === "completed" && end.value.stats?.replayed);
  expect(replayed.filter((each) => each === true)).toHaveLength(2);
  const response = await unary;
  expect(response.stats?.replayed).toBe(true);
  expect(response.result?.content).toMatchObject([{ part: { case: "text", value: "one two" } }]);
  expect(contexts).toHaveLength(1);
  expect(contexts[0]?.key?.value).toBe("k1");
  const ids = new Set([...all.map((messages) => startedOf(messages)?.callId), response.callId]);
  expect(ids.size).toBe(4);
  const joined = logger.lines.filter(({ message }) => message === "tool-call-end");
  expect(joined.map(({ fields }) => [fields["joined"], fields["replayed"], fields["outcome"]])).toEqual(
    Array.from({ length: 3 }, () => [contexts[0]?.callId, true, "ok"]),
  );
});

function startedOf(messages: readonly CallStreamResponse[]) {
  const [first] = messages;
  return first?.event.case === "started" ? first.event.value : undefined;
}

test("a call whose key was answered before gets that answer, for as long as it is kept", async () => {
  const { run, contexts, open } = gate();
  open();
  const logger = recordingLogger();
  const served = await serving(run, { logger });
  const { tools } = grpcClients(served.url);
  const first = await tools.call({ invocation: pay });
  const again = await tools.call({ invocation: pay });
  const [started, end] = await collect(tools.callStream({ invocation: pay }));
  expect([first.stats?.replayed, again.stats?.replayed]).toEqual([false, true]);
  expect(again.result).toEqual(first.result);
  expect(started?.event.case).toBe("started");
  expect(end?.event).toMatchObject({ case: "completed", value: { result: first.result, stats: { replayed: true } } });
  expect(contexts).toHaveLength(1);
  const ends = logger.lines.filter(({ message }) => message === "tool-call-end");
  expect(ends.map(({ fields }) => fields)).toMatchObject([
    { tool: "pay", principal: "anonymous", replayed: true, outcome: "ok", effect: "committed" },
    { replayed: true },
  ]);
});

test("other arguments under the same key are refused, while the call runs and afterwards", async () => {
  const { run, contexts, open } = gate();
  const served = await serving(run);
  const { tools } = grpcClients(served.url);
  const first = tools.call({ invocation: pay });
  await expect.poll(() => contexts.length, PATIENT).toBe(1);
  const other = { ...pay, arguments: { case: "argumentsJson", value: '{"amount":2}' } } as const;
  const refused = { code: Code.InvalidArgument, reason: "REQUEST_ID_REUSED", metadata: { request_id: "k1" } };
  expect(await failureOf(tools.call({ invocation: other }))).toMatchObject(refused);
  open();
  await first;
  expect(await failureOf(tools.call({ invocation: other }))).toMatchObject(refused);
  expect(contexts).toHaveLength(1);
});

test("calls without a key, of other keys, tools and callers do not touch each other", async () => {
  const { run, contexts, open } = gate();
  open();
  let caller: Principal = { id: "a", roles: [] };
  const served = await serving(run, { authenticate: async () => caller });
  served.registry.add({ name: "other" }, run);
  const { tools } = grpcClients(served.url);
  await tools.call({ invocation: { name: "pay" } });
  await tools.call({ invocation: { name: "pay" } });
  await tools.call({ invocation: pay });
  await tools.call({ invocation: { ...pay, requestId: "k2" } });
  await tools.call({ invocation: { ...pay, name: "other" } });
  caller = { id: "b", roles: [] };
  const response = await tools.call({ invocation: pay });
  expect(response.stats?.replayed).toBe(false);
  expect(contexts).toHaveLength(6);
});

test("the first caller leaves and the call goes on for those who joined; the last one ends it", async () => {
  const { run, contexts, ended, open } = gate();
  const served = await serving(run);
  const { tools } = grpcClients(served.url);
  const callers = [1, 2, 3].map(() => new AbortController());
  const calls: Promise<unknown>[] = [];
  for (const { signal } of callers) {
    calls.push(tools.call({ invocation: pay }, { signal }).catch((error: unknown) => error));
    await expect.poll(() => contexts.length, PATIENT).toBe(1);
  }
  await expect.poll(() => served.registry.leases, PATIENT).toBe(3);
  callers[0]?.abort();
  callers[1]?.abort();
  expect(await calls[0]).toMatchObject({ code: Code.Canceled });
  // That of the caller that began the call stays for as long as the call.
  await expect.poll(() => served.registry.leases, PATIENT).toBe(2);
  expect(ended).toEqual([]);
  callers[2]?.abort();
  await expect.poll(() => ended, PATIENT).toMatchObject([{ reason: "CALL_CANCELLED" }]);
  await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
  // Nobody knows what the call that was cut did.
  open();
  expect(await failureOf(tools.call({ invocation: pay }))).toMatchObject({
    code: Code.Unknown,
    reason: "OUTCOME_UNKNOWN",
    detail: { effect: Effect.UNKNOWN },
  });
  expect(contexts).toHaveLength(1);
});

test("a joined call ends for a caller at its own deadline and goes on for the others", async () => {
  const { run, contexts, open } = gate();
  const served = await serving(run);
  const { tools } = grpcClients(served.url);
  const patient = tools.call({ invocation: pay });
  await expect.poll(() => contexts.length, PATIENT).toBe(1);
  const timeout = { seconds: 0n, nanos: 200_000_000 };
  expect(await failureOf(tools.call({ invocation: { ...pay, timeout } }))).toMatchObject({
    reason: "CALL_DEADLINE_EXCEEDED",
    detail: { effect: Effect.UNKNOWN },
  });
  open();
  expect((await patient).result?.content).toHaveLength(1);
});

test("a call with a key ends at the deadline of the caller that began it", async () => {
  const { run, contexts, ended } = gate();
  const served = await serving(run);
  const { tools } = grpcClients(served.url);
  const timeout = { seconds: 0n, nanos: 300_000_000 };
  const first = failureOf(tools.call({ invocation: { ...pay, timeout } }));
  await expect.poll(() => contexts.length, PATIENT).toBe(1);
  const second = failureOf(tools.call({ invocation: pay }));
  await expect.poll(() => ended, PATIENT).toMatchObject([{ reason: "CALL_DEADLINE_EXCEEDED" }]);
  expect([(await first).detail?.effect, (await second).detail?.effect]).toEqual([Effect.UNKNOWN, Effect.UNKNOWN]);
  await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
});

test("what is refused before it is dispatched leaves no trace of its key", async () => {
  let refuse = true;
  const served = await serving(async function* (_call, context) {
    if (refuse) throw new GatewayError("ARGUMENTS_INVALID", "wrong");
    await context.key?.claim();
    yield completed();
  });
  const { tools } = grpcClients(served.url);
  expect((await failureOf(tools.call({ invocation: pay }))).reason).toBe("ARGUMENTS_INVALID");
  refuse = false;
  const mended = { ...pay, arguments: { case: "argumentsJson", value: '{"amount":2}' } } as const;
  expect((await tools.call({ invocation: mended })).stats?.replayed).toBe(false);
});

test("a call that only validates does not use up its key", async () => {
  const served = await serving(async function* (_call, context) {
    expect(context.key).toBeUndefined();
    yield completed();
  });
  const { tools } = grpcClients(served.url);
  for (const _ of [1, 2]) {
    expect((await tools.call({ invocation: { ...pay, validateOnly: true } })).stats?.replayed).toBe(false);
  }
});

/** Reads a stream until it has so many messages, on a connection of its own that can be cut. */
async function readUntil(
  url: string,
  request: Parameters<ReturnType<typeof grpcClients>["tools"]["callStream"]>[0],
  count: number,
  how: "cut" | "cancel",
): Promise<CallStreamResponse[]> {
  const sessionManager = new Http2SessionManager(url);
  onTestFinished(() => sessionManager.abort());
  const client = createClient(ToolGatewayService, createGrpcTransport({ baseUrl: url, sessionManager }));
  const controller = new AbortController();
  const messages: CallStreamResponse[] = [];
  try {
    for await (const message of client.callStream(request, { signal: controller.signal })) {
      if (messages.push(message) < count) continue;
      if (how === "cancel") controller.abort();
      else sessionManager.abort();
    }
  } catch (error) {
    expect(error).toBeInstanceOf(ConnectError);
  }
  return messages;
}

test("a stream whose connection is lost goes on and is resumed, without a message lost or told twice", async () => {
  const { run, contexts, ended, open } = gate();
  const served = await serving(run);
  const { tools } = grpcClients(served.url);
  const invocation = { name: "pay" };
  const before = await readUntil(served.url, { invocation, resumeWindow: WINDOW }, 2, "cut");
  const { callId = "", resumeWindow } = startedOf(before) ?? {};
  expect(resumeWindow).toMatchObject(WINDOW);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(ended).toEqual([]);
  setTimeout(open, 100);
  const afterSequence = before.at(-1)?.sequence ?? 0n;
  const after = await collect(tools.callStream({ resume: { callId, afterSequence } }));
  const messages = [...before, ...after];
  expect(messages.map(({ event }) => event.case)).toEqual(["started", "output", "progress", "output", "completed"]);
  expect(messages.map(({ sequence }) => sequence)).toEqual([0n, 1n, 2n, 3n, 4n]);
  expect(contexts).toHaveLength(1);
  // Also once it has ended, and from any place: the last messages may have been lost too.
  for (const place of [0n, 2n, 3n]) {
    const again = await collect(tools.callStream({ resume: { callId, afterSequence: place } }));
    expect(again.map(({ sequence }) => sequence)).toEqual([0n, 1n, 2n, 3n, 4n].slice(Number(place) + 1));
  }
  await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
});

test("a stream that is cancelled ends its call at once, whatever was asked for", async () => {
  const { run, ended } = gate();
  const served = await serving(run);
  const { tools } = grpcClients(served.url);
  const before = await readUntil(served.url, { invocation: { name: "pay" }, resumeWindow: WINDOW }, 2, "cancel");
  await expect.poll(() => ended, PATIENT).toMatchObject([{ reason: "CALL_CANCELLED" }]);
  const { callId = "" } = startedOf(before) ?? {};
  const failure = await failureOf(collect(tools.callStream({ resume: { callId, afterSequence: 1n } })));
  expect(failure).toMatchObject({
    reason: "RESUME_EXPIRED",
    code: Code.OutOfRange,
    detail: { effect: Effect.UNKNOWN },
  });
});

test("a lost connection ends the call at once where no window was asked for, or none is granted", async () => {
  for (const [resumeWindow, windowMs] of [[undefined, 60_000] as const, [WINDOW, 0] as const]) {
    const { run, ended } = gate();
    const served = await serving(run, { kept: createKept({ windowMs }) });
    const request = { invocation: { name: "pay" }, ...(resumeWindow === undefined ? {} : { resumeWindow }) };
    const before = await readUntil(served.url, request, 2, "cut");
    expect(startedOf(before)?.resumeWindow).toBeUndefined();
    await expect.poll(() => ended, PATIENT).toMatchObject([{ reason: "CALL_CANCELLED" }]);
  }
});

test("a caller that does not come back in time ends its call, and is told so afterwards", async () => {
  const { run, ended } = gate();
  const served = await serving(run, { kept: createKept({ windowMs: 200 }) });
  const { tools } = grpcClients(served.url);
  const before = await readUntil(served.url, { invocation: { name: "pay" }, resumeWindow: WINDOW }, 2, "cut");
  const { callId = "", resumeWindow } = startedOf(before) ?? {};
  expect(resumeWindow).toMatchObject({ seconds: 0n, nanos: 200_000_000 });
  await expect.poll(() => ended, PATIENT).toMatchObject([{ reason: "CALL_CANCELLED" }]);
  const resume = { callId, afterSequence: 1n };
  await expect
    .poll(async () => (await failureOf(collect(tools.callStream({ resume })))).reason, PATIENT)
    .toBe("RESUME_EXPIRED");
});

test("another caller's stream is as good as none, and so is one that never was", async () => {
  const { run, open } = gate();
  let caller: Principal = { id: "a", roles: [] };
  const served = await serving(run, { authenticate: async () => caller });
  const { tools } = grpcClients(served.url);
  const before = await readUntil(served.url, { invocation: { name: "pay" }, resumeWindow: WINDOW }, 2, "cut");
  const { callId = "" } = startedOf(before) ?? {};
  const resume = { callId, afterSequence: 1n };
  caller = { id: "b", roles: ["operator"] };
  const foreign = await failureOf(collect(tools.callStream({ resume })));
  const nowhere = "0190f3a0-0000-7000-8000-000000000000";
  const unknown = await failureOf(collect(tools.callStream({ resume: { callId: nowhere, afterSequence: 1n } })));
  expect(foreign).toMatchObject({ code: Code.NotFound, reason: "CALL_NOT_FOUND" });
  expect(foreign.message.replace(callId, nowhere)).toBe(unknown.message);
  caller = { id: "a", roles: [] };
  open();
  expect(textOf(await collect(tools.callStream({ resume })))).toBe("two");
});

test("a resumed stream is sent away from its old connection", async () => {
  const { run, contexts, open } = gate();
  const served = await serving(run);
  const { tools } = grpcClients(served.url);
  const old = tools.callStream({ invocation: { name: "pay" }, resumeWindow: WINDOW })[Symbol.asyncIterator]();
  const started = (await old.next()).value;
  const { callId = "" } = startedOf([started]) ?? {};
  const resumed = collect(tools.callStream({ resume: { callId, afterSequence: 0n } }));
  await expect(collect({ [Symbol.asyncIterator]: () => old })).rejects.toMatchObject({ code: Code.Canceled });
  open();
  expect(textOf(await resumed)).toBe("one two");
  expect(contexts).toHaveLength(1);
});

test("who is sent away by a resumed stream is told that the call may yet take effect", async () => {
  const { run, open } = gate();
  const served = await serving(run);
  const { tools } = grpcClients(served.url);
  const old = tools.callStream({ invocation: { name: "pay" }, resumeWindow: WINDOW })[Symbol.asyncIterator]();
  const { callId = "" } = startedOf([(await old.next()).value]) ?? {};
  const resumed = collect(tools.callStream({ resume: { callId, afterSequence: 0n } }));
  const failure = await failureOf(collect({ [Symbol.asyncIterator]: () => old }));
  expect(failure).toMatchObject({ reason: "CALL_CANCELLED", detail: { effect: Effect.UNKNOWN } });
  open();
  await resumed;
});

test.each([
  ["invocation", { invocation: { name: "pay" }, resume: { callId: "x", afterSequence: 0n } }],
  ["resume.call_id", { resume: { callId: "", afterSequence: 0n } }],
  ["resume_window", { invocation: { name: "pay" }, resumeWindow: { seconds: -1n, nanos: 0 } }],
])("a wrong `%s` is refused", async (field, request) => {
  const served = await serving(gate().run);
  const { tools } = grpcClients(served.url);
  const failure = await failureOf(collect(tools.callStream(request)));
  expect(failure).toMatchObject({ reason: "REQUEST_INVALID", fields: [field] });
});

test("a message that has not been sent cannot be resumed after", async () => {
  const { run } = gate();
  const served = await serving(run);
  const { tools } = grpcClients(served.url);
  const before = await readUntil(served.url, { invocation: { name: "pay" }, resumeWindow: WINDOW }, 3, "cut");
  const { callId = "" } = startedOf(before) ?? {};
  for (const afterSequence of [3n, 2n ** 64n - 1n]) {
    const failure = await failureOf(collect(tools.callStream({ resume: { callId, afterSequence } })));
    expect(failure).toMatchObject({ reason: "REQUEST_INVALID", fields: ["resume.after_sequence"] });
  }
});

test("heartbeats are numbered too, so a resumed stream has no gap", async () => {
  const { run, open } = gate();
  const served = await serving(run);
  const { tools } = grpcClients(served.url);
  const heartbeat = { seconds: 0n, nanos: 100_000_000 };
  const request = { invocation: { name: "pay" }, resumeWindow: WINDOW, heartbeat };
  const before = await readUntil(served.url, request, 5, "cut");
  expect(before.map(({ event }) => event.case).slice(3)).toEqual(["heartbeat", "heartbeat"]);
  const { callId = "" } = startedOf(before) ?? {};
  setTimeout(open, 250);
  const after = await collect(tools.callStream({ resume: { callId, afterSequence: 4n }, heartbeat }));
  const sequences = [...before, ...after].map(({ sequence }) => Number(sequence));
  expect(sequences).toEqual(sequences.map((_, i) => i));
  expect(after.at(-1)?.event.case).toBe("completed");
});

test("only so many streams are kept at a time; one that ended makes room", async () => {
  const { run, open } = gate();
  const served = await serving(run, { kept: createKept({ calls: 1 }) });
  const { tools } = grpcClients(served.url);
  const request = { invocation: { name: "pay" }, resumeWindow: WINDOW };
  const streams = [1, 2].map(() => tools.callStream(request)[Symbol.asyncIterator]());
  const windows: unknown[] = [];
  for (const stream of streams) windows.push(startedOf([(await stream.next()).value])?.resumeWindow?.seconds);
  expect(windows).toEqual([20n, undefined]);
  open();
  for (const stream of streams) await collect({ [Symbol.asyncIterator]: () => stream });
  expect(startedOf(await collect(tools.callStream(request)))?.resumeWindow?.seconds).toBe(20n);
});

test("a stream that outgrows what is kept cannot be resumed from its beginning, but from later on", async () => {
  const kept = createKept({ callMemoryBytes: 4_096, callDiskBytes: 16_384 });
  const served = await serving(
    async function* () {
      for (let i = 0; i < 200; i++) yield { type: "delta", index: 0, text: `${i} `.padEnd(500, ".") };
      yield completed({ ...textResult(""), content: [] });
    },
    { kept },
  );
  const { tools } = grpcClients(served.url);
  const all = await collect(tools.callStream({ invocation: { name: "pay" }, resumeWindow: WINDOW }));
  expect(all).toHaveLength(202);
  const { callId = "" } = startedOf(all) ?? {};
  const failure = await failureOf(collect(tools.callStream({ resume: { callId, afterSequence: 5n } })));
  expect(failure.reason).toBe("RESUME_EXPIRED");
  const late = await collect(tools.callStream({ resume: { callId, afterSequence: 190n } }));
  expect(late.map(({ sequence }) => sequence)).toEqual(all.slice(191).map(({ sequence }) => sequence));
  expect(textOf(late)).toBe(textOf(all.slice(191)));
});

test("a gateway that stops ends what nobody reads, too, and frees everything", async () => {
  const { run, ended } = gate();
  const kept = createKept();
  const served = await serving(run, { kept });
  await readUntil(served.url, { invocation: { name: "pay" }, resumeWindow: WINDOW }, 2, "cut");
  await served.door.stop();
  expect(ended).toEqual([]);
  await kept[Symbol.asyncDispose]();
  expect(ended).toMatchObject([{ reason: "GATEWAY_STOPPING" }]);
  expect(served.registry.leases).toBe(0);
});

test("over HTTP/1.1 a stream that is left is a lost one", async () => {
  const { run, ended } = gate();
  const served = await serving(run, { kept: createKept({ windowMs: 300 }) });
  const body = JSON.stringify({ invocation: { name: "pay" }, resumeWindow: "20s" });
  const enveloped = Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), Buffer.from(body)]);
  const controller = new AbortController();
  const response = await fetch(`${served.url}/toolgate.v1.ToolGatewayService/CallStream`, {
    method: "POST",
    headers: { "content-type": "application/connect+json" },
    body: enveloped,
    signal: controller.signal,
  });
  await response.body?.getReader().read();
  const leftAtMs = performance.now();
  controller.abort();
  await expect.poll(() => ended, PATIENT).toMatchObject([{ reason: "CALL_CANCELLED" }]);
  expect(performance.now() - leftAtMs).toBeGreaterThan(250);
});
