import { create } from "@bufbuild/protobuf";
import { createHandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { type CallStats, type ToolResult } from "../../gen/toolgate/v1/call_pb.ts";
import { Effect as WireEffect } from "../../gen/toolgate/v1/errors_pb.ts";
import {
  CallRequestSchema,
  CallResponseSchema,
  type CallStreamRequest,
  CallStreamRequestSchema,
  type CallStreamResponse,
  CallStreamResponseSchema,
  ToolGatewayService,
} from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { type Clock, sleep } from "../../src/core/clock.ts";
import type { Effect } from "../../src/core/effect.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { valuesOf } from "../../src/service/connect-context.ts";
import { LiveRpc, type LiveRpcs } from "../../src/service/rpc.ts";
import { toDuration } from "../../src/wire/durations.ts";
import type { Dice } from "./dice.ts";
import type { Journal } from "./journal.ts";
import type { Leg, LegEnd } from "./leg.ts";
import type { Leaving, SimulatedCaller } from "./scenario-parts.ts";

/** How long after its deadline or its leaving a caller's call may go on. */
const GRACE_MS = 200;
const RESET_GRACE_MS = 1_000;

/** What callers call. */
export interface CallerDeps {
  readonly service: ServiceImpl<typeof ToolGatewayService>;
  readonly clock: Clock;
  readonly live: LiveRpcs;
  readonly dice: Dice;
  readonly journal: Journal;
  /** Longest that a call of the tool takes. */
  totalMs(tool: string): number;
}

/** A caller's connections, one after the other or two at a time. */
export class CallerRun {
  readonly legs: Leg[] = [];
  readonly #caller: SimulatedCaller;
  readonly #name: string;
  readonly #deps: CallerDeps;

  constructor(caller: SimulatedCaller, name: string, deps: CallerDeps) {
    this.#caller = caller;
    this.#name = name;
    this.#deps = deps;
  }

  /** Makes the call. Everything of it happens by the clock. */
  begin(): void {
    const leg = this.#open(undefined);
    const rpc = this.#rpc(this.#caller.rpcTimeoutMs);
    const { leaving, streams } = this.#caller;
    if (!streams) {
      void this.#unary(leg, rpc);
      if (leaving !== undefined) this.#after(leaving.afterMs, () => this.#part(leg, rpc, leaving.how));
      return;
    }
    const iterator = this.#stream(this.#request(), rpc);
    void this.#read(leg, iterator, rpc);
    if (leaving !== undefined) this.#plan(leaving, leg, iterator, rpc);
  }

  #plan(leaving: Leaving, leg: Leg, iterator: AsyncIterator<CallStreamResponse>, rpc: LiveRpc): void {
    const { how, afterMs, backAfterMs } = leaving;
    this.#after(afterMs, () => {
      if (how !== "stop") this.#part(leg, rpc, how);
      else if (leg.end === undefined) {
        leg.leftMs = this.#nowMs;
        void iterator.return?.().catch(() => undefined);
        this.#after(this.#deps.dice.between(0, 30), () => rpc.close(false, this.#deps.dice.chance(0.5)));
      }
    });
    if (backAfterMs !== undefined) this.#after(Math.max(0, afterMs + backAfterMs), () => this.#resume(leg));
  }

  #resume(before: Leg): void {
    // Whoever has read the end has nothing to come back for.
    if (before.callId === undefined || before.sequence < 0 || before.end?.type === "completed") return;
    const leg = this.#open({ leg: before, sequence: before.sequence });
    leg.callId = before.callId;
    const resume = { callId: before.callId, afterSequence: BigInt(before.sequence) };
    const rpc = this.#rpc(undefined);
    void this.#read(leg, this.#stream(create(CallStreamRequestSchema, { resume }), rpc), rpc);
  }

  #request(): CallStreamRequest {
    const { heartbeatMs, resumeWindowMs } = this.#caller;
    return create(CallStreamRequestSchema, {
      invocation: this.#invocation(),
      ...(heartbeatMs === undefined ? {} : { heartbeat: toDuration(heartbeatMs) }),
      ...(resumeWindowMs === undefined ? {} : { resumeWindow: toDuration(resumeWindowMs) }),
    });
  }

  #invocation() {
    const { tool, requestId, timeoutMs, n } = this.#caller;
    return {
      name: tool,
      arguments: { case: "argumentsJson" as const, value: `{"n":${n}}` },
      ...(requestId === undefined ? {} : { requestId }),
      ...(timeoutMs === undefined ? {} : { timeout: toDuration(timeoutMs) }),
    };
  }

  #open(after: Leg["after"]): Leg {
    const leg: Leg = {
      caller: this.#caller,
      name: `${this.#name}.${this.legs.length}`,
      beganMs: this.#nowMs,
      after,
      callId: undefined,
      pieces: [],
      sequence: after?.sequence ?? -1,
      leftMs: undefined,
      end: undefined,
      endMs: undefined,
    };
    this.#deps.journal.note(`${leg.name} calls ${this.#caller.tool} ${this.#caller.requestId ?? ""}`);
    this.legs.push(leg);
    return leg;
  }

  #rpc(timeoutMs: number | undefined): LiveRpc {
    const { clock, live } = this.#deps;
    const rpc: LiveRpc = new LiveRpc(
      {
        method: ToolGatewayService.typeName,
        headers: { get: () => null },
        peer: () => ({ address: "127.0.0.1", port: 0, encrypted: false }),
        binary: true,
        timeoutMs,
        bodyArrived: () => true,
        reset: () => rpc.close(false, false),
      },
      { clock, live, resetGraceMs: RESET_GRACE_MS },
    );
    rpc.identify({ id: this.#caller.principal, roles: [] });
    return rpc;
  }

  #part(leg: Leg, rpc: LiveRpc, how: Leaving["how"]): void {
    if (leg.end !== undefined) return;
    this.#deps.journal.note(`${leg.name} goes: ${how}`);
    leg.leftMs = this.#nowMs;
    rpc.close(false, how !== "cancel");
  }

  async #unary(leg: Leg, rpc: LiveRpc): Promise<void> {
    const askedMs = this.#nowMs;
    try {
      const context = contextOf(rpc, ToolGatewayService.method.call);
      const request = create(CallRequestSchema, { invocation: this.#invocation() });
      const { callId, result, stats } = create(CallResponseSchema, await this.#deps.service.call(request, context));
      leg.callId = callId;
      this.#end(leg, completedOf(result, stats));
    } catch (error) {
      leg.callId = rpc.callId;
      this.#end(leg, { type: "error", error: GatewayError.from(error) });
    }
    this.#checkTime(leg, askedMs);
    rpc.end();
    rpc.close(true, false);
  }

  async *#stream(request: CallStreamRequest, rpc: LiveRpc): AsyncGenerator<CallStreamResponse, void, undefined> {
    const context = contextOf(rpc, ToolGatewayService.method.callStream);
    for await (const message of this.#deps.service.callStream(request, context)) {
      yield create(CallStreamResponseSchema, message);
    }
  }

  async #read(leg: Leg, iterator: AsyncIterator<CallStreamResponse>, rpc: LiveRpc): Promise<void> {
    const { clock, dice, journal } = this.#deps;
    const { pauseMs } = this.#caller;
    const never = new AbortController().signal;
    let askedMs = this.#nowMs;
    try {
      for (;;) {
        askedMs = this.#nowMs;
        const step = await iterator.next();
        leg.callId ??= rpc.callId;
        if (step.done === true) break;
        this.#checkTime(leg, askedMs);
        // What comes after it has gone is for nobody; its transport goes on taking it, or not.
        if (leg.leftMs === undefined) this.#take(leg, step.value);
        else if (dice.chance(0.5)) await iterator.return?.();
        if (pauseMs > 0) await sleep(clock, pauseMs, never);
      }
      if (leg.end === undefined && leg.leftMs === undefined) journal.breach("a stream ends with an end", leg.name);
      this.#end(leg, { type: "left" });
    } catch (error) {
      if (leg.end !== undefined) journal.breach("nothing comes after the end", `${leg.name} ${String(error)}`);
      leg.callId ??= rpc.callId;
      this.#end(leg, { type: "error", error: GatewayError.from(error) });
    }
    this.#checkTime(leg, askedMs);
    rpc.end();
    rpc.close(true, false);
  }

  #take(leg: Leg, { sequence, event }: CallStreamResponse): void {
    const { journal } = this.#deps;
    if (leg.end !== undefined) journal.breach("nothing comes after the end", `${leg.name} got ${event.case}`);
    if (Number(sequence) !== leg.sequence + 1) {
      journal.breach("messages have no gap", `${leg.name} got ${sequence} after ${leg.sequence}`);
    }
    leg.sequence = Number(sequence);
    const isFirst = leg.after === undefined && leg.sequence === 0;
    if ((event.case === "started") !== isFirst) journal.breach("started comes first", `${leg.name} ${event.case}`);
    journal.note(`${leg.name} got ${sequence} ${event.case}`);
    if (event.case === "output" && event.value.delta.case === "text") {
      leg.pieces.push({ sequence: leg.sequence, text: event.value.delta.value });
    }
    if (event.case === "completed") this.#end(leg, completedOf(event.value.result, event.value.stats));
  }

  #end(leg: Leg, end: LegEnd): void {
    leg.endMs = this.#nowMs;
    if (leg.end !== undefined) return;
    leg.end = leg.leftMs === undefined ? end : { type: "left" };
    this.#deps.journal.note(`${leg.name} ${leg.callId ?? ""} ends: ${wordsOf(leg.end)}`);
  }

  /** That what was asked for came before the deadline or soon after it, or soon after the caller had gone. */
  #checkTime(leg: Leg, askedMs: number): void {
    const { tool, requestId, timeoutMs, rpcTimeoutMs } = this.#caller;
    // A stream that goes on has the deadline of whoever began the run.
    if (leg.after !== undefined && requestId !== undefined) return;
    const beganMs = this.legs[0]?.beganMs ?? 0;
    const limits = [
      this.#deps.totalMs(tool),
      timeoutMs ?? Number.POSITIVE_INFINITY,
      rpcTimeoutMs ?? Number.POSITIVE_INFINITY,
    ];
    const byMs = Math.max(askedMs, Math.min(beganMs + Math.min(...limits), leg.leftMs ?? Number.POSITIVE_INFINITY));
    const lateMs = this.#nowMs - byMs;
    if (lateMs > GRACE_MS) this.#deps.journal.breach("nothing outlasts its deadline", `${leg.name} by ${lateMs} ms`);
  }

  #after(ms: number, task: () => void): void {
    this.#deps.clock.after(ms, task);
  }

  get #nowMs(): number {
    return this.#deps.clock.monotonicMs();
  }
}

