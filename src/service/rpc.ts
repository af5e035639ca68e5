import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { HeaderReader, Peer } from "../core/identity.ts";
import type { Principal } from "../core/principal.ts";

/** Facts and life of one RPC: what a handler sees of it, whatever front it came through. */
export interface Rpc {
  /** `toolgate.v1.ToolGatewayService/Call`. */
  readonly method: string;
  readonly headers: HeaderReader;
  readonly principal: Principal;
  /** Ends the RPC; its reason is a GatewayError. Aborts when the caller goes away, too. */
  readonly signal: AbortSignal;
  /**
   * Whether the RPC ended with its connection, as against a caller that cancelled it. Over HTTP/1 there is no other
   * way to cancel, so every end counts as lost there.
   */
  readonly lost: boolean;
  /** The caller's RPC deadline: milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
  /** Who calls by what it showed, found out anew; absent: nothing to ask. @throws GatewayError where it counts no more. */
  reauthenticate?(): Principal | Promise<Principal>;
  /** Whether messages travel in binary form, as against JSON. */
  readonly binary: boolean;
  /** The call was accepted: its id goes into the RPC's errors and log lines. */
  accept(callId: string): void;
  /**
   * Ends the RPC. A handler has a moment to end with more knowledge; then, or where the answer cannot be written
   * because the reader does not read, the RPC is reset without a status. The first reason stays.
   */
  abort(reason: GatewayError): void;
  /** The RPC has no end of its own: it ends as soon as the gateway begins to stop, instead of being waited for. */
  endWithGateway(): void;
}

/** What a front knows of an RPC when its headers are there. */
export interface RpcInit {
  readonly method: string;
  readonly headers: HeaderReader;
  readonly binary: boolean;
  /** The caller's RPC deadline, milliseconds from now. */
  readonly timeoutMs: number | undefined;
  peer(): Peer;
  /** Whether the whole request is there, or need not be for an answer. */
  bodyArrived(): boolean;
  /** Ends the RPC on the transport without a status. */
  reset(): void;
}

/** What RPCs of one front share. */
export interface RpcDeps {
  readonly clock: Clock;
  readonly live: LiveRpcs;
  /** How long an aborted RPC has to answer before it is reset. */
  readonly resetGraceMs: number;
}

/** Until somebody told who calls: may do nothing. */
const NOBODY: Principal = { id: "anonymous", roles: [], kind: "anonymous" };

/** An RPC from its headers to the end of its stream. */
export class LiveRpc implements Rpc {
  readonly deadlineMs: number | undefined;
  /** When its headers were there, in monotonic milliseconds. */
  readonly sinceMs: number;
  /** Whether a handler gave its answer, or the beginning of it. */
  answered = false;
  /** When its handler came to an end, in monotonic milliseconds. */
  endedMs: number | undefined;
  readonly #init: RpcInit;
  readonly #deps: RpcDeps;
  readonly #controller = new AbortController();
  #principal: Principal = NOBODY;
  #ask: () => Principal | Promise<Principal> = () => this.#principal;
  #callId: string | undefined;
  #endless = false;
  #closed = false;
  #lost = false;
  #timer: Disposable | undefined;

  constructor(init: RpcInit, deps: RpcDeps) {
    this.#init = init;
    this.#deps = deps;
    this.sinceMs = deps.clock.monotonicMs();
    const { timeoutMs } = init;
    this.deadlineMs = timeoutMs === undefined ? undefined : deps.clock.now() + timeoutMs;
    if (timeoutMs !== undefined) {
      this.#timer = deps.clock.after(timeoutMs, () => this.abort(rpcDeadlineExceeded(timeoutMs)));
    }
    deps.live.add(this);
  }

  get method(): string {
    return this.#init.method;
  }

  get headers(): HeaderReader {
    return this.#init.headers;
  }

  get binary(): boolean {
    return this.#init.binary;
  }

  get principal(): Principal {
    return this.#principal;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get lost(): boolean {
    return this.#lost;
  }

  get callId(): string | undefined {
    return this.#callId;
  }

  get endless(): boolean {
    return this.#endless;
  }

  peer(): Peer {
    return this.#init.peer();
  }

  bodyArrived(): boolean {
    return this.#init.bodyArrived();
  }

  /** Authentication told who calls; `ask` does so again. */
  identify(principal: Principal, ask: () => Principal | Promise<Principal> = () => principal): void {
    this.#principal = principal;
    this.#ask = ask;
  }

