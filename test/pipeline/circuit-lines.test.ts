import { expect, test } from "vitest";
import type { CallContext, CallKey, Invoke, UpstreamEvent } from "../../src/core/call.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { CircuitBreakerPolicy, ToolPolicy } from "../../src/core/step.ts";
import { createCircuitBreakerStep } from "../../src/pipeline/steps/circuit-breaker.ts";
import { createConcurrencyStep } from "../../src/pipeline/steps/concurrency.ts";
import { dispatchStep } from "../../src/pipeline/steps/dispatch.ts";
import { ledgerStep } from "../../src/pipeline/steps/ledger.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { makeCall, makeContext, makeTool, POLICY, RESULT } from "./fixtures.ts";

const LOST = new GatewayError("UPSTREAM_ANSWER_LOST", "the answer was lost", { effect: "unknown" });

type Policy = Partial<ToolPolicy> & Partial<Pick<CircuitBreakerPolicy, "scope">>;

/** Tools that run one call at a time and open their circuit at the first fault, behind an upstream that a test plays. */
class Bench {
  readonly clock = createFakeClock();
  /** Calls that reached the upstream, and how they are ended. */
  readonly reached = new Map<string, (how: UpstreamEvent | GatewayError) => void>();
  readonly #breaker = createCircuitBreakerStep(() => undefined);
  readonly #concurrency = createConcurrencyStep();

  /** A call's events as they come, and its outcome. */
  call(
    name: string,
    callId: string,
    { scope = "tool", ...changes }: Policy = {},
    context: Partial<CallContext> = {},
  ): { readonly events: UpstreamEvent[]; readonly outcome: Promise<unknown> } {
    const events: UpstreamEvent[] = [];
    const read = async (): Promise<unknown> => {
      for await (const event of this.begin(name, callId, { scope, ...changes }, context)) events.push(event);
      return "ok";
    };
    return { events, outcome: read().catch((error: unknown) => error) };
  }

