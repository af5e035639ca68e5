import { expect, test } from "vitest";
import type { CallContext, ToolCall, ToolEvent, UpstreamEvent } from "../../src/core/call.ts";
import { silentLogger } from "../../src/core/logger.ts";
import type { ResultRules } from "../../src/core/shaper.ts";
import { codePointCount } from "../../src/core/text.ts";
import { createResultShaper } from "../../src/shaping/result-shaper.ts";
import { WindowBudgets } from "../../src/shaping/window-budget.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { makeCall, makeRules, redactor, resultEvent, source } from "./fixtures.ts";

interface Options {
  readonly rules?: Partial<ResultRules>;
  readonly call?: Partial<ToolCall>;
  readonly context?: Partial<CallContext>;
  readonly window?: number;
}

/** Shapes calls of one gateway, whose models have a window of 1,000 tokens where nothing else is said. */
function makeShaper({ window = 1_000 }: Options = {}) {
  const clock = createFakeClock();
  const budgets = new WindowBudgets(window, clock);
  const handles: string[] = [];
  const keep = (_type: string, content: string | Uint8Array) => {
    handles.push(String(content));
    const handle = `result://${String(handles.length).padStart(24, "x")}`;
    return { handle, done: Promise.resolve({ ok: true as const, kept: { id: "" } as never }) };
  };
  const shape = async (events: AsyncIterable<UpstreamEvent>, { rules, call, context }: Options = {}) => {
    const shaper = createResultShaper({ tool: "t", rules: makeRules(rules), redactor, budgets });
    const all: ToolEvent[] = [];
    for await (const event of shaper.shape(events, makeCall(call), { keep, context: makeContext(context) })) {
      all.push(event);
    }
    const last = all.at(-1);
    if (last?.type !== "completed") throw new Error("not completed");
    const streamed = all.map((event) => (event.type === "delta" ? event.text : "")).join("");
    const text = last.result.content.map((part) => (part.type === "text" ? part.text : "")).join("");
    const reasons = (last.result.notices ?? []).map(({ reason }) => reason);
    return { ...last.result, streamed, text, length: codePointCount(text), reasons };
  };
  const one = (text: string, options?: Options) =>
    shape(source(resultEvent({ content: [{ type: "text", text }] })), options);
  return { clock, handles, shape, one };
}

function makeContext(changes: Partial<CallContext> = {}): CallContext {
  return {
    callId: "c",
    principal: { id: "alice", roles: [] },
    signal: new AbortController().signal,
    deadlineMs: Number.POSITIVE_INFINITY,
    attempt: 1,
    explain: false,
    sessionId: undefined,
    turnId: undefined,
    taskId: undefined,
    toolCallId: undefined,
    traceparent: undefined,
    logger: silentLogger,
    ...changes,
  };
}

const TURN = { context: { turnId: "turn" } };

test("one result has 15 % of its model's window, and not less than 8,000 characters [S2-112]", async () => {
  const { one } = makeShaper();
  const text = "a".repeat(100_000);
  expect(await one(text)).toMatchObject({ length: 8_000, reasons: ["RESULT_BUDGET"] });
  expect(await one("a".repeat(8_000))).toMatchObject({ length: 8_000, reasons: [], truncation: undefined });
  // 15,000 tokens: three ASCII characters make one, any other character is one.
  const wide = { call: { modelWindow: 100_000 } };
  expect(await one(text, wide)).toMatchObject({ length: 45_000, reasons: ["RESULT_BUDGET"] });
  expect(await one("云".repeat(100_000), wide)).toMatchObject({ length: 15_000 });
  const [notice] = (await one(text, wide)).notices ?? [];
  expect(notice?.message).toBe(
    "shortened to 45000 characters: one result has 15 % of the model's window of 100000 tokens, or 8000 characters if that is more",
  );
});

test("what is lower counts, and a result that its own limit shortened says nothing of a budget", async () => {
  const { one } = makeShaper();
  const got = await one("a".repeat(9_000), { rules: { maxLength: 1_000 } });
  expect(got).toMatchObject({ length: 999, reasons: [] });
});

test("`truncation: error` makes a result over its budget a failure that names the budget", async () => {
  const { one } = makeShaper();
  const { failure, text } = await one("a".repeat(9_000), { rules: { truncation: "error" } });
  expect(text).toBe("");
  expect(failure).toMatchObject({ reason: "RESULT_TOO_LONG" });
  expect(failure?.message).toBe(
    "t: the result is longer than 8000 characters (one result has 15 % of the model's window of 1000 tokens, or 8000 characters if that is more); ask for less",
  );
});

