import { expect, test } from "vitest";
import type { CallKey, ToolEvent, ToolResult } from "../../src/core/call.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { silentLogger } from "../../src/core/logger.ts";
import type { LedgerStore } from "../../src/core/store.ts";
import { CallLedger, type KeyedCall } from "../../src/ledger/call-ledger.ts";
import { decodeOutcome, encodeOutcome } from "../../src/ledger/outcome.ts";
import { createMemoryLedger } from "../../src/stores/memory-ledger.ts";
import { createFakeClock } from "../core/fake-clock.ts";

const RESULT: ToolResult = { content: [], structuredJson: '{"n":1}', failure: undefined, truncation: undefined };
const ANSWER: ToolEvent = { type: "completed", result: RESULT, effect: "committed", attempts: 2 };
const LOST = new GatewayError("UPSTREAM_ANSWER_LOST", "lost", { effect: "unknown" });

interface Bench {
  readonly store: LedgerStore;
  /** Makes a call with key `k1`; `run` is what happens once it is claimed. */
  call(run: Run, more?: Partial<KeyedCall>): Promise<ToolEvent[]>;
  /** How often a call ran. */
  runs(): number;
}

type Run = (key: CallKey) => AsyncIterable<ToolEvent>;

function bench(store = newStore()): Bench {
  const ledger = new CallLedger({ store, clock: createFakeClock(), logger: silentLogger });
  let runs = 0;
  return {
    store,
    runs: () => runs,
    async call(run, more = {}) {
      const events: ToolEvent[] = [];
      const call: KeyedCall = {
        principal: "anonymous",
        tool: "refund",
        key: "k1",
        digest: "d",
        callId: `call-${runs}`,
        repeatable: false,
        reconcile: undefined,
        async *run(key) {
          runs += 1;
          await key.claim();
          yield* run(key);
        },
        ...more,
      };
      for await (const event of ledger.events(call)) events.push(event);
      return events;
    },
  };
}

function newStore(): LedgerStore {
  return createMemoryLedger({ clock: createFakeClock(), retentionMs: 60_000, maxEntries: 100, maxBytes: 1e6 });
}

const answering: Run = async function* (key) {
  key.mayHaveActed();
  yield ANSWER;
};

const losing: Run = async function* (key) {
  yield { type: "delta", index: 0, text: "begun" };
  key.mayHaveActed();
  throw LOST;
};

/** An error that surely had no effect. */
const unreachable: Run = () => {
  throw new GatewayError("UPSTREAM_UNREACHABLE", "no connection");
};

test("a call that was answered is answered again from the record and not run again [S2-72]", async () => {
  const { call, runs } = bench();
  expect(await call(answering)).toEqual([ANSWER]);
  expect(await call(answering)).toEqual([{ ...ANSWER, replayed: true }]);
  expect(runs()).toBe(1);
});

test("it is on record before its answer is told", async () => {
  const { store, call } = bench();
  let state: string | undefined;
  const entry = { principal: "anonymous", tool: "refund", key: "k1" };
  await call(async function* (key) {
    state = (await store.find(entry))?.state;
    yield* answering(key);
  });
  expect(state).toBe("running");
  const { call: slow } = bench({
    ...store,
    settle: () => new Promise(() => undefined),
  });
  const pending = Symbol("pending");
  const told = slow(answering, { key: "k2" });
  expect(await Promise.race([told, new Promise((resolve) => setTimeout(resolve, 20, pending))])).toBe(pending);
});

test("text that was streamed is part of the answer on record", async () => {
  const { call } = bench();
  await call(async function* () {
    for (const text of ["to", "geth", "er"]) yield { type: "delta", index: 0, text };
    yield { type: "progress", current: 1, total: 1, message: "" };
    yield { ...ANSWER, result: { ...RESULT, structuredJson: undefined } };
  });
  expect(await call(answering)).toMatchObject([
    { type: "completed", replayed: true, result: { content: [{ type: "text", text: "together" }] } },
  ]);
});

