import { expect, test } from "vitest";
import type { Invoke, ToolCall, UpstreamEvent, UpstreamResult } from "../../../src/core/call.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import type { InputAnswer, InputRequest } from "../../../src/core/input-request.ts";
import { PendingInputs } from "../../../src/pipeline/pending-inputs.ts";
import { createSchemaChecker } from "../../../src/pipeline/schema-checker.ts";
import { createContinuationStep } from "../../../src/pipeline/steps/continuation.ts";
import { testStepConformance } from "../../conformance/step.ts";
import { createFakeClock } from "../../core/fake-clock.ts";
import { collect, makeCall, makeContext, makeTool, POLICY } from "../fixtures.ts";

const checker = createSchemaChecker({ maxCompiled: 10 });

const FORM: InputRequest = {
  kind: "form",
  message: "Which size?",
  schema: { type: "object", properties: { size: { type: "integer" } }, required: ["size"] },
  params: { message: "Which size?" },
};

const ASKS: UpstreamResult = {
  content: [],
  needsInput: { requests: new Map([["q1", FORM]]), state: "upstream-secret-state" },
  effect: "unknown",
};

const DONE: UpstreamResult = { content: [], value: "done", effect: "committed" };

/** A server's tool that gives these results, one a call, and what it was called with. */
function bench(...results: readonly (UpstreamResult | GatewayError)[]) {
  const calls: ToolCall[] = [];
  const left = [...results];
  const adapter: Invoke = async function* (call) {
    calls.push(call);
    const result = left.shift();
    if (result instanceof GatewayError) throw result;
    yield { type: "upstream-result", result: result ?? DONE };
  };
  const step = createContinuationStep(checker, new PendingInputs());
  const intercept = step.compile(makeTool({ kind: "mcp" }), POLICY, { clock: createFakeClock() }, undefined);
  if (intercept === undefined) throw new Error("not in the path");
  const run = async (call: ToolCall, principal = "anonymous"): Promise<UpstreamResult> => {
    const context = makeContext({ principal: { id: principal, roles: [] } });
    const events: UpstreamEvent[] = await collect(intercept(call, context, adapter));
    const last = events.at(-1);
    if (last?.type !== "upstream-result") throw new Error("no result");
    return last.result;
  };
  return { run, calls };
}

function answered(state: string, answers: Record<string, InputAnswer>): ToolCall {
  return makeCall({}, { continuation: { state, answers: new Map(Object.entries(answers)) } });
}

const YES = { q1: { action: "accept", content: { size: 42 } } } as const;

testStepConformance({
  step: createContinuationStep(checker),
  tool: makeTool({ kind: "mcp" }),
  policy: POLICY,
  call: makeCall(),
  makeContext: (signal) => makeContext({ signal }),
});

test("a tool that asks gets its answer with the call that goes on, and its own state stays in the gateway", async () => {
  const { run, calls } = bench(ASKS);
  const asked = await run(makeCall({ n: 7 }, { acceptsInput: true }));
  const state = asked.needsInput?.state ?? "";
  expect(state).not.toContain("upstream");
  expect(asked.needsInput).toMatchObject({ expiresInMs: 600_000, requests: new Map([["q1", FORM]]) });
  expect(await run(answered(state, YES))).toEqual(DONE);
  expect(calls[1]).toMatchObject({
    arguments: { n: 7 },
    acceptsInput: true,
    continuation: { state: "upstream-secret-state", answers: new Map(Object.entries(YES)) },
  });
  await expect(run(answered(state, YES))).rejects.toMatchObject({ reason: "CONTINUATION_NOT_FOUND" });
});

test("a caller that does not accept input gets a failure that says what the tool wanted", async () => {
  const { run, calls } = bench(ASKS);
  const result = await run(makeCall());
  expect(result.needsInput).toBeUndefined();
  expect(result.failure).toMatchObject({ reason: "INPUT_REQUIRED", upstreamFault: false, retryable: false });
  expect(result.failure?.message).toContain('form "Which size?"');
  expect(calls).toHaveLength(1);
});

test("the state of a caller is nobody else's", async () => {
  const { run, calls } = bench(ASKS);
  const asked = await run(makeCall({}, { acceptsInput: true }), "a");
  const state = asked.needsInput?.state ?? "";
  await expect(run(answered(state, YES), "b")).rejects.toMatchObject({ reason: "CONTINUATION_NOT_FOUND" });
  expect(await run(answered(state, YES), "a")).toEqual(DONE);
  expect(calls).toHaveLength(2);
});

test.each([
  [{}, "/q1", "MISSING"],
  [{ ...YES, q2: { action: "decline" } }, "/q2", "UNKNOWN"],
  [{ q1: { action: "accept", content: { size: "big" } } }, "/q1/content/size", "WRONG_TYPE"],
  [{ q1: { action: "accept", content: {} } }, "/q1/content/size", "MISSING"],
] as const)(
  "answers that do not fit are refused, and the state may be answered again: %j",
  async (answers, place, reason) => {
    const { run, calls } = bench(ASKS);
    const asked = await run(makeCall({}, { acceptsInput: true }));
    const state = asked.needsInput?.state ?? "";
    await expect(run(answered(state, answers))).rejects.toMatchObject({
      reason: "REQUEST_INVALID",
      violations: [{ field: `invocation.continuation.inputs_json${place}`, reason }],
    });
    expect(calls).toHaveLength(1);
    expect(await run(answered(state, { q1: { action: "decline" } }))).toEqual(DONE);
  },
);

test("a continuation that surely did nothing may be sent again, one that may have acted may not", async () => {
  const nothing = new GatewayError("RATE_LIMITED", "later");
  const lost = new GatewayError("UPSTREAM_ANSWER_LOST", "lost", { effect: "unknown" });
  const { run } = bench(ASKS, nothing, lost);
  const asked = await run(makeCall({}, { acceptsInput: true }));
  const state = asked.needsInput?.state ?? "";
  await expect(run(answered(state, YES))).rejects.toBe(nothing);
  await expect(run(answered(state, YES))).rejects.toBe(lost);
  await expect(run(answered(state, YES))).rejects.toMatchObject({ reason: "CONTINUATION_NOT_FOUND" });
});

test("a tool may ask again, under another state", async () => {
  const { run } = bench(ASKS, ASKS);
  const first = (await run(makeCall({ n: 7 }, { acceptsInput: true }))).needsInput?.state ?? "";
  const second = (await run(answered(first, YES))).needsInput?.state ?? "";
  expect(second).not.toBe(first);
  expect(await run(answered(second, YES))).toEqual(DONE);
});

test("a tool of a kind that never asks has the step not in its path", () => {
  const step = createContinuationStep(checker);
  expect(step.compile(makeTool(), POLICY, { clock: createFakeClock() }, undefined)).toBeUndefined();
});
