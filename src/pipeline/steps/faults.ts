import picomatch from "picomatch";
import type { CallContext, Invoke, ToolCall, UpstreamEvent } from "../../core/call.ts";
import { type Clock, sleep } from "../../core/clock.ts";
import type { Effect } from "../../core/effect.ts";
import { GatewayError } from "../../core/errors.ts";
import type { FaultOutcome, FaultPlan, FaultRule } from "../../core/fault.ts";
import { stringifyJson } from "../../core/json.ts";
import type { Step } from "../../core/step.ts";
import type { ToolDefinition } from "../../core/tool.ts";

/** Bounds the draws kept for one plan; a plan that is replaced begins anew. */
interface Draws {
  readonly plan: FaultPlan;
  readonly rules: readonly { readonly rule: FaultRule; matches(tool: string): boolean; draw(): number }[];
}

/**
 * Puts the faults of a plan into attempts, as if the upstream had them: the innermost step, so that everything around
 * it meets them as it would meet real ones.
 *
 * @param plan the faults in force now; asked at each attempt, so that they can be changed while the gateway runs.
 */
export function createFaultsStep(plan: () => FaultPlan): Step {
  let draws: Draws | undefined;
  return {
    name: "faults",
    scope: "attempt",
    compile(tool, { effectClass }, { clock }) {
      const readOnly = effectClass === "read";
      return (call, context, next) => {
        const now = plan();
        if (now.rules.length === 0 || call.validateOnly) return next(call, context);
        if (draws?.plan !== now) draws = drawsOf(now);
        const hit = draws.rules.filter(({ rule, matches, draw }) => matches(tool.name) && draw() < rule.share);
        if (hit.length === 0) return next(call, context);
        return withFaults(
          hit.map(({ rule }) => rule),
          { tool, readOnly, clock, call, context, next },
        );
      };
    },
  };
}

interface Attempt {
  readonly tool: ToolDefinition;
  readonly readOnly: boolean;
  readonly clock: Clock;
  readonly call: ToolCall;
  readonly context: CallContext;
  readonly next: Invoke;
}

async function* withFaults(
  rules: readonly FaultRule[],
  attempt: Attempt,
): AsyncGenerator<UpstreamEvent, void, undefined> {
  const { call, context, next, tool, clock } = attempt;
  context.logger.warn("fault-injected", { callId: context.callId, tool: tool.name, faults: rules.map(describe) });
  const latencyMs = rules.reduce((sum, rule) => sum + rule.latencyMs, 0);
  if (latencyMs > 0) await sleep(clock, latencyMs, context.signal);
  const outcome = rules.find((rule) => rule.outcome !== undefined)?.outcome;
  if (outcome !== undefined && outcome !== "answer_lost") {
    yield insteadOf(outcome, attempt);
    return;
  }
  const cuts = rules.flatMap(({ cutAfterBytes }) => cutAfterBytes ?? []);
  let left = outcome === "answer_lost" ? 0 : Math.min(...cuts);
  for await (const event of next(call, context)) {
    left -= bytesOf(event);
    if (left < 0 || (event.type === "upstream-result" && outcome === "answer_lost")) throw answerLost(attempt);
    yield event;
  }
}

/** What an upstream in this state makes of a call. @throws GatewayError where it gives no answer. */
function insteadOf(outcome: Exclude<FaultOutcome, "answer_lost">, { tool, readOnly }: Attempt): UpstreamEvent {
  const effect: Effect = readOnly ? "none" : "unknown";
  const metadata = { tool: tool.name };
  switch (outcome) {
    case "unreachable":
      throw new GatewayError("UPSTREAM_UNREACHABLE", `${tool.name}: no connection, by an injected fault`, {
        metadata: { ...metadata, phase: "connecting" },
      });
    case "timeout":
      throw new GatewayError("UPSTREAM_TIMEOUT", `${tool.name}: no answer in time, by an injected fault`, {
        effect,
        retryable: readOnly,
        metadata: { ...metadata, limit: "read" },
      });
    case "unavailable":
      return failure(tool, { status: 503, effect, retryable: readOnly });
    case "rate_limited":
      return failure(tool, { status: 429, effect: "none", retryable: true });
  }
}

function failure(
  tool: ToolDefinition,
  { status, effect, retryable }: { readonly status: 429 | 503; readonly effect: Effect; readonly retryable: boolean },
): UpstreamEvent {
  return {
    type: "upstream-result",
    result: {
      content: [],
      upstreamCode: status,
      effect,
      failure: {
        reason: status === 429 ? "UPSTREAM_RATE_LIMITED" : "UPSTREAM_STATUS",
        message: `${tool.name}: HTTP ${status}, by an injected fault`,
        upstreamCode: status,
        retryable,
        transient: true,
        upstreamFault: status === 503,
      },
    },
  };
}

function answerLost({ tool, readOnly }: Attempt): GatewayError {
  const text = `${tool.name}: the answer was cut short, by an injected fault`;
  const metadata = { tool: tool.name, phase: "answering" };
  return readOnly
    ? new GatewayError("UPSTREAM_UNREACHABLE", text, { metadata })
    : new GatewayError("UPSTREAM_ANSWER_LOST", text, { effect: "unknown", metadata });
}

function bytesOf(event: UpstreamEvent): number {
  if (event.type === "upstream-delta") return Buffer.byteLength(event.text);
  if (event.type !== "upstream-result") return 0;
  const { value, content } = event.result;
  const texts = content.map((part) => (part.type === "text" ? Buffer.byteLength(part.text) : 0));
  return texts.reduce((sum, bytes) => sum + bytes, value === undefined ? 0 : Buffer.byteLength(stringifyJson(value)));
}

function describe({ latencyMs, outcome, cutAfterBytes }: FaultRule): string {
  const parts = [
    latencyMs > 0 ? `latency ${latencyMs} ms` : "",
    outcome ?? "",
    cutAfterBytes === undefined ? "" : `cut after ${cutAfterBytes} bytes`,
  ];
  return parts.filter((part) => part !== "").join(", ");
}

function drawsOf(plan: FaultPlan): Draws {
  return {
    plan,
    rules: plan.rules.map((rule, index) => ({
      rule,
      matches: picomatch([...rule.tools]),
      draw: uniform(plan.seed + index * 0x9e3779b9),
    })),
  };
}

/** Numbers from 0 to below 1 that look like chance and are the same for a seed. Source: mulberry32, public domain. */
function uniform(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
