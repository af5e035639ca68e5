import type { CallKey, ToolEvent, ToolResult } from "../core/call.ts";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import type { LedgerEntry, LedgerKey, LedgerSettlement, LedgerStore } from "../core/store.ts";
import { StreamedText } from "../core/streamed-text.ts";
import { headIndex } from "../core/text.ts";
import { decodeOutcome, encodeOutcome } from "./outcome.ts";
import { upstreamKey } from "./upstream-key.ts";

/** Characters of a reconcile tool's answer that stand in the failure; the whole of it is the result. */
const MAX_ANSWER_LENGTH = 1_000;

/** A call that counts once. */
export interface KeyedCall extends LedgerKey {
  /** Equal for equal arguments only. */
  readonly digest: string;
  readonly callId: string;
  /** Whether running it twice equals running it once, so that a lost outcome is no reason to refuse it. */
  readonly repeatable: boolean;
  /** Runs it. */
  run(key: CallKey): AsyncIterable<ToolEvent>;
  /** Asks what became of it; `undefined`: the tool has no way to ask. */
  readonly reconcile: Reconcile | undefined;
}

/** Another tool that knows what became of a call. */
export interface Reconcile {
  /** Its name. */
  readonly tool: string;
  run(): AsyncIterable<ToolEvent>;
}

/** What a ledger of calls takes. */
export interface CallLedgerDeps {
  readonly store: LedgerStore;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Lets a call with a key count once, over crashes too: claimed on disk before it is dispatched, settled on disk before
 * it is answered. One that was answered is answered again from the record; one that was interrupted is said to be
 * unknown and never run again; one that surely had no effect may run again. Duplicates of a call that runs are the
 * caller's to bring together.
 */
export class CallLedger {
  readonly #deps: CallLedgerDeps;

  constructor(deps: CallLedgerDeps) {
    this.#deps = deps;
  }

  /**
   * The call's events, or those of its earlier run, marked as replayed.
   *
   * @throws GatewayError REQUEST_ID_REUSED, OUTCOME_UNKNOWN, CALL_ALREADY_MADE, LEDGER_UNAVAILABLE, LEDGER_FULL, and how
   * the call fails.
   */
  async *events(call: KeyedCall): AsyncGenerator<ToolEvent, void, undefined> {
    const known = await this.#deps.store.find(call);
    if (known !== undefined && known.digest !== call.digest) throw requestIdReused(call);
    if (known?.state === "committed") {
      yield replay(call, known);
      return;
    }
    if (known !== undefined && !call.repeatable) {
      yield* explainUnknown(call, known);
      return;
    }
    yield* this.#run(call, known);
  }

  async *#run(call: KeyedCall, known: LedgerEntry | undefined): AsyncGenerator<ToolEvent, void, undefined> {
    const claim = new Claim(call, known, this.#deps);
    const streamed = new StreamedText();
    try {
      for await (const event of call.run(claim)) {
        if (event.type === "delta") streamed.add(event.index, event.text);
        if (event.type === "completed") await claim.completed({ ...event, result: streamed.into(event.result) });
        yield event;
      }
    } catch (thrown) {
      const error = GatewayError.from(thrown);
      await claim.failed(error);
      throw error;
    } finally {
      // The reader left in the middle: nobody knows how the call went on.
      await claim.abandoned();
    }
  }
}

/** The record of one call while it runs. */
class Claim implements CallKey {
  readonly value: string;
  readonly forUpstream: string;
  readonly #call: KeyedCall;
  readonly #over: string | undefined;
  readonly #deps: CallLedgerDeps;
  #claimed: Promise<void> | undefined;
  #uncertain = false;
  #settled = false;

  constructor(call: KeyedCall, known: LedgerEntry | undefined, deps: CallLedgerDeps) {
    this.value = call.key;
    this.forUpstream = upstreamKey(call);
    this.#call = call;
    this.#over = known?.callId;
    this.#deps = deps;
  }

  claim(): Promise<void> {
    this.#claimed ??= this.#claim();
    return this.#claimed;
  }

  mayHaveActed(): void {
    this.#uncertain = true;
  }

  /**
   * The call was answered: an answer that says that nothing happened need not be the last, and a tool that asks for
   * input has given none yet.
   */
  async completed(outcome: Extract<ToolEvent, { type: "completed" }>): Promise<void> {
    const { failure, needsInput } = outcome.result;
    const didNothing = outcome.effect === "none" && !this.#uncertain;
    if (didNothing && (failure ?? needsInput) !== undefined) await this.#settle({ state: "failed-no-effect" });
    else if (needsInput !== undefined) await this.#settle({ state: "unknown" });
    else await this.#settle({ state: "committed", outcome: encodeOutcome(outcome) });
  }

