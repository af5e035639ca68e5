import { endedCall } from "../../src/adapters/shared/ended-call.ts";
import type { CallContext, Invoke, ToolCall, UpstreamEvent, UpstreamResult } from "../../src/core/call.ts";
import { type Clock, sleep } from "../../src/core/clock.ts";
import type { Effect } from "../../src/core/effect.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { JsonValue } from "../../src/core/json.ts";
import type { Dice } from "./dice.ts";
import type { Journal } from "./journal.ts";
import type { AttemptEnd, SimulatedTool } from "./scenario-parts.ts";

/** How long what hangs and hears nothing goes on. */
const DEAF_MS = 400_000;
/** The time limit of reading, as an adapter would hold it. */
const READ_MS = 30_000;

/** One request that reached the upstream, or was on its way to it. */
export interface Attempt {
  readonly id: string;
  readonly tool: SimulatedTool;
  readonly callId: string;
  /** What must not be done twice: calls with the same key are one operation. */
  readonly operation: string;
  readonly keyed: boolean;
  /** As the gateway counts. */
  readonly number: number;
  /** What the upstream tells repetitions by. */
  readonly key: string | undefined;
  /** Its call's argument. */
  readonly n: unknown;
  readonly signal: AbortSignal;
  /** When its call must be over. */
  readonly deadlineMs: number;
  readonly startMs: number;
  endMs: number | undefined;
  /** Pieces of text that were sent. */
  pieces: number;
  /** Whether it acted. */
  acted: boolean;
  /** What it told of its effect. */
  told: Effect | undefined;
  /** Whether it failed in a way that may pass. */
  transient: boolean;
  /** When it asked to be called again. */
  askedMs: number;
  /** Whether it answered as it should. */
  whole: boolean;
  /** Whether it ended after its signal, so that it says nothing. */
  cancelled: boolean;
}

/** The text of an attempt's n-th piece. */
export function pieceOf(attempt: string, index: number): string {
  return `[${attempt}.${index}]`;
}

/** What the upstream does by chance in one attempt. */
interface Script {
  readonly end: AttemptEnd;
  readonly connectMs: number;
  readonly latencyMs: number;
  readonly pieces: number;
  readonly gapMs: number;
  readonly actsEarly: boolean;
  /** Whether it acts where the answer does not tell. */
  readonly actsUnseen: boolean;
  readonly deaf: boolean;
}

/** Upstreams that fail by chance, as an adapter would report it, and remember what they did. */
export class SimulatedUpstream {
  readonly attempts: Attempt[] = [];
  readonly running = new Set<Attempt>();
  /** From now on nothing fails. */
  calm = false;
  readonly #clock: Clock;
  readonly #dice: Dice;
  readonly #journal: Journal;
  readonly #begins: (attempt: Attempt, context: CallContext) => void;

  /** `begins` is told of each attempt before it counts. */
  constructor(deps: {
    readonly clock: Clock;
    readonly dice: Dice;
    readonly journal: Journal;
    begins(attempt: Attempt, context: CallContext): void;
  }) {
    this.#clock = deps.clock;
    this.#dice = deps.dice;
    this.#journal = deps.journal;
    this.#begins = deps.begins;
  }

  invokeOf(tool: SimulatedTool): Invoke {
    return (call, context) => this.#invoke(tool, call, context);
  }