function contextOf(rpc: LiveRpc, method: (typeof ToolGatewayService.method)["call" | "callStream"]) {
  const url = `http://127.0.0.1/${ToolGatewayService.typeName}/${method.name}`;
  const init = { service: ToolGatewayService, method, url, protocolName: "grpc", requestMethod: "POST" };
  return createHandlerContext({ ...init, contextValues: valuesOf(rpc) });
}

const EFFECTS: Readonly<Partial<Record<WireEffect, Effect>>> = {
  [WireEffect.NONE]: "none",
  [WireEffect.COMMITTED]: "committed",
  [WireEffect.UNKNOWN]: "unknown",
};

function completedOf(result: ToolResult | undefined, stats: CallStats | undefined): LegEnd {
  const texts = (result?.content ?? []).map(({ part }) => (part.case === "text" ? part.value : ""));
  return {
    type: "completed",
    text: texts.join(""),
    failure: result?.failure?.reason,
    effect: EFFECTS[stats?.effect ?? WireEffect.UNSPECIFIED] ?? "unknown",
    replayed: stats?.replayed === true,
  };
}

function wordsOf(end: LegEnd): string {
  if (end.type === "error") return `${end.error.reason} effect=${end.error.effect} ${end.error.message}`;
  if (end.type === "left") return "left";
  const { failure = "ok", effect, replayed, text } = end;
  return `${failure} effect=${effect} replayed=${replayed} ${text}`;
}