  /** The call ended without an answer, or with an error that is its answer: too much of it, with an effect confirmed. */
  async failed(error: GatewayError): Promise<void> {
    if (error.effect === "committed") {
      await this.#settle({ state: "committed", outcome: encodeOutcome({ type: "error", error }) });
    } else if (error.effect === "none" && !this.#uncertain) await this.#settle({ state: "failed-no-effect" });
    else await this.#settle({ state: "unknown" });
  }

  async abandoned(): Promise<void> {
    if (this.#claimed !== undefined) await this.#settle({ state: "unknown" });
  }

  async #claim(): Promise<void> {
    const { store } = this.#deps;
    const standing = await store.claim(this.#entry());
    if (standing === undefined) return;
    throw new GatewayError(
      "LEDGER_UNAVAILABLE",
      "another gateway took the `request_id` at this very moment; call again to have its outcome",
      { metadata: { request_id: this.value } },
    );
  }

  /**
   * Once. Where the record cannot be written, the caller has its answer all the same: the entry stays `running`, which
   * counts as unknown from then on, so that nothing is run twice.
   */
  async #settle(settlement: LedgerSettlement): Promise<void> {
    if (this.#settled) return;
    this.#settled = true;
    if (settlement.state !== "committed" && this.#claimed === undefined) return;
    // A claim that failed was never made.
    if (!(await this.#wasClaimed())) return;
    try {
      await this.#deps.store.settle(this.#entry(), settlement);
    } catch (error) {
      const { principal, tool, callId } = this.#call;
      const facts = { callId, tool, principal, state: settlement.state };
      this.#deps.logger.error("ledger-not-settled", { ...facts, error });
    }
  }

  async #wasClaimed(): Promise<boolean> {
    try {
      await this.#claimed;
      return true;
    } catch {
      return false;
    }
  }

  #entry() {
    const { principal, tool, key, digest, callId } = this.#call;
    const entry = { principal, tool, key, digest, callId, timeMs: this.#deps.clock.now() };
    return this.#over === undefined ? entry : { ...entry, over: this.#over };
  }
}

/** What is on record of an answered call. */
function replay({ key, tool }: KeyedCall, { outcome, callId }: LedgerEntry): ToolEvent {
  if (outcome === undefined) {
    throw new GatewayError(
      "CALL_ALREADY_MADE",
      `\`request_id\` ${key}: tool \`${tool}\` was called with it and answered; the answer itself is no longer kept`,
      { effect: "committed", metadata: { tool, request_id: key, earlier_call_id: callId } },
    );
  }
  const decoded = decodeOutcome(outcome);
  if (decoded.type === "error") throw decoded.error;
  return decoded;
}

/** What the tool's reconcile tool says of an interrupted call; where that is not to be had, an error. */
async function* explainUnknown(
  { key, tool, reconcile }: KeyedCall,
  { callId }: LedgerEntry,
): AsyncGenerator<ToolEvent, void, undefined> {
  const what = `an earlier call of tool \`${tool}\` with \`request_id\` ${key} was interrupted, and whether it took effect is not known; it was not run again`;
  const metadata = { tool, request_id: key, earlier_call_id: callId };
  if (reconcile === undefined) throw new GatewayError("OUTCOME_UNKNOWN", what, { effect: "unknown", metadata });
  try {
    for await (const event of reconcile.run()) {
      if (event.type !== "completed") {
        yield event;
        continue;
      }
      const { result } = event;
      const said = result.failure?.message ?? shortAnswer(result);
      const message = `${what}; \`${reconcile.tool}\` was asked: ${said}`;
      const failure = { reason: "OUTCOME_UNKNOWN", message, upstreamCode: undefined } as const;
      yield {
        ...event,
        result: { ...result, failure: { ...failure, retryable: false, upstreamFault: false } },
        effect: "unknown",
        replayed: true,
      };
    }
  } catch (thrown) {
    const cause = GatewayError.from(thrown);
    throw new GatewayError("OUTCOME_UNKNOWN", `${what}; \`${reconcile.tool}\` could not be asked: ${cause.reason}`, {
      effect: "unknown",
      metadata: { ...metadata, reconcile: reconcile.tool, reconcile_reason: cause.reason },
      cause,
    });
  }
}

/** What a model reads of an answer where it reads the failure alone. */
function shortAnswer({ structuredJson, content }: ToolResult): string {
  const text = structuredJson ?? content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
  const end = headIndex(text, MAX_ANSWER_LENGTH);
  return end < text.length ? `${text.slice(0, end)}…` : text;
}

/** Why a key is refused that came with other arguments before. */
export function requestIdReused({ key, tool }: LedgerKey): GatewayError {
  return new GatewayError(
    "REQUEST_ID_REUSED",
    `\`request_id\` ${key}: tool \`${tool}\` was called with it and other arguments before; use a new one`,
    { metadata: { tool, request_id: key } },
  );
}
