import type { CallContext, Invoke, ToolCall, UpstreamEvent } from "../../core/call.ts";
import type { Clock } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import type { RateLimit, Step } from "../../core/step.ts";
import type { ToolDefinition } from "../../core/tool.ts";
import { StateTable } from "../limits/state-table.ts";
import { TokenBucket } from "../limits/token-bucket.ts";

/** Most tools and groups whose buckets are remembered: more than a gateway serves. */
const MAX_BUCKETS = 20_000;
/** Most callers whose buckets are remembered. */
const MAX_CALLERS = 10_000;

/**
 * Refuses calls that come faster than their tool, their group or their caller may. A call takes one token of each, all
 * or none, and only once: attempts after the first take none, and neither does a call that is only validated. Buckets
 * belong to the names of tool and group and to the caller's id; a new version of a tool goes on with that of the old.
 *
 * @param perCaller most calls of each caller in a time, asked at each call. Absent: never a limit.
 */
export function createRateLimitStep(perCaller?: () => RateLimit | undefined): Step {
  let clock: Clock | undefined;
  const isFull = (bucket: TokenBucket): boolean => clock === undefined || bucket.isFull(clock.monotonicMs());
  const shared = new StateTable<TokenBucket>(MAX_BUCKETS, isFull);
  const callers = new StateTable<TokenBucket>(MAX_CALLERS, isFull);
  return {
    name: "rate-limit",
    scope: "call",
    compile(tool, { rateLimit, group }, deps) {
      clock = deps.clock;
      const fixed: Metered[] = [];
      if (rateLimit !== undefined) {
        const of = `tool "${tool.name}"`;
        fixed.push({ of, key: "rate_limit", rate: rateLimit, bucket: shared.of(of, newBucket) });
      }
      if (group?.rateLimit !== undefined) {
        const of = `group "${group.name}"`;
        fixed.push({ of, key: "shared_rate_limit", rate: group.rateLimit, bucket: shared.of(of, newBucket) });
      }
      if (fixed.length === 0 && perCaller === undefined) return undefined;
      const meteredBy = (context: CallContext): readonly Metered[] => {
        const rate = perCaller?.();
        if (rate === undefined) return fixed;
        const bucket = callers.of(context.principal.id, newBucket);
        return [...fixed, { of: "this caller", key: "rate_limit of gateway.yaml", rate, bucket }];
      };
      return (call, context, next) => {
        if (call.validateOnly || (fixed.length === 0 && perCaller?.() === undefined)) return next(call, context);
        return metered({ tool, clock: deps.clock, meteredBy }, call, context, next);
      };
    },
  };
}

function newBucket(): TokenBucket {
  return new TokenBucket();
}

/** A rate limit with the state of what it limits. */
interface Metered {
  /** What it limits, for people. */
  readonly of: string;
  /** Where it is set. */
  readonly key: string;
  readonly rate: RateLimit;
  readonly bucket: TokenBucket;
}

interface MeteredPath {
  readonly tool: ToolDefinition;
  readonly clock: Clock;
  meteredBy(context: CallContext): readonly Metered[];
}

async function* metered(
  { tool, clock, meteredBy }: MeteredPath,
  call: ToolCall,
  context: CallContext,
  next: Invoke,
): AsyncGenerator<UpstreamEvent, void, undefined> {
  const all = meteredBy(context);
  const nowMs = clock.monotonicMs();
  let worst: { readonly limit: Metered; readonly waitMs: number } | undefined;
  for (const limit of all) {
    const waitMs = limit.bucket.waitMs(limit.rate, nowMs);
    if (waitMs > (worst?.waitMs ?? 0)) worst = { limit, waitMs };
  }
  if (worst !== undefined) throw rateLimited(tool, worst.limit, Math.ceil(worst.waitMs));
  for (const { bucket, rate } of all) bucket.take(rate, nowMs);
  yield* next(call, context);
}

function rateLimited(tool: ToolDefinition, { of, key, rate }: Metered, retryAfterMs: number): GatewayError {
  const { requests, perMs, burst } = rate;
  const atOnce = burst === requests ? "" : `, ${burst} at once`;
  const limit = `${requests} calls in ${perMs} ms${atOnce}`;
  return new GatewayError(
    "RATE_LIMITED",
    `tool "${tool.name}" was not called: ${of} may have ${limit} (\`${key}\`); call again in ${retryAfterMs} ms`,
    {
      retryAfterMs,
      metadata: {
        tool: tool.name,
        limit: "rate",
        of,
        requests: String(requests),
        per_ms: String(perMs),
        burst: String(burst),
      },
    },
  );
}
