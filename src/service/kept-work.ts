import { createHash } from "node:crypto";
import type { CallContext, ToolCall, ToolEvent } from "../core/call.ts";
import { cutError } from "../core/cut-error.ts";
import { GatewayError } from "../core/errors.ts";
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue, ownValue } from "../core/json.ts";
import type { LogFields } from "../core/logger.ts";
import type { ShortCall } from "../core/observation.ts";
import type { ToolLease } from "../core/registry.ts";
import { eventsUntil, linkSignals, raceSignal } from "../core/signal.ts";
import type { Reconcile } from "../ledger/call-ledger.ts";
import { upstreamKey } from "../ledger/upstream-key.ts";
import type { CallRequestFacts } from "../wire/call-codec.ts";
import { outputPieces } from "../wire/result-codec.ts";
import type { OpenCall } from "./call-context.ts";
import { type CallEnd, type CallEvent, type CallOutput, CallRecord } from "./call-record.ts";
import type { Attachment, CallerView, KeptCall, KeptCalls } from "./kept-calls.ts";
import { ABORT_GRACE_MS, type CallDeps } from "./run-call.ts";

/** What running kept calls takes. */
export interface KeptCallDeps extends CallDeps {
  readonly kept: KeptCalls;
}

/** What a kept call is made from. */
export interface KeptWorkParts {
  readonly request: CallRequestFacts;
  readonly lease: ToolLease;
  readonly opened: OpenCall;
  readonly deps: KeptCallDeps;
}

/** How a call ended for its caller. */
type Outcome = Pick<ShortCall, "outcome" | "reason" | "status" | "effect" | "replayed">;

/**
 * One caller's side of a kept call: what it runs if it is the one to run it, and its line in the log where the tool's own
 * path does not write one.
 */
export class KeptWork implements Disposable {
  readonly #parts: KeptWorkParts;
  readonly #record: CallRecord;
  /** `undefined`: the call has no key. */
  readonly #keyed: KeptCall["keyed"];
  readonly #gone = Promise.withResolvers<void>();
  /** Whether its run is its own and not another call's. */
  #runs = false;
  /** Whether something of its run may go on when its end is told. */
  #underWay = false;
  /** Whether the tool's own path ran. */
  #ran = false;
  #joined: string | undefined;
  #outcome: Outcome = { outcome: "left" };
  #metadata: LogFields = {};

  constructor(parts: KeptWorkParts) {
    const { request, lease, opened, deps } = parts;
    const { definition } = lease;
    this.#parts = parts;
    this.#record = new CallRecord(request, definition, deps.clock);
    const principal = opened.context.principal.id;
    const { requestId: key } = request;
    this.#keyed = key === undefined ? undefined : { principal, tool: definition.name, key, digest: digestOf(request) };
  }

  /**
   * Runs the call, or joins the one that runs with its key.
   *
   * @throws GatewayError REQUEST_ID_REUSED.
   */
  enter(windowMs: number | undefined): Attachment {
    const { lease, opened, deps } = this.#parts;
    const { callId, principal } = opened.context;
    const { definition } = lease;
    const view: CallerView = {
      joined: (end) => this.#record.joined(end),
      cut: (signal) => cutError(definition, signal),
    };
    try {
      const attachment = deps.kept.enter({
        callId,
        principal: principal.id,
        keyed: this.#keyed,
        windowMs,
        view,
        run: (signal, before) => this.#run(signal, before),
        gone: this.#gone.promise,
      });
      this.#runs = !attachment.joins;
      if (attachment.joins) this.#joined = attachment.runnerId;
      return attachment;
    } catch (thrown) {
      throw this.#noteError(thrown);
    }
  }