  async *#invoke(
    tool: SimulatedTool,
    call: ToolCall,
    context: CallContext,
  ): AsyncGenerator<UpstreamEvent, void, undefined> {
    if (context.signal.aborted) throw endedCall(context.signal.reason, "none", "connect");
    const attempt = this.#begin(tool, call, context);
    let how = "given up";
    try {
      for await (const event of this.#play(attempt, this.#script(tool), context.signal)) {
        if (event.type === "upstream-delta") attempt.pieces += 1;
        if (event.type === "upstream-result") {
          attempt.told = event.result.effect;
          attempt.transient = event.result.failure?.transient === true;
          attempt.askedMs = event.result.failure?.retryAfterMs ?? 0;
          attempt.whole = event.result.failure === undefined;
          how = event.result.failure?.reason ?? "ok";
        }
        yield event;
      }
    } catch (error) {
      const { reason, effect, retryable } = GatewayError.from(error);
      // What breaks without a GatewayError is taken for possibly done.
      attempt.told = error instanceof GatewayError ? effect : "unknown";
      attempt.transient = reason.startsWith("UPSTREAM_") && (effect !== "none" || retryable);
      how = reason;
      throw error;
    } finally {
      attempt.endMs = this.#clock.monotonicMs();
      attempt.cancelled = context.signal.aborted;
      this.running.delete(attempt);
      this.#journal.note(`end ${attempt.id} ${how} pieces=${attempt.pieces} acted=${attempt.acted}`);
    }
  }

  #begin(tool: SimulatedTool, call: ToolCall, context: CallContext): Attempt {
    const { callId, key, principal } = context;
    const { name } = tool.definition;
    const field = tool.idempotencyField;
    const attempt: Attempt = {
      id: `a${this.attempts.length}`,
      tool,
      callId,
      operation: key === undefined ? `call ${callId}` : `${principal.id} ${name} ${key.value}`,
      keyed: key !== undefined,
      number: context.attempt,
      key: field === undefined ? undefined : textOf(call.arguments[field]),
      n: call.arguments["n"],
      signal: context.signal,
      deadlineMs: context.deadlineMs,
      startMs: this.#clock.monotonicMs(),
      endMs: undefined,
      pieces: 0,
      acted: false,
      told: undefined,
      transient: false,
      askedMs: 0,
      whole: false,
      cancelled: false,
    };
    this.#journal.note(`begin ${attempt.id} ${name} ${callId} #${attempt.number} ${attempt.operation}`);
    this.#begins(attempt, context);
    this.attempts.push(attempt);
    this.running.add(attempt);
    return attempt;
  }

  #script({ temper, definition }: SimulatedTool): Script {
    const dice = this.#dice;
    const streams = definition.delivery === "incremental";
    const pieces = streams ? dice.between(0, temper.pieces) : 0;
    if (this.calm) {
      const calm = { end: "ok", connectMs: 0, latencyMs: 10, gapMs: 1, deaf: false } as const;
      return { ...calm, pieces, actsEarly: true, actsUnseen: true };
    }
    let rest = dice.roll();
    const fault = temper.faults.find(([, share]) => (rest -= share) < 0);
    return {
      end: fault?.[0] ?? "ok",
      connectMs: dice.oneOf([0, 0, 1, 10]),
      latencyMs: dice.between(...temper.latencyMs),
      pieces,
      gapMs: dice.oneOf([0, 5, 1_500]),
      actsEarly: dice.chance(0.5),
      actsUnseen: dice.chance(0.5),
      deaf: dice.chance(temper.deaf),
    };
  }

  async *#play(attempt: Attempt, script: Script, signal: AbortSignal): AsyncGenerator<UpstreamEvent, void, undefined> {
    const readOnly = attempt.tool.policy.effectClass === "read";
    const heard = script.deaf ? new AbortController().signal : signal;
    const wait = async (ms: number, sent: boolean): Promise<void> => {
      try {
        if (ms > 0) await sleep(this.#clock, ms, heard);
        else heard.throwIfAborted();
      } catch (reason) {
        throw endedCall(reason, sent && !readOnly ? "unknown" : "none", sent ? "read" : "connect");
      }
    };
    const act = (): void => {
      if (!readOnly) attempt.acted = true;
    };
    const { name } = attempt.tool.definition;
    await wait(script.connectMs, false);
    if (script.end === "no-connection") throw timeout(name, "connect", "none");
    if (script.end === "unreachable") {
      throw new GatewayError("UPSTREAM_UNREACHABLE", `${name}: no connection`, { metadata: { phase: "connecting" } });
    }
    const acts = script.end === "ok" || (script.actsUnseen && isUnseen(script.end));
    if (acts && script.actsEarly) act();
    await wait(script.latencyMs, true);
    yield { type: "progress", current: 0, total: script.pieces, message: "begun" };
    const pieces = script.end === "ok" ? script.pieces : Math.floor(script.pieces / 2);
    for (let i = 0; i < pieces && streamsBefore(script.end); i++) {
      yield { type: "upstream-delta", text: pieceOf(attempt.id, i) };
      await wait(script.gapMs, true);
    }
    if (acts) act();
    if (script.end === "hang") await wait(script.deaf ? DEAF_MS : READ_MS, true);
    const lost: Effect = readOnly ? "none" : "unknown";
    switch (script.end) {
      case "hang":
      case "timeout":
        throw timeout(name, "read", lost);
      case "lost":
        throw answerLost(name, lost);
      case "breaks":
        throw new TypeError("the adapter has a bug");
      case "endless":
        return;
      default:
        yield { type: "upstream-result", result: this.#result(attempt, script.end, lost) };
    }
  }

  #result({ id, tool, pieces }: Attempt, end: AttemptEnd, lost: Effect): UpstreamResult {
    const fault = { message: end, retryable: false } as const;
    switch (end) {
      case "unavailable": {
        const failure = { ...fault, reason: "UPSTREAM_STATUS", upstreamCode: 503 } as const;
        return { content: [], failure: { ...failure, transient: true, upstreamFault: true }, effect: lost };
      }
      case "rate-limited": {
        const asked = this.#dice.oneOf([undefined, 20, 700, 9_000]);
        const retryAfter = asked === undefined ? {} : { retryAfterMs: asked };
        const failure = { ...fault, reason: "UPSTREAM_RATE_LIMITED", upstreamCode: 429, upstreamFault: false } as const;
        return { content: [], failure: { ...failure, ...retryAfter, transient: true }, effect: "none" };
      }
      case "refused": {
        const failure = { ...fault, reason: "UPSTREAM_STATUS", upstreamCode: 422, upstreamFault: false } as const;
        return { content: [], failure, effect: "none" };
      }
      default: {
        const effect = tool.policy.effectClass === "read" ? "none" : "committed";
        if (pieces > 0) return { content: [], effect };
        return { content: [{ type: "text", text: pieceOf(id, 0) }], effect };
      }
    }
  }
}

/** Whether nobody can tell from the end if the upstream acted. */
function isUnseen(end: AttemptEnd): boolean {
  return end !== "rate-limited" && end !== "refused";
}

/** Whether text may come before such an end. */
function streamsBefore(end: AttemptEnd): boolean {
  return end === "ok" || end === "lost" || end === "hang" || end === "breaks" || end === "endless";
}

function timeout(tool: string, limit: string, effect: Effect): GatewayError {
  const facts = { effect, retryable: effect === "none", metadata: { tool, limit } };
  return new GatewayError("UPSTREAM_TIMEOUT", `${tool}: spent timeout.${limit}`, facts);
}

function answerLost(tool: string, effect: Effect): GatewayError {
  const metadata = { tool, phase: "answering" };
  return effect === "none"
    ? new GatewayError("UPSTREAM_UNREACHABLE", `${tool}: cut short`, { metadata })
    : new GatewayError("UPSTREAM_ANSWER_LOST", `${tool}: cut short`, { effect, metadata });
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : `no text: ${typeof value}`;
}
