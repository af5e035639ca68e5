import { expect, test } from "vitest";
import type { CallKey, Invoke } from "../../src/core/call.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { JsonObject } from "../../src/core/json.ts";
import type { Step, ToolPolicy } from "../../src/core/step.ts";
import type { ToolDefinition } from "../../src/core/tool.ts";
import { createPipelineSteps } from "../../src/pipeline/index.ts";
import { createSchemaChecker } from "../../src/pipeline/schema-checker.ts";
import { auditStep } from "../../src/pipeline/steps/audit.ts";
import { deadlineStep } from "../../src/pipeline/steps/deadline.ts";
import { idempotencyFieldStep } from "../../src/pipeline/steps/idempotency-field.ts";
import { ledgerStep } from "../../src/pipeline/steps/ledger.ts";
import { createValidateArgumentsStep } from "../../src/pipeline/steps/validate-arguments.ts";
import { testStepConformance } from "../conformance/step.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import {
  collect,
  invokeOf,
  makeCall,
  makeContext,
  makeTool,
  never,
  POLICY,
  RESULT,
  type RecordedLine,
  recordingLogger,
} from "./fixtures.ts";

const checker = createSchemaChecker({ maxCompiled: 10 });

test("the steps stand in this order, each compiled and tested by itself [S2-11]", () => {
  expect(createPipelineSteps({ checker }).map(({ name, scope }) => [name, scope])).toEqual([
    ["audit", "call"],
    ["continuation", "call"],
    ["argument_handles", "call"],
    ["validate-arguments", "call"],
    ["check-output", "call"],
    ["rate-limit", "call"],
    ["idempotency_field", "call"],
    ["reconcile", "call"],
    ["deadline", "call"],
    ["retry", "call"],
    ["hedge", "attempt"],
    ["circuit-breaker", "attempt"],
    ["concurrency", "attempt"],
    ["ledger", "attempt"],
    ["dispatch", "attempt"],
  ]);
});

for (const step of createPipelineSteps({ checker, handles: { value: async () => "kept" } })) {
  // Names who is asked about a call; no call passes through it.
  if (step.name === "reconcile") continue;
  // Of tools of servers alone: in its own test.
  if (step.name === "check-output" || step.name === "continuation") continue;
  testStepConformance({
    step,
    tool: makeTool(),
    policy: {
      ...POLICY,
      effectClass: step.name === "hedge" ? "read" : "write",
      retry: { ...POLICY.retry, maxRetries: 3 },
      hedge: { after: { ms: 100 }, max: 1 },
      concurrencyLimit: 100,
      rateLimit: { requests: 100, perMs: 1_000, burst: 100 },
    },
    config: step.name === "idempotency_field" ? "request_id" : undefined,
    call: makeCall(),
    makeContext: (signal) => makeContext({ signal, key: keyOf("k1") }),
  });
}

function keyOf(value: string, claim: () => Promise<void> = async () => undefined): CallKey & { acted: number } {
  const key = {
    value,
    forUpstream: `${value} of somebody`,
    acted: 0,
    claim,
    mayHaveActed: () => {
      key.acted += 1;
    },
  };
  return key;
}

function path(step: Step, tool: ToolDefinition = makeTool(), clock = createFakeClock()) {
  const interceptor = step.compile(tool, POLICY, { clock }, undefined);
  if (interceptor === undefined) throw new Error("not in the path");
  return interceptor;
}

