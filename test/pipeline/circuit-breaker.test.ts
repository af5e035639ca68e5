import { expect, test } from "vitest";
import type { Invoke, ToolFailure, UpstreamEvent } from "../../src/core/call.ts";
import { type ErrorReason, GatewayError, type GatewayErrorOptions } from "../../src/core/errors.ts";
import type { Affected, CircuitBreakerPolicy, Step, ToolPolicy } from "../../src/core/step.ts";
import { createCircuitBreakerStep } from "../../src/pipeline/steps/circuit-breaker.ts";
import { createFakeClock, type FakeClock } from "../core/fake-clock.ts";
import {
  collect,
  makeCall,
  makeContext,
  makeTool,
  POLICY,
  RESULT,
  type RecordedLine,
  recordingLogger,
} from "./fixtures.ts";

type End = UpstreamEvent | GatewayError;

function error(reason: ErrorReason, options: GatewayErrorOptions = {}): GatewayError {
  return new GatewayError(reason, "the fault", options);
}

function answered(status: number, changes: Partial<ToolFailure> = {}): UpstreamEvent {
  const failure: ToolFailure = {
    reason: "UPSTREAM_STATUS",
    message: "words of the upstream",
    upstreamCode: status,
    retryable: false,
    upstreamFault: status >= 500,
    ...changes,
  };
  return { type: "upstream-result", result: { content: [], failure, effect: "none" } };
}

const DOWN = answered(503);

/** A circuit breaker's step and a clock. */
class Bench {
  readonly clock: FakeClock = createFakeClock();
  readonly affected: Affected[] = [];
  readonly lines: RecordedLine[] = [];
  readonly step: Step = createCircuitBreakerStep((affected) => this.affected.push(affected));
  reached = 0;

  policy(changes: Partial<CircuitBreakerPolicy> = {}, upstream = POLICY.upstream): ToolPolicy {
    return {
      ...POLICY,
      upstream,
      circuitBreaker: { failureThreshold: 5, resetTimeoutMs: 60_000, scope: "tool", ...changes },
    };
  }

  /** What comes of attempts that end so, one after the other. */
  async run(ends: readonly End[], tool = "order_status", policy = this.policy()): Promise<readonly unknown[]> {
    const interceptor = this.step.compile(makeTool({ name: tool }), policy, { clock: this.clock }, undefined);
    const context = makeContext({ logger: recordingLogger(this.lines) });
    const outcomes: unknown[] = [];
    for (const end of ends) {
      const adapter: Invoke = async function* (this: void) {
        if (end instanceof GatewayError) throw end;
        yield end;
      };
      const counted: Invoke = (call, given) => {
        this.reached += 1;
        return adapter(call, given);
      };
      const events =
        interceptor === undefined ? counted(makeCall(), context) : interceptor(makeCall(), context, counted);
      outcomes.push(await collect(events).catch((thrown: unknown) => thrown));
    }
    return outcomes;
  }

  state(tool = "order_status", policy = this.policy()): string {
    return this.step.availability?.(tool, policy)?.state ?? "ready";
  }
}

function times(count: number, end: End): readonly End[] {
  return Array.from({ length: count }, () => end);
}

test("an open circuit fails at once and says why, until when, and whether the upstream can be reached [S2-119]", async () => {
  const bench = new Bench();
  await bench.run(times(5, DOWN));
  await bench.clock.advance(17_500);
  const [refused] = await bench.run([RESULT]);
  expect(bench.reached).toBe(5);
  expect(refused).toMatchObject({
    reason: "CIRCUIT_OPEN",
    status: "UNAVAILABLE",
    effect: "none",
    retryable: true,
    retryAfterMs: 42_500,
    message:
      'tool "order_status" was not called: its circuit is open after 5 faults of the upstream in a row, the last: it answered HTTP 503 (it can be reached); the next call after 43 s tries it again',
    metadata: { tool: "order_status", scope: "tool", last_fault: "it answered HTTP 503", reachable: "true" },
  });
  expect(String(refused)).not.toContain("words of the upstream");
});

test("while one call tries the upstream the others are told to come back in a moment", async () => {
  const bench = new Bench();
  await bench.run(times(5, DOWN));
  await bench.clock.advance(60_000);
  const interceptor = bench.step.compile(makeTool(), bench.policy(), { clock: bench.clock }, undefined);
  const hanging: Invoke = async function* () {
    yield { type: "progress", current: 1, total: 2, message: "half" };
    yield RESULT;
  };
  const probe = interceptor?.(makeCall(), makeContext(), hanging)[Symbol.asyncIterator]();
  await probe?.next();
  const [refused] = await bench.run([RESULT]);
  expect(refused).toMatchObject({
    reason: "CIRCUIT_OPEN",
    retryAfterMs: 1_000,
    message: expect.stringContaining("another call tries the upstream just now"),
  });
  while ((await probe?.next())?.done !== true);
  expect(bench.state()).toBe("ready");
  expect(await bench.run([RESULT])).toEqual([[RESULT]]);
});