  /** A call whose events wait until they are read. */
  begin(
    name: string,
    callId: string,
    { scope = "tool", ...changes }: Policy = {},
    context: Partial<CallContext> = {},
  ): AsyncGenerator<UpstreamEvent, void, undefined> {
    const circuitBreaker = { failureThreshold: 1, resetTimeoutMs: 60_000, scope };
    const policy: ToolPolicy = { ...POLICY, concurrencyLimit: 1, circuitBreaker, ...changes };
    const steps = [this.#breaker, this.#concurrency, ledgerStep, dispatchStep];
    const invoke = steps.reduceRight<Invoke>((next, step) => {
      const intercept = step.compile(makeTool({ name }), policy, { clock: this.clock }, undefined);
      return intercept === undefined ? next : (call, given) => intercept(call, given, next);
    }, this.#upstream());
    return eventsOf(invoke(makeCall(), makeContext({ callId, ...context })));
  }

  end(callId: string, how: UpstreamEvent | GatewayError): void {
    this.reached.get(callId)?.(how);
  }

  #upstream(): Invoke {
    const { reached } = this;
    return async function* (_call, { callId, signal }) {
      const ended = Promise.withResolvers<UpstreamEvent | GatewayError>();
      signal.addEventListener("abort", () => ended.resolve(GatewayError.from(signal.reason)), { once: true });
      reached.set(callId, ended.resolve);
      const how = await ended.promise;
      if (how instanceof GatewayError) throw how;
      yield how;
    };
  }
}

async function* eventsOf(events: AsyncIterable<UpstreamEvent>): AsyncGenerator<UpstreamEvent, void, undefined> {
  yield* events;
}

/** A key whose record is written when a test lets it be. */
function makeKey(): { readonly key: CallKey; readonly written: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const key = { value: "k", forUpstream: "k", claim: () => promise, mayHaveActed: () => undefined };
  return { key, written: () => resolve() };
}

test("calls that wait in line when the circuit opens end at once and never reach the upstream [R-D01]", async () => {
  const bench = new Bench();
  const first = bench.call("a", "c0");
  const waiting = ["c1", "c2", "c3"].map((id) => bench.call("a", id));
  await bench.clock.advance(10);
  bench.end("c0", LOST);
  expect(await first.outcome).toBe(LOST);
  for (const { outcome, events } of waiting) {
    expect(await outcome).toMatchObject({
      reason: "CIRCUIT_OPEN",
      effect: "none",
      retryAfterMs: 60_000,
      message: expect.stringContaining('tool "a" was not called: its circuit is open after 1 fault'),
    });
    expect(events.map(({ type }) => type)).toEqual(["queue-enter", "queue-leave"]);
  }
  expect([...bench.reached.keys()]).toEqual(["c0"]);
  await bench.clock.advance(60_000);
  const probe = bench.call("a", "c4");
  await bench.clock.advance(0);
  bench.end("c4", RESULT);
  expect(await probe.outcome).toBe("ok");
});

test("so do those of another tool of the same upstream, whose own slots are taken, each in its own name", async () => {
  const bench = new Bench();
  const scope = "upstream";
  const running = bench.call("a", "c0", { scope });
  const waiting = bench.call("a", "c1", { scope });
  const unlimited = bench.call("b", "c2", { scope, concurrencyLimit: undefined });
  await bench.clock.advance(10);
  bench.end("c2", LOST);
  expect(await unlimited.outcome).toBe(LOST);
  expect(await waiting.outcome).toMatchObject({
    reason: "CIRCUIT_OPEN",
    message: expect.stringContaining('tool "a" was not called: the circuit of its upstream is open'),
  });
  bench.end("c0", RESULT);
  expect(await running.outcome).toBe("ok");
});

test("a call that waits for its group ends too, and gives its tool's slot back", async () => {
  const bench = new Bench();
  const policy = { group: { name: "g", maxParallelCalls: 1, rateLimit: undefined }, scope: "upstream" as const };
  const first = bench.call("a", "c0", policy);
  const waiting = bench.call("b", "c1", policy);
  await bench.clock.advance(10);
  bench.end("c0", LOST);
  await first.outcome;
  expect(await waiting.outcome).toMatchObject({ reason: "CIRCUIT_OPEN" });
  await bench.clock.advance(60_000);
  const probe = bench.call("b", "c2", policy);
  await bench.clock.advance(0);
  bench.end("c2", RESULT);
  expect(await probe.outcome).toBe("ok");
});

test("a circuit that opens leaves other lines alone, and a call that gave up its wait has its own reason", async () => {
  const bench = new Bench();
  const stop = new AbortController();
  const first = bench.call("a", "c0");
  const other = [bench.call("b", "c1"), bench.call("b", "c2")];
  const left = bench.call("a", "c3", {}, { signal: stop.signal });
  await bench.clock.advance(10);
  stop.abort(new GatewayError("CALL_CANCELLED", "the caller went"));
  expect(await left.outcome).toMatchObject({ reason: "CALL_CANCELLED", metadata: { phase: "queue" } });
  bench.end("c0", LOST);
  await first.outcome;
  await bench.clock.advance(10);
  bench.end("c1", RESULT);
  await bench.clock.advance(10);
  bench.end("c2", RESULT);
  expect(await Promise.all(other.map(({ outcome }) => outcome))).toEqual(["ok", "ok"]);
});

test("a call whose turn came, and whose reader was slow to hear of it, does not go out once the circuit has opened", async () => {
  const bench = new Bench();
  const two = { concurrencyLimit: 2 };
  const running = [bench.call("a", "c0", two), bench.call("a", "c1", two)];
  const slow = bench.begin("a", "c2", two);
  expect((await slow.next()).value).toMatchObject({ type: "queue-enter" });
  bench.end("c0", RESULT);
  expect((await slow.next()).value).toMatchObject({ type: "queue-leave" });
  bench.end("c1", LOST);
  expect(await Promise.all(running.map(({ outcome }) => outcome))).toEqual(["ok", LOST]);
  await expect(slow.next()).rejects.toMatchObject({ reason: "CIRCUIT_OPEN", effect: "none" });
  expect([...bench.reached.keys()]).toEqual(["c0", "c1"]);
  // Its slot is free again.
  await bench.clock.advance(60_000);
  const probe = bench.call("a", "c3", { ...two, concurrencyLimit: 1 });
  await bench.clock.advance(0);
  bench.end("c3", RESULT);
  expect(await probe.outcome).toBe("ok");
});

test.each<Policy>([{ concurrencyLimit: undefined }, { concurrencyLimit: 2 }])(
  "a call whose record is being written when the circuit opens ends at once and never goes out: %j",
  async (policy) => {
    const bench = new Bench();
    const { key, written } = makeKey();
    const running = bench.call("a", "c0", policy);
    const recorded = bench.call("a", "c1", policy, { key });
    await bench.clock.advance(10);
    bench.end("c0", LOST);
    expect(await running.outcome).toBe(LOST);
    expect(await recorded.outcome).toMatchObject({ reason: "CIRCUIT_OPEN", effect: "none" });
    written();
    await bench.clock.advance(10);
    expect([...bench.reached.keys()]).toEqual(["c0"]);
  },
);

test("a record that is there before the circuit opens lets its call go out, which goes on when the circuit opens then", async () => {
  const bench = new Bench();
  const { key, written } = makeKey();
  const policy = { concurrencyLimit: 2 };
  const running = bench.call("a", "c0", policy);
  const recorded = bench.call("a", "c1", policy, { key });
  written();
  await bench.clock.advance(10);
  bench.end("c0", LOST);
  expect(await running.outcome).toBe(LOST);
  await bench.clock.advance(10);
  bench.end("c1", RESULT);
  expect(await recorded.outcome).toBe("ok");
  expect([...bench.reached.keys()]).toEqual(["c0", "c1"]);
});