test("a call is on record with its start, its end and what came of it [S2-81]", async () => {
  const lines: RecordedLine[] = [];
  const clock = createFakeClock();
  const adapter: Invoke = async function* () {
    await new Promise<void>((resolve) => void clock.after(12.5, resolve));
    yield { type: "upstream-result", result: { content: [], value: "secret", effect: "committed", upstreamCode: 200 } };
  };
  const context = makeContext({ logger: recordingLogger(lines), sessionId: "s1" });
  const run = collect(path(auditStep, makeTool(), clock)(makeCall({ n: 42 }), context, adapter));
  await clock.advance(20);
  await run;
  const facts = { callId: context.callId, tool: "order_status", principal: "anonymous", sessionId: "s1" };
  expect(lines).toEqual([
    { level: "debug", message: "tool-call-start", fields: facts },
    {
      level: "info",
      message: "tool-call-end",
      fields: { ...facts, ms: 12.5, outcome: "ok", upstreamCode: 200, effect: "committed", attempts: 1 },
    },
  ]);
  expect(JSON.stringify(lines)).not.toMatch(/42|secret/);
});

test("how long a call waited for its turn is on record, over all its attempts [S2-67]", async () => {
  const lines: RecordedLine[] = [];
  const wait = { type: "queue-enter", limit: 'tool "order_status"', position: 1 } as const;
  const adapter = invokeOf(
    wait,
    { type: "queue-leave", waitedMs: 20.25 },
    wait,
    { type: "queue-leave", waitedMs: 1.5 },
    RESULT,
  );
  await collect(path(auditStep)(makeCall(), makeContext({ logger: recordingLogger(lines) }), adapter));
  expect(lines[1]).toMatchObject({ message: "tool-call-end", fields: { queuedMs: 21.75, outcome: "ok" } });
});

test("a tool's own no is on record as failure with its reason and attempts", async () => {
  const lines: RecordedLine[] = [];
  const failure = {
    reason: "UPSTREAM_STATUS",
    message: "HTTP 404",
    upstreamCode: 404,
    retryable: false,
    upstreamFault: false,
  } as const;
  const adapter = invokeOf({ type: "upstream-result", result: { content: [], failure, effect: "none", attempts: 3 } });
  await collect(path(auditStep)(makeCall(), makeContext({ logger: recordingLogger(lines) }), adapter));
  expect(lines[1]).toMatchObject({
    level: "info",
    fields: { outcome: "failure", reason: "UPSTREAM_STATUS", effect: "none", attempts: 3 },
  });
});

test("an error is on record with its reason, and a fault of the gateway at level error with its cause", async () => {
  const lines: RecordedLine[] = [];
  const context = makeContext({ logger: recordingLogger(lines) });
  const cause = new Error("socket closed");
  const lost = new GatewayError("UPSTREAM_ANSWER_LOST", "lost", {
    effect: "unknown",
    cause,
    metadata: { limit: "read" },
  });
  const failing = (error: unknown): Invoke =>
    async function* () {
      throw error;
    };
  await expect(collect(path(auditStep)(makeCall(), context, failing(lost)))).rejects.toBe(lost);
  await expect(collect(path(auditStep)(makeCall(), context, failing(cause)))).rejects.toThrow("internal error");
  const ends = lines.filter((line) => line.message === "tool-call-end");
  expect(ends[0]).toMatchObject({
    level: "info",
    fields: {
      outcome: "error",
      reason: "UPSTREAM_ANSWER_LOST",
      effect: "unknown",
      metadata: { limit: "read" },
      error: lost,
    },
  });
  expect(ends[1]).toMatchObject({ level: "error", fields: { outcome: "error", reason: "INTERNAL" } });
});

test("refused arguments are on record without any of their values", async () => {
  const lines: RecordedLine[] = [];
  const error = new GatewayError("ARGUMENTS_INVALID", 'got "hunter2"', { cause: new Error("hunter2") });
  const failing: Invoke = async function* () {
    throw error;
  };
  const run = path(auditStep)(makeCall(), makeContext({ logger: recordingLogger(lines) }), failing);
  await expect(collect(run)).rejects.toBe(error);
  expect(lines[1]).toMatchObject({ level: "info", fields: { outcome: "error", reason: "ARGUMENTS_INVALID" } });
  expect(Object.keys(lines[1]?.fields ?? {})).not.toContain("error");
});