interface Case {
  readonly what: string;
  readonly end: End;
  /** The last fault as it is told; `undefined`: it is none of the upstream's. */
  readonly words: string | undefined;
}

const CASES: readonly Case[] = [
  { what: "HTTP 503", end: DOWN, words: "it answered HTTP 503 (it can be reached)" },
  { what: "HTTP 408", end: answered(408, { upstreamFault: true }), words: "it answered HTTP 408 (it can be reached)" },
  {
    what: "an answer that cannot be read",
    end: answered(200, { reason: "UPSTREAM_BAD_RESPONSE", upstreamFault: true }),
    words: "its answer HTTP 200 cannot be read (it can be reached)",
  },
  {
    what: "no connection in time",
    end: error("UPSTREAM_TIMEOUT", { metadata: { limit: "connect" } }),
    words: "no connection within `timeout.connect` (it cannot be reached)",
  },
  {
    what: "no answer in time",
    end: error("UPSTREAM_TIMEOUT", { metadata: { limit: "read" }, effect: "unknown" }),
    words: "no answer within `timeout.read` (it can be reached)",
  },
  {
    what: "an answer that stops",
    end: error("UPSTREAM_TIMEOUT", { metadata: { limit: "idle" } }),
    words: "its answer stopped for longer than `timeout.idle` (it can be reached)",
  },
  {
    what: "no connection",
    end: error("UPSTREAM_UNREACHABLE", { metadata: { code: "ECONNREFUSED", phase: "connecting" } }),
    words: "no connection (ECONNREFUSED) (it cannot be reached)",
  },
  {
    what: "an answer that is lost",
    end: error("UPSTREAM_ANSWER_LOST", { metadata: { code: "ECONNRESET", phase: "waiting" }, effect: "unknown" }),
    words: "its answer was lost (ECONNRESET) (it can be reached)",
  },
  { what: "HTTP 400", end: answered(400), words: undefined },
  { what: "HTTP 401", end: answered(401), words: undefined },
  { what: "HTTP 404", end: answered(404), words: undefined },
  { what: "HTTP 422", end: answered(422), words: undefined },
  { what: "HTTP 429", end: answered(429), words: undefined },
  { what: "a tool's own no", end: answered(200, { reason: "TOOL_FAILED" }), words: undefined },
  { what: "a missing field", end: answered(200, { reason: "FIELD_MISSING" }), words: undefined },
  { what: "wrong arguments", end: error("TEMPLATE_VALUE_REFUSED"), words: undefined },
  { what: "a missing secret", end: error("SECRET_MISSING"), words: undefined },
  { what: "a private address", end: error("UPSTREAM_UNREACHABLE", { retryable: false }), words: undefined },
  { what: "a full line", end: error("CONCURRENCY_LIMIT_REACHED"), words: undefined },
  { what: "too large an answer", end: error("RESULT_TOO_LARGE"), words: undefined },
  { what: "a call that is cancelled", end: error("CALL_CANCELLED"), words: undefined },
  { what: "the call's own deadline", end: error("CALL_DEADLINE_EXCEEDED", { effect: "unknown" }), words: undefined },
  { what: "the gateway's own fault", end: error("INTERNAL"), words: undefined },
];

test.for(CASES)("$what counts where it is the upstream's fault alone [R-D02]", async ({ end, words }) => {
  const bench = new Bench();
  await bench.run(times(10, end));
  expect(bench.reached).toBe(words === undefined ? 10 : 5);
  const [last] = await bench.run([RESULT]);
  if (words === undefined) expect(last).toEqual([RESULT]);
  else expect(last).toMatchObject({ message: expect.stringContaining(`the last: ${words}; `) });
});

test("what shows nothing of the upstream does not begin the count anew either", async () => {
  const bench = new Bench();
  await bench.run([...times(4, DOWN), error("CALL_CANCELLED"), DOWN, RESULT]);
  expect(bench.reached).toBe(6);
});

test("tools have circuits of their own, and share one where their upstream's faults count", async () => {
  const apart = new Bench();
  await apart.run(times(5, DOWN), "a");
  await apart.run([RESULT], "b");
  expect(apart.reached).toBe(6);
  expect(apart.affected).toEqual([{ tool: "a" }]);
  const shared = new Bench();
  const policy = shared.policy({ scope: "upstream" });
  await shared.run(times(3, DOWN), "a", policy);
  await shared.run(times(2, DOWN), "b", policy);
  const [refused] = await shared.run([RESULT], "c", policy);
  expect(refused).toMatchObject({
    message: expect.stringContaining("the circuit of its upstream is open after 5 faults"),
  });
  expect(shared.affected).toEqual([{ upstream: POLICY.upstream }]);
  expect(shared.state("d", policy)).toBe("unavailable");
  await shared.run([RESULT], "d", shared.policy({ scope: "upstream" }, "http://127.0.0.1:1"));
  expect(shared.reached).toBe(6);
});

