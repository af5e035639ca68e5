import { expect, test } from "vitest";
import type { CallContext, Invoke, UpstreamEvent } from "../../src/core/call.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { CircuitBreakerPolicy, ToolPolicy } from "../../src/core/step.ts";
import { createCircuitBreakerStep } from "../../src/pipeline/steps/circuit-breaker.ts";
import { createConcurrencyStep } from "../../src/pipeline/steps/concurrency.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { makeCall, makeContext, makeTool, POLICY, RESULT } from "./fixtures.ts";

const LOST = new GatewayError("UPSTREAM_ANSWER_LOST", "the answer was lost", { effect: "unknown" });

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
    { scope = "tool", ...changes }: Partial<ToolPolicy> & Partial<Pick<CircuitBreakerPolicy, "scope">> = {},
    context: Partial<CallContext> = {},
  ): { readonly events: UpstreamEvent[]; readonly outcome: Promise<unknown> } {
    const circuitBreaker = { failureThreshold: 1, resetTimeoutMs: 60_000, scope };
    const policy: ToolPolicy = { ...POLICY, concurrencyLimit: 1, circuitBreaker, ...changes };
    const steps = [this.#breaker, this.#concurrency];
    const invoke = steps.reduceRight<Invoke>((next, step) => {
      const intercept = step.compile(makeTool({ name }), policy, { clock: this.clock }, undefined);
      return intercept === undefined ? next : (call, given) => intercept(call, given, next);
    }, this.#upstream());
    const events: UpstreamEvent[] = [];
    const read = async (): Promise<unknown> => {
      for await (const event of invoke(makeCall(), makeContext({ callId, ...context }))) events.push(event);
      return "ok";
    };
    return { events, outcome: read().catch((error: unknown) => error) };
  }

  end(callId: string, how: UpstreamEvent | GatewayError): void {
    this.reached.get(callId)?.(how);
  }

  #upstream(): Invoke {
    const { reached } = this;
    return async function* (_call, { callId }) {
      const ended = Promise.withResolvers<UpstreamEvent | GatewayError>();
      reached.set(callId, ended.resolve);
      const how = await ended.promise;
      if (how instanceof GatewayError) throw how;
      yield how;
    };
  }
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