test("other arguments under the same key are refused", async () => {
  const { call, runs } = bench();
  await call(answering);
  await expect(call(answering, { digest: "other" })).rejects.toMatchObject({
    reason: "REQUEST_ID_REUSED",
    effect: "none",
    metadata: { tool: "refund", request_id: "k1" },
  });
  expect(runs()).toBe(1);
});

test("one whose answer was lost is unknown from then on and never run again [S2-73]", async () => {
  const { call, runs } = bench();
  await expect(call(losing)).rejects.toBe(LOST);
  for (let i = 0; i < 3; i++) {
    await expect(call(answering)).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN", effect: "unknown" });
  }
  expect(runs()).toBe(1);
});

test("one whose reader left in the middle is unknown", async () => {
  const { store, call } = bench();
  const ledger = new CallLedger({ store, clock: createFakeClock(), logger: silentLogger });
  const keyed = { principal: "anonymous", tool: "refund", key: "k1", digest: "d", callId: "c", repeatable: false };
  const run = async function* (key: CallKey): AsyncGenerator<ToolEvent> {
    await key.claim();
    yield { type: "delta", index: 0, text: "begun" };
    yield ANSWER;
  };
  for await (const _ of ledger.events({ ...keyed, reconcile: undefined, run })) break;
  await expect(call(answering)).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN" });
});

test("a tool for which twice equals once runs again after a lost answer", async () => {
  const { call, runs } = bench();
  await expect(call(losing)).rejects.toBe(LOST);
  expect(await call(answering, { repeatable: true })).toEqual([ANSWER]);
  expect(await call(answering)).toEqual([{ ...ANSWER, replayed: true }]);
  expect(runs()).toBe(2);
});

test.each<[string, Run]>([
  ["an error that surely had no effect", unreachable],
  [
    "a failure that surely had no effect",
    async function* () {
      const failure = { reason: "UPSTREAM_RATE_LIMITED", message: "slow down", upstreamCode: 429 } as const;
      const result = { ...RESULT, failure: { ...failure, retryable: true, upstreamFault: true } };
      yield { type: "completed", result, effect: "none", attempts: 1 };
    },
  ],
])("after %s the same key may run again", async (_what, run) => {
  const { call, runs } = bench();
  await call(run).catch(() => undefined);
  expect(await call(answering)).toEqual([ANSWER]);
  expect(runs()).toBe(2);
});

test("an attempt that may have acted is not undone by a later one that surely did not", async () => {
  const { call } = bench();
  await call((key) => {
    key.mayHaveActed();
    return unreachable(key);
  }).catch(() => undefined);
  await expect(call(answering)).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN" });
});

test("an error that is the answer of a call that took effect is told again", async () => {
  const { call, runs } = bench();
  const large = new GatewayError("RESULT_TOO_LARGE", "too large", {
    effect: "committed",
    metadata: { tool: "refund" },
  });
  const failing = (): AsyncIterable<ToolEvent> => {
    throw large;
  };
  await expect(call(failing)).rejects.toBe(large);
  const { reason, message, effect, metadata } = large;
  await expect(call(answering)).rejects.toMatchObject({ reason, message, effect, metadata });
  expect(runs()).toBe(1);
});

test("where the record cannot be made the call is not made, and nothing is left of it", async () => {
  const store = newStore();
  const broken = new GatewayError("LEDGER_UNAVAILABLE", "disk full");
  const { call } = bench({ ...store, claim: () => Promise.reject(broken) });
  await expect(call(() => expect.unreachable())).rejects.toBe(broken);
  expect(await bench(store).call(answering)).toEqual([ANSWER]);
});

test("where the end cannot be recorded the caller has its answer, and the call is unknown afterwards", async () => {
  const store = newStore();
  const broken = new GatewayError("LEDGER_UNAVAILABLE", "disk full");
  expect(await bench({ ...store, settle: () => Promise.reject(broken) }).call(answering)).toEqual([ANSWER]);
  await expect(bench(store).call(answering)).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN" });
});