test("List shows a tool whose circuit is open, with the reason and the time of the next try", async () => {
  const bench = new Bench();
  expect(bench.state()).toBe("ready");
  await bench.run(times(5, DOWN));
  expect(bench.step.availability?.("order_status", bench.policy())).toEqual({
    state: "unavailable",
    reason:
      "circuit open after 5 faults of the upstream in a row, the last: it answered HTTP 503 (it can be reached); tries again at 2026-01-01T00:01:00Z",
    mend: "Look at the upstream; the circuit closes by itself once a call goes well.",
  });
  await bench.clock.advance(60_000);
  expect(bench.step.availability?.("order_status", bench.policy())).toMatchObject({
    state: "degraded",
    reason: expect.stringMatching(/^circuit half open .*; the next call tries the upstream$/),
  });
  await bench.run([RESULT]);
  expect(bench.state()).toBe("ready");
  expect(bench.affected).toEqual(times(3, DOWN).map(() => ({ tool: "order_status" })));
});

test("opening and closing are on record", async () => {
  const bench = new Bench();
  await bench.run(times(5, DOWN));
  await bench.clock.advance(60_000);
  await bench.run([RESULT]);
  const facts = { tool: "order_status", upstream: POLICY.upstream, scope: "tool" };
  expect(bench.lines).toMatchObject([
    {
      level: "warn",
      message: "circuit-open",
      fields: { ...facts, faults: 5, lastFault: "it answered HTTP 503", retryInMs: 60_000 },
    },
    { level: "info", message: "circuit-close", fields: facts },
  ]);
});

test("the first output of the attempt that tries the upstream is on record as what closed the circuit", async () => {
  const bench = new Bench();
  await bench.run(times(5, DOWN));
  await bench.clock.advance(60_000);
  const interceptor = bench.step.compile(makeTool(), bench.policy(), { clock: bench.clock }, undefined);
  const streams: Invoke = async function* () {
    yield { type: "upstream-delta", text: "alive" };
    yield RESULT;
  };
  const context = makeContext({ logger: recordingLogger(bench.lines) });
  const probe = interceptor?.(makeCall(), context, streams)[Symbol.asyncIterator]();
  await probe?.next();
  const messages = (): string[] => bench.lines.map(({ message }) => message);
  expect(messages()).toEqual(["circuit-open", "circuit-close"]);
  while ((await probe?.next())?.done !== true);
  expect(messages()).toEqual(["circuit-open", "circuit-close"]);
});

test("a new version of a tool goes on with its circuit, unless its upstream or these settings are others", async () => {
  const bench = new Bench();
  await bench.run(times(5, DOWN));
  bench.step.settled?.("order_status", { ...bench.policy(), totalMs: 1_000 });
  expect(bench.state()).toBe("unavailable");
  const other = bench.policy({}, "http://127.0.0.1:1");
  bench.step.settled?.("order_status", other);
  expect(bench.state("order_status", other)).toBe("ready");
  expect(bench.clock.pending).toBe(0);
  bench.step.settled?.("order_status", bench.policy());
  expect(bench.state()).toBe("ready");
});

test("a tool that is gone frees its circuit, and so does the end of the gateway [R-D04]", async () => {
  const bench = new Bench();
  for (let i = 0; i < 500; i++) await bench.run(times(5, DOWN), `tool_${i}`);
  expect(bench.clock.pending).toBe(500);
  for (let i = 0; i < 499; i++) bench.step.settled?.(`tool_${i}`, undefined);
  expect(bench.clock.pending).toBe(1);
  bench.step[Symbol.dispose]?.();
  expect(bench.clock.pending).toBe(0);
  await bench.run(times(5, DOWN), "late");
  expect(bench.clock.pending).toBe(0);
});

test("a circuit that a tool shares stays for the others when it is gone", async () => {
  const bench = new Bench();
  const policy = bench.policy({ scope: "upstream" });
  await bench.run(times(3, DOWN), "a", policy);
  await bench.run(times(2, DOWN), "b", policy);
  bench.step.settled?.("a", undefined);
  expect(bench.state("b", policy)).toBe("unavailable");
  bench.step.settled?.("b", undefined);
  expect(bench.clock.pending).toBe(0);
});

test("a tool without it is never kept back", async () => {
  const bench = new Bench();
  await bench.run(times(20, DOWN), "order_status", { ...POLICY, circuitBreaker: undefined });
  expect(bench.reached).toBe(20);
});

test("a call that is only validated passes an open circuit", async () => {
  const bench = new Bench();
  await bench.run(times(5, DOWN));
  const interceptor = bench.step.compile(makeTool(), bench.policy(), { clock: bench.clock }, undefined);
  const next: Invoke = async function* () {
    yield RESULT;
  };
  const events = interceptor?.(makeCall({}, { validateOnly: true }), makeContext(), next);
  expect(events === undefined ? [] : await collect(events)).toEqual([RESULT]);
});