  /** Runs the call, or has its earlier outcome from the ledger. */
  async *#run(signal: AbortSignal, before: Promise<void> | undefined): AsyncGenerator<CallOutput, void, undefined> {
    const { opened, lease, deps } = this.#parts;
    const { clock } = deps;
    const record = this.#record;
    using link = linkSignals(signal);
    using _timer = clock.after(opened.context.deadlineMs - clock.now(), () => link.abort(opened.overdue()));
    const context = { ...opened.context, signal: link.signal };
    try {
      const events = eventsUntil(this.#events(context, before), link.signal, clock, {
        graceMs: ABORT_GRACE_MS,
        cutError: () => cutError(lease.definition, link.signal),
      });
      for await (const event of events) {
        if (event.type === "exchange") record.add(event.exchange);
        else if (event.type === "queue-leave") record.waited(event.waitedMs);
        else if (event.type === "completed") yield this.#noteEnd(record.end(event));
        else yield* outputPieces(event);
      }
      record.refuseEndless();
    } catch (thrown) {
      throw this.#noteError(thrown);
    } finally {
      if (!this.#underWay) this.#gone.resolve();
      if (!this.#ran) this.#log();
    }
  }

  /** Passes events on and takes note of how the call ended for this caller, where it has joined another's. */
  async *noted(events: AsyncIterable<CallEvent>): AsyncGenerator<CallEvent, void, undefined> {
    if (this.#runs) {
      yield* events;
      return;
    }
    try {
      for await (const event of events) yield event.type === "completed" ? this.#noteEnd(event) : event;
    } catch (thrown) {
      throw this.#noteError(thrown);
    }
  }

  /** The caller has gone: puts its call on record, unless it runs, which may go on. */
  [Symbol.dispose](): void {
    if (!this.#runs) this.#log();
  }

  #log(): void {
    const { lease, opened, deps } = this.#parts;
    const { callId, principal } = opened.context;
    const ms = Math.round((deps.clock.monotonicMs() - this.#record.startedMs) * 1_000) / 1_000;
    const joined = this.#joined === undefined ? {} : { joined: this.#joined };
    const facts = { callId, tool: lease.definition.name, principal: principal.id, ...joined };
    opened.context.logger.info("tool-call-end", { ...facts, ms, ...this.#outcome, ...this.#metadata });
    const { sessionId, turnId, taskId, toolCallId } = opened.context;
    const ids = { sessionId, turnId, taskId, toolCallId };
    deps.watch?.short({ ...facts, ...ids, arguments: opened.call.arguments, ms, ...this.#outcome });
  }

  #noteEnd(end: CallEnd): CallEnd {
    const { effect, replayed } = end.stats;
    const failure = end.result?.failure;
    const reason = failure === undefined ? {} : { reason: failure.reason };
    const passed = end.result?.needsInput === undefined ? "ok" : "needs-input";
    this.#outcome = { outcome: failure === undefined ? passed : "failure", ...reason, effect, replayed };
    return end;
  }

  #noteError(thrown: unknown): GatewayError {
    const error = GatewayError.from(thrown);
    const { reason, effect, metadata } = error;
    this.#outcome = { outcome: "error", reason, status: error.status, effect };
    this.#metadata = { metadata };
    return error;
  }

  #events(context: CallContext, before: Promise<void> | undefined): AsyncIterable<ToolEvent> {
    const keyed = this.#keyed;
    if (keyed === undefined) return this.#tool(context);
    const { lease, deps } = this.#parts;
    const events = deps.kept.ledger.events({
      ...keyed,
      callId: context.callId,
      repeatable: lease.repeat?.repeatable === true,
      run: (key) => this.#tool({ ...context, key }),
      reconcile: this.#reconcile(upstreamKey(keyed), context),
    });
    return this.#inTurn(events, context.signal, before);
  }

  /** The events, when the runs of the same key before this one are gone; tells when this one is. */
  async *#inTurn(
    events: AsyncIterable<ToolEvent>,
    signal: AbortSignal,
    before: Promise<void> | undefined,
  ): AsyncGenerator<ToolEvent, void, undefined> {
    this.#underWay = true;
    try {
      // What those did nobody knows by then.
      if (before !== undefined)
        await raceSignal(before, signal).catch(() => {
          throw cutError(this.#parts.lease.definition, signal);
        });
      yield* events;
    } finally {
      this.#gone.resolve();
    }
  }

  #tool(context: CallContext): AsyncIterable<ToolEvent> {
    // The ledger may have taken its time.
    context.signal.throwIfAborted();
    this.#ran = true;
    return this.#parts.lease.run(this.#parts.opened.call, context);
  }

  #reconcile(key: string, context: CallContext): Reconcile | undefined {
    const { repeat } = this.#parts.lease;
    const tool = repeat?.reconcile;
    if (tool === undefined || !this.#sees(tool, context)) return undefined;
    const keyNames = ["request_id", ...(repeat?.idempotencyField === undefined ? [] : [repeat.idempotencyField])];
    const known = { ...this.#parts.opened.call.arguments, ...Object.fromEntries(keyNames.map((name) => [name, key])) };
    return { tool, run: () => this.#ask(tool, known, context) };
  }

  /** What says that a tool could not be asked would say that there is one. */
  #sees(tool: string, { principal }: CallContext): boolean {
    try {
      this.#parts.deps.registry.get(tool, principal);
      return true;
    } catch (error) {
      if (error instanceof GatewayError && error.reason === "TOOL_NOT_FOUND") return false;
      throw error;
    }
  }

  /** Calls the tool that knows what became of a call, with those of the values that it has parameters for. */
  async *#ask(name: string, known: JsonObject, context: CallContext): AsyncGenerator<ToolEvent, void, undefined> {
    using lease = this.#parts.deps.registry.acquire(name, context.principal);
    if (lease.repeat?.repeatable !== true) throw mayChange(name);
    const properties = ownValue(lease.definition.inputSchema, "properties") ?? null;
    const names = isJsonObject(properties) ? Object.keys(properties) : [];
    const taken = names.flatMap((param): [string, JsonValue][] => {
      const value = ownValue(known, param);
      return value === undefined ? [] : [[param, value]];
    });
    const args: JsonObject = Object.fromEntries(taken);
    const call: ToolCall = { ...this.#parts.opened.call, tool: lease.definition.name, arguments: args };
    yield* lease.run(call, context);
  }
}

/** Equal for requests that ask the same: an answer to a tool that asked for input is another request than the call. */
function digestOf({ arguments: args, continuation }: CallRequestFacts): string {
  const hash = createHash("sha256").update(canonicalJson(args));
  if (continuation === undefined) return hash.digest("hex");
  const answers = Object.fromEntries([...continuation.answers].map(([id, answer]) => [id, { ...answer }]));
  return hash.update(canonicalJson({ state: continuation.state, answers })).digest("hex");
}

function mayChange(tool: string): GatewayError {
  return new GatewayError(
    "DECLARATION_INVALID",
    `\`reconcile\` names \`${tool}\`, which may change something: declare \`hints: { read_only: true }\` there`,
    { metadata: { tool } },
  );
}