test("an answer that is no longer kept is said to be that, and the call is not run again", async () => {
  const store = newStore();
  await bench(store).call(answering);
  const find: LedgerStore["find"] = async (key) => {
    const entry = await store.find(key);
    if (entry === undefined) return undefined;
    const { outcome: _dropped, ...known } = entry;
    return known;
  };
  const { call, runs } = bench({ ...store, find });
  await expect(call(answering)).rejects.toMatchObject({ reason: "CALL_ALREADY_MADE", effect: "committed" });
  expect(runs()).toBe(0);
});

test("a tool that knows what became of a call is asked, and its answer passed on with an unknown effect", async () => {
  const { call, runs } = bench();
  await call(losing).catch(() => undefined);
  let asked = 0;
  const reconcile = {
    tool: "refund_status",
    async *run(): AsyncGenerator<ToolEvent> {
      asked += 1;
      yield {
        type: "completed",
        result: { ...RESULT, structuredJson: '{"refunded":true}' },
        effect: "none",
        attempts: 1,
      };
    },
  };
  const [event] = await call(answering, { reconcile });
  expect(event).toMatchObject({
    type: "completed",
    effect: "unknown",
    replayed: true,
    result: {
      structuredJson: '{"refunded":true}',
      failure: {
        reason: "OUTCOME_UNKNOWN",
        message: expect.stringMatching(/`refund_status` was asked: \{"refunded":true\}/),
      },
    },
  });
  expect([asked, runs()]).toEqual([1, 1]);
});

test("where that tool cannot be asked, the call is unknown, and the error says why", async () => {
  const { call } = bench();
  await call(losing).catch(() => undefined);
  const run = (): AsyncIterable<ToolEvent> => {
    throw new GatewayError("TOOL_NOT_FOUND", "no such tool");
  };
  await expect(call(answering, { reconcile: { tool: "refund_status", run } })).rejects.toMatchObject({
    reason: "OUTCOME_UNKNOWN",
    effect: "unknown",
    metadata: { reconcile: "refund_status", reconcile_reason: "TOOL_NOT_FOUND" },
  });
});

test("an outcome comes back from the record as it was", () => {
  const outcome = {
    type: "completed",
    effect: "committed",
    attempts: 3,
    result: {
      content: [
        { type: "text", text: "退款\u0000" },
        { type: "blob", mimeType: "image/png", data: Buffer.from([0, 255, 1]) },
        { type: "link", uri: "result://1", mimeType: "text/plain", name: "all" },
        {
          type: "link",
          uri: "file:///a",
          mimeType: "",
          name: "a",
          title: "A",
          description: "the file",
          sizeBytes: 3,
          annotations: { audience: ["user"], priority: 0.5, lastModified: "2026-01-01" },
        },
        { type: "text", text: "# A", resource: { uri: "file:///a.md", mimeType: "text/markdown" } },
      ],
      structuredJson: '{"id":871234567890123457}',
      failure: {
        reason: "TOOL_FAILED",
        message: "no",
        origin: "tool",
        upstreamCode: 200,
        retryable: true,
        upstreamFault: false,
      },
      truncation: { mode: "head", originalLength: 9 },
      notices: [{ reason: "OUTPUT_SCHEMA_MISMATCH", message: "n" }],
    },
  } as const;
  expect(decodeOutcome(encodeOutcome(outcome))).toEqual({ ...outcome, replayed: true });
  expect(() => decodeOutcome('{"error":{"reason":"constructor"}}')).toThrow("cannot be read");
});

test("a tool that asks for input has given no outcome: what did nothing is forgotten, what may have acted is unknown", async () => {
  const needsInput = { state: "h", requestsJson: "{}", expiresInMs: 1_000 };
  const asks = (effect: "none" | "unknown") =>
    async function* (): AsyncGenerator<ToolEvent, void, undefined> {
      const result = { ...RESULT, structuredJson: undefined, needsInput };
      yield { type: "completed", result, effect, attempts: 1 };
    };
  const harmless = bench();
  await harmless.call(asks("none"));
  expect(await harmless.call(asks("none"))).toMatchObject([{ type: "completed", result: { needsInput } }]);
  expect(harmless.runs()).toBe(2);
  const harmful = bench();
  await harmful.call(asks("unknown"));
  await expect(harmful.call(asks("unknown"))).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN" });
  expect(harmful.runs()).toBe(1);
});
