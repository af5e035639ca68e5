import { createHash } from "node:crypto";
import type { CallContext, ToolCall, ToolEvent } from "../core/call.ts";
import { cutError } from "../core/cut-error.ts";
import { GatewayError } from "../core/errors.ts";
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue, ownValue } from "../core/json.ts";
import type { LogFields } from "../core/logger.ts";
import type { ToolLease } from "../core/registry.ts";
import { eventsUntil, linkSignals } from "../core/signal.ts";
import type { LedgerKey } from "../core/store.ts";
import type { Reconcile } from "../ledger/call-ledger.ts";
import { upstreamKey } from "../ledger/upstream-key.ts";
import type { CallRequestFacts } from "../wire/call-codec.ts";
import { outputPieces } from "../wire/result-codec.ts";
import type { OpenCall } from "./call-context.ts";
import { type CallEvent, type CallOutput, CallRecord } from "./call-record.ts";
import type { CallerView, KeptCall, KeptCalls } from "./kept-calls.ts";
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

/** One caller's side of a kept call: what it runs if it is the one to run it, and its line in the log if it is not. */
export class KeptWork implements Disposable {
  /** `undefined`: the call has no key. */
  readonly keyed: (LedgerKey & { readonly digest: string }) | undefined;
  readonly #parts: KeptWorkParts;
  readonly #record: CallRecord;
  /** Whether the tool's own path ran, which puts its calls on record by itself. */
  #ran = false;
  #joined: string | undefined;
  #outcome: LogFields = { outcome: "left" };

  constructor(parts: KeptWorkParts) {
    const { request, lease, opened, deps } = parts;
    const { definition } = lease;
    this.#parts = parts;
    this.#record = new CallRecord(request, definition, deps.clock);
    const principal = opened.context.principal.id;
    const { requestId: key } = request;
    this.keyed = key === undefined ? undefined : { principal, tool: definition.name, key, digest: digestOf(request) };
  }

  get facts(): Pick<KeptCall, "callId" | "principal" | "keyed" | "view"> {
    const { definition } = this.#parts.lease;
    const { callId, principal } = this.#parts.opened.context;
    const view: CallerView = {
      joined: (end) => this.#record.joined(end),
      cut: (signal) => cutError(definition, signal),
    };
    return { callId, principal: principal.id, keyed: this.keyed, view };
  }

  /** The call joined another. */
  joins(runnerId: string): void {
    this.#joined = runnerId;
  }

  /** Runs the call, or has its earlier outcome from the ledger. */
  async *run(signal: AbortSignal): AsyncGenerator<CallOutput, void, undefined> {
    const { opened, lease, deps } = this.#parts;
    const { clock } = deps;
    const record = this.#record;
    using link = linkSignals(signal);
    using _timer = clock.after(opened.context.deadlineMs - clock.now(), () => link.abort(opened.overdue()));
    const context = { ...opened.context, signal: link.signal };
    const events = eventsUntil(this.#events(context), link.signal, clock, {
      graceMs: ABORT_GRACE_MS,
      cutError: () => cutError(lease.definition, link.signal),
    });
    for await (const event of events) {
      if (event.type === "exchange") record.add(event.exchange);
      else if (event.type === "queue-leave") record.waited(event.waitedMs);
      else if (event.type === "completed") yield record.end(event);
      else yield* outputPieces(event);
    }
    record.refuseEndless();
  }

  /** Passes events on and takes note of how the call ended for this caller. */
  async *noted(events: AsyncIterable<CallEvent>): AsyncGenerator<CallEvent, void, undefined> {
    try {
      for await (const event of events) {
        if (event.type === "completed") {
          const { effect, replayed } = event.stats;
          const failure = event.result?.failure;
          const reason = failure === undefined ? {} : { reason: failure.reason };
          const passed = event.result?.needsInput === undefined ? "ok" : "needs-input";
          this.#outcome = { outcome: failure === undefined ? passed : "failure", ...reason, effect, replayed };
        }
        yield event;
      }
    } catch (thrown) {
      throw this.#noteError(thrown);
    }
  }

  /** Takes note of how a part of the call fails. */
  async noting<T>(part: Promise<T>): Promise<T> {
    return part.catch((thrown: unknown) => {
      throw this.#noteError(thrown);
    });
  }

  /** Puts the call on record where the tool's own path did not. */
  [Symbol.dispose](): void {
    if (this.#ran) return;
    const { lease, opened, deps } = this.#parts;
    const { callId, principal } = opened.context;
    const ms = Math.round((deps.clock.monotonicMs() - this.#record.startedMs) * 1_000) / 1_000;
    const joined = this.#joined === undefined ? {} : { joined: this.#joined };
    const facts = { callId, tool: lease.definition.name, principal: principal.id, ...joined };
    opened.context.logger.info("tool-call-end", { ...facts, ms, ...this.#outcome });
  }

  #noteError(thrown: unknown): GatewayError {
    const error = GatewayError.from(thrown);
    const { reason, effect, metadata } = error;
    this.#outcome = { outcome: "error", reason, effect, metadata };
    return error;
  }

  #events(context: CallContext): AsyncIterable<ToolEvent> {
    const { opened, lease, deps } = this.#parts;
    const run = (more: Pick<CallContext, "key">): AsyncIterable<ToolEvent> => {
      this.#ran = true;
      return lease.run(opened.call, { ...context, ...more });
    };
    if (this.keyed === undefined) return run({});
    return deps.kept.ledger.events({
      ...this.keyed,
      callId: context.callId,
      repeatable: lease.repeat?.repeatable === true,
      run: (key) => run({ key }),
      reconcile: this.#reconcile(upstreamKey(this.keyed), context),
    });
  }

  #reconcile(key: string, context: CallContext): Reconcile | undefined {
    const { repeat } = this.#parts.lease;
    const tool = repeat?.reconcile;
    if (tool === undefined) return undefined;
    const keyNames = ["request_id", ...(repeat?.idempotencyField === undefined ? [] : [repeat.idempotencyField])];
    const known = { ...this.#parts.opened.call.arguments, ...Object.fromEntries(keyNames.map((name) => [name, key])) };
    return { tool, run: () => this.#ask(tool, known, context) };
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