  reauthenticate(): Principal | Promise<Principal> {
    return this.#ask();
  }

  accept(callId: string): void {
    this.#callId = callId;
  }

  abort(reason: GatewayError): void {
    if (this.#closed || this.signal.aborted) return;
    this.#timer?.[Symbol.dispose]();
    this.#timer = this.#deps.clock.after(this.#deps.resetGraceMs, () => this.reset());
    this.#controller.abort(reason);
  }

  /** The handler has nothing more to give. */
  end(): void {
    this.endedMs = this.#deps.clock.monotonicMs();
  }

  /** Ends the RPC on the transport without a status. */
  reset(): void {
    this.#init.reset();
  }

  endWithGateway(): void {
    this.#endless = true;
    this.#deps.live.endIfStopping(this);
  }

  /**
   * The stream is closed. `answered`: the whole answer was handed to the transport before. `lost`: its connection is
   * closed too.
   */
  close(answered: boolean, lost: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#lost = lost && !this.signal.aborted;
    this.#timer?.[Symbol.dispose]();
    this.#deps.live.remove(this);
    if (!answered) this.#controller.abort(new GatewayError("CALL_CANCELLED", "the caller cancelled or went away"));
  }
}

/** How long what is not a handler's work may take; checked now and then. */
export interface RpcLimits {
  /** Until the request is there. */
  readonly requestMs: number;
  /** From the handler's end until the caller has taken the answer. */
  readonly answerMs: number;
}

/** The RPCs of a gateway that have not ended: what a graceful stop waits for. */
export class LiveRpcs implements Disposable {
  readonly #clock: Clock;
  readonly #limits: RpcLimits;
  readonly #rpcs = new Set<LiveRpc>();
  readonly #onIdle: (() => void)[] = [];
  #stopping: GatewayError | undefined;
  #sweep: Disposable | undefined;

  constructor(clock: Clock, limits: RpcLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  add(rpc: LiveRpc): void {
    this.#rpcs.add(rpc);
    // One timer for all, since hardly a request is late.
    this.#sweep ??= this.#sweepLater();
  }

  remove(rpc: LiveRpc): void {
    this.#rpcs.delete(rpc);
    if (this.#rpcs.size === 0) for (const wake of this.#onIdle.splice(0)) wake();
  }

  /** Resolves when no RPC is left. */
  idle(): Promise<void> {
    return this.#rpcs.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }

  /** Ends the RPCs that have no end of their own, now and from now on. */
  beginStop(reason: GatewayError): void {
    this.#stopping = reason;
    for (const rpc of this.#rpcs) this.endIfStopping(rpc);
  }

  endIfStopping(rpc: LiveRpc): void {
    if (this.#stopping !== undefined && rpc.endless) rpc.abort(this.#stopping);
  }

  abortAll(reason: GatewayError): void {
    for (const rpc of this.#rpcs) rpc.abort(reason);
  }

  [Symbol.dispose](): void {
    this.#sweep?.[Symbol.dispose]();
  }

  #endLate(): void {
    this.#sweep = this.#rpcs.size === 0 ? undefined : this.#sweepLater();
    const { requestMs, answerMs } = this.#limits;
    const nowMs = this.#clock.monotonicMs();
    for (const rpc of this.#rpcs) {
      if (rpc.sinceMs <= nowMs - requestMs && !rpc.bodyArrived()) rpc.abort(requestLate(requestMs));
      // A status would wait behind the answer.
      if (rpc.endedMs !== undefined && rpc.endedMs <= nowMs - answerMs) rpc.reset();
    }
  }

  #sweepLater(): Disposable {
    return this.#clock.after(Math.min(this.#limits.requestMs, this.#limits.answerMs) / 4, () => this.#endLate());
  }
}

function requestLate(requestMs: number): GatewayError {
  return new GatewayError("REQUEST_INVALID", `the request did not arrive within ${requestMs} ms`);
}

function rpcDeadlineExceeded(timeoutMs: number): GatewayError {
  return new GatewayError("CALL_DEADLINE_EXCEEDED", `the caller's RPC deadline of ${timeoutMs} ms passed`, {
    metadata: { limit: "rpc", deadline_ms: String(timeoutMs) },
  });
}

/** Why an RPC ends when the gateway stops. */
export function gatewayStopping(): GatewayError {
  return new GatewayError("GATEWAY_STOPPING", "the gateway is stopping; call another instance, or again later");
}