test("a reader that goes away before the end is on record", async () => {
  const lines: RecordedLine[] = [];
  const adapter = invokeOf({ type: "upstream-delta", text: "a" }, RESULT);
  for await (const _ of path(auditStep)(makeCall(), makeContext({ logger: recordingLogger(lines) }), adapter)) break;
  expect(lines[1]).toMatchObject({ message: "tool-call-end", fields: { outcome: "left" } });
});

test("wrong arguments are refused with each place named and the upstream is not reached [S2-30]", async () => {
  let reached = false;
  const adapter: Invoke = async function* () {
    reached = true;
    yield RESULT;
  };
  const inputSchema: JsonObject = {
    type: "object",
    properties: { order_id: { type: "string" }, n: { type: "integer" } },
    required: ["order_id"],
    additionalProperties: false,
  };
  const tool = makeTool({ inputSchema });
  const run = path(createValidateArgumentsStep(checker), tool)(makeCall({ n: "5" }), makeContext(), adapter);
  const error = await collect(run).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    reason: "ARGUMENTS_INVALID",
    effect: "none",
    message:
      'tool "order_status" was not called, its arguments are wrong: /order_id: required parameter missing; ask the user for it, do not guess; /n: expected integer, got string "5"',
    violations: [
      { field: "/order_id", reason: "MISSING" },
      { field: "/n", reason: "WRONG_TYPE" },
    ],
    metadata: { tool: "order_status" },
  });
  expect(reached).toBe(false);
});

test("the text of an error stays short however many arguments are wrong", async () => {
  const args = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`wrong_${i}_${"x".repeat(200)}`, i]));
  const tool = makeTool({ inputSchema: { type: "object", properties: {}, additionalProperties: false } });
  const run = path(createValidateArgumentsStep(checker), tool)(makeCall(args), makeContext(), invokeOf(RESULT));
  const error = await collect(run).catch((thrown: unknown) => thrown);
  if (!(error instanceof GatewayError)) throw new Error("not refused");
  expect(error.message.length).toBeLessThanOrEqual(1_500);
  expect(JSON.stringify(error.violations).length).toBeLessThan(5_000);
});

test("the next step sees the arguments with defaults filled in, and the caller's object stays as it was", async () => {
  const inputSchema: JsonObject = { type: "object", properties: { all: { type: "boolean", default: false } } };
  const args = Object.freeze({ q: "x" });
  let seen: unknown;
  const adapter: Invoke = async function* (call) {
    seen = call.arguments;
    yield RESULT;
  };
  const step = path(createValidateArgumentsStep(checker), makeTool({ inputSchema }));
  await collect(step(makeCall(args), makeContext(), adapter));
  expect(seen).toEqual({ q: "x", all: false });
  expect(args).toEqual({ q: "x" });
});

test("a call whose adapter ignores the signal ends with its reason, and may have taken effect", async () => {
  const clock = createFakeClock();
  const controller = new AbortController();
  const hanging: Invoke = async function* () {
    yield await never();
  };
  const run = collect(
    path(deadlineStep, makeTool(), clock)(makeCall(), makeContext({ signal: controller.signal }), hanging),
  );
  const ended = expect(run).rejects.toMatchObject({
    reason: "CALL_DEADLINE_EXCEEDED",
    effect: "unknown",
    retryable: false,
    metadata: { tool: "order_status", limit: "tool" },
  });
  await clock.advance(1_000);
  controller.abort(new GatewayError("CALL_DEADLINE_EXCEEDED", "too slow", { metadata: { limit: "tool" } }));
  await clock.advance(25);
  await ended;
  expect(clock.pending).toBe(0);
});