test("results of a turn that come together keep to 30 %, the largest shortened first, each whole kept once [S2-112]", async () => {
  const { one, handles } = makeShaper();
  const [small, large, largest] = await Promise.all([
    one("s".repeat(3_000), TURN),
    one("l".repeat(8_000), TURN),
    one("x".repeat(50_000), TURN),
  ]);
  expect(small).toMatchObject({ length: 3_000, reasons: [] });
  expect(large).toMatchObject({ length: 6_500, reasons: ["TURN_BUDGET"] });
  expect(largest).toMatchObject({ length: 6_500, reasons: ["TURN_BUDGET"] });
  expect(handles.toSorted()).toEqual(["l".repeat(8_000), "x".repeat(50_000)]);
  expect(large.truncation).toMatchObject({ originalLength: 8_000, handle: expect.stringContaining("result://") });
  expect(large.text).toContain(large.truncation?.handle);
});

test("results of a turn that come one after the other have what is left, and a mark with the handle when nothing is", async () => {
  const { one } = makeShaper();
  const long = "a".repeat(7_500);
  const lengths: unknown[] = [];
  for (let i = 0; i < 4; i++) lengths.push((await one(long, TURN)).length);
  expect(lengths).toEqual([7_500, 7_500, 999, 400]);
  const last = await one(long, TURN);
  expect(last.text).toContain(`; whole: ${last.truncation?.handle}]`);
  expect((await one("short", TURN)).text).toBe("short");
  for (const context of [{ turnId: "next" }, { turnId: "turn", principal: { id: "bob", roles: [] } }]) {
    expect(await one(long, { context })).toMatchObject({ length: 7_500, reasons: [] });
  }
});

test("JSON, summaries and failures keep to a budget too", async () => {
  const { shape } = makeShaper();
  const rows = Array.from({ length: 2_000 }, (_, i) => ({ id: i, name: `row ${i}` }));
  const json = await shape(source(resultEvent({ value: rows })));
  expect(json).toMatchObject({ length: 8_000, structuredJson: undefined, reasons: ["RESULT_BUDGET"] });
  const summary = await shape(source(resultEvent({ value: rows })), { rules: { truncation: "summary" } });
  expect(summary.truncation?.mode).toBe("summary");
  expect(summary.length).toBeLessThanOrEqual(8_000);
  expect(summary.reasons).toEqual(["RESULT_BUDGET"]);
  for (let i = 0; i < 2; i++) await shape(source(resultEvent({ value: rows })), TURN);
  const failure = {
    reason: "TOOL_FAILED",
    message: "no",
    upstreamCode: 1,
    retryable: false,
    upstreamFault: false,
  } as const;
  const failed = await shape(source(resultEvent({ failure, value: rows })), TURN);
  expect(failed).toMatchObject({ length: 400, failure: { message: "no" }, reasons: ["TURN_BUDGET"] });
});

async function* flood(state: { left: boolean }): AsyncGenerator<UpstreamEvent, void, undefined> {
  try {
    for (;;) yield { type: "upstream-delta", text: "d".repeat(700) };
  } finally {
    state.left = true;
  }
}

test("pieces of a stream count toward the budget of one result, which ends it and the upstream's call", async () => {
  const { shape } = makeShaper();
  const state = { left: false };
  const rules = { maxLength: Number.POSITIVE_INFINITY };
  const got = await shape(flood(state), { rules });
  expect(got.streamed.length).toBe(8_000);
  expect(got).toMatchObject({ truncation: { mode: "head" }, reasons: ["RESULT_BUDGET"], text: "" });
  expect(state.left).toBe(true);
  const refused = await shape(flood(state), { rules: { ...rules, truncation: "error" } });
  expect(refused.failure).toMatchObject({ reason: "RESULT_TOO_LONG" });
});

test("pieces of a stream count toward the turn as they come", async () => {
  const { shape, one } = makeShaper();
  const rules = { maxLength: Number.POSITIVE_INFINITY };
  await one("a".repeat(7_000), TURN);
  await one("a".repeat(7_000), TURN);
  const got = await shape(flood({ left: false }), { ...TURN, rules });
  expect(got.streamed.length).toBe(2_000);
  expect(got.reasons).toEqual(["TURN_BUDGET"]);
  expect((await one("a".repeat(7_000), TURN)).length).toBe(400);
});

test("a call without a window, or of a gateway that names none, has no budget", async () => {
  const budgets = new WindowBudgets(undefined, createFakeClock());
  expect(budgets.open(makeCall(), makeContext({ turnId: "turn" }))).toBeUndefined();
  expect(budgets.open(makeCall({ modelWindow: 5 }), makeContext())).toBeDefined();
});