test("a read-only tool that is cut had no effect and may be called again", async () => {
  const clock = createFakeClock();
  const controller = new AbortController();
  const hanging: Invoke = async function* () {
    yield await never();
  };
  const context = makeContext({ signal: controller.signal });
  const run = collect(path(deadlineStep, makeTool({ hints: { readOnly: true } }), clock)(makeCall(), context, hanging));
  const ended = expect(run).rejects.toMatchObject({ effect: "none", retryable: true });
  await clock.advance(0);
  controller.abort(new GatewayError("CALL_DEADLINE_EXCEEDED", "too slow"));
  await clock.advance(25);
  await ended;
});

test("idempotency_field is filled with the caller's key, else with the call's id, over whatever the caller sent", async () => {
  const got: JsonObject[] = [];
  const adapter: Invoke = async function* (call) {
    got.push(call.arguments);
    yield RESULT;
  };
  const step = idempotencyFieldStep.compile(makeTool(), POLICY, { clock: createFakeClock() }, "request_id");
  if (step === undefined) throw new Error("not in the path");
  const context = makeContext();
  await collect(step(makeCall({ n: 1, request_id: "a model's" }), { ...context, key: keyOf("k1") }, adapter));
  await collect(step(makeCall({ n: 2 }), context, adapter));
  expect(got).toEqual([
    { n: 1, request_id: "k1 of somebody" },
    { n: 2, request_id: context.callId },
  ]);
});

function ledgerPath(effectClass: ToolPolicy["effectClass"] = "write") {
  const policy = { ...POLICY, effectClass };
  return ledgerStep.compile(makeTool(), policy, { clock: createFakeClock() }, undefined);
}

const recorded = path(ledgerStep);

test("a call with a key is claimed before it is dispatched, and not dispatched where it cannot be", async () => {
  const order: string[] = [];
  const adapter: Invoke = async function* () {
    order.push("dispatched");
    yield RESULT;
  };
  const key = keyOf("k1", async () => void order.push("claimed"));
  await collect(recorded(makeCall(), makeContext({ key }), adapter));
  expect(order).toEqual(["claimed", "dispatched"]);
  const broken = new GatewayError("LEDGER_UNAVAILABLE", "disk full");
  const refused = keyOf("k2", () => Promise.reject(broken));
  await expect(collect(recorded(makeCall(), makeContext({ key: refused }), adapter))).rejects.toBe(broken);
  expect(order).toHaveLength(2);
});

test("an attempt counts as without effect only where it says so", async () => {
  const effects: Readonly<Record<string, Invoke>> = {
    none: invokeOf(RESULT),
    committed: invokeOf({ type: "upstream-result", result: { content: [], effect: "committed" } }),
    refused: () => {
      throw new GatewayError("UPSTREAM_UNREACHABLE", "no connection");
    },
    lost: async function* () {
      yield { type: "upstream-delta", text: "a" };
      throw new GatewayError("UPSTREAM_ANSWER_LOST", "lost", { effect: "unknown" });
    },
  };
  const acted: Record<string, number> = {};
  for (const [name, adapter] of Object.entries(effects)) {
    const key = keyOf(name);
    await collect(recorded(makeCall(), makeContext({ key }), adapter)).catch(() => undefined);
    acted[name] = key.acted;
  }
  const left = keyOf("left");
  const lost = invokeOf({ type: "upstream-delta", text: "a" }, RESULT);
  for await (const _ of recorded(makeCall(), makeContext({ key: left }), lost)) break;
  expect({ ...acted, left: left.acted }).toEqual({ none: 0, committed: 1, refused: 0, lost: 1, left: 1 });
});

test("a call without a key, one that only validates, and a tool that only reads, are not claimed", async () => {
  const key = keyOf("k1", () => expect.unreachable());
  const adapter = invokeOf(RESULT);
  const plain = adapter(makeCall(), makeContext());
  expect(recorded(makeCall(), makeContext(), () => plain)).toBe(plain);
  await collect(recorded(makeCall({}, { validateOnly: true }), makeContext({ key }), adapter));
  expect(ledgerPath("read")).toBeUndefined();
});
