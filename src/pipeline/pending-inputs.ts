import { randomBytes } from "node:crypto";
import { GatewayError } from "../core/errors.ts";
import type { InputRequest, NeededInput } from "../core/input-request.ts";
import { unknownState } from "../core/input-required.ts";
import { canonicalJson, type JsonObject, stringifyJson } from "../core/json.ts";

/** How long a state is kept, where its upstream does not give it less time. */
const MAX_INPUT_WAIT_MS = 10 * 60_000;

/** Most states that are kept, of all callers and of one; beyond it the oldest goes. */
const MAX_WAITING = 1_000;
const MAX_WAITING_OF_ONE = 100;

/** Most characters of arguments and states that are kept. */
const MAX_KEPT_LENGTH = 64 * 1024 * 1024;

/** Bytes of a handle: nobody guesses it. */
const HANDLE_BYTES = 24;

/** A call whose tool waits for input. */
export interface PendingCall {
  readonly principal: string;
  /** Canonical name. */
  readonly tool: string;
  /** As the caller gave them. */
  readonly arguments: JsonObject;
  readonly needed: NeededInput;
}

/** A pending call that goes on. It is settled once. */
export interface ResumedCall {
  readonly arguments: JsonObject;
  /** The upstream's own state. */
  readonly state: string;
  readonly requests: ReadonlyMap<string, InputRequest>;
  /** `again`: nothing came of it, so that it may be answered again. */
  settle(end: "over" | "again"): void;
}

interface Entry extends PendingCall {
  readonly expireMs: number;
  readonly length: number;
  busy: boolean;
}

/**
 * The calls that wait for input, each under a handle that tells nothing, in memory: at most 1,000, 100 of one caller,
 * for at most 10 minutes. A handle is of use to the caller it was given to, for the tool it was given for, once.
 */
export class PendingInputs {
  /** In the order they came. */
  readonly #entries = new Map<string, Entry>();
  #length = 0;

  /** How many wait. */
  get size(): number {
    return this.#entries.size;
  }

  /** Keeps a call, and gives its handle and how long it is kept. */
  keep(call: PendingCall, nowMs: number): { readonly handle: string; readonly expiresInMs: number } {
    const handle = randomBytes(HANDLE_BYTES).toString("base64url");
    const expiresInMs = Math.min(call.needed.expiresInMs ?? MAX_INPUT_WAIT_MS, MAX_INPUT_WAIT_MS);
    const length = stringifyJson(call.arguments).length + call.needed.state.length;
    this.#entries.set(handle, { ...call, expireMs: nowMs + expiresInMs, length, busy: false });
    this.#length += length;
    this.#makeRoom(call.principal, nowMs);
    return { handle, expiresInMs };
  }

  /**
   * Takes a call up again. `args` are none, or those it was made with.
   *
   * @throws GatewayError CONTINUATION_NOT_FOUND, REQUEST_INVALID.
   */
  resume(
    handle: string,
    caller: { readonly principal: string; readonly tool: string; readonly arguments: JsonObject },
    nowMs: number,
  ): ResumedCall {
    const entry = this.#entries.get(handle);
    const isKnown = entry !== undefined && entry.expireMs > nowMs && !entry.busy;
    if (!isKnown || entry.principal !== caller.principal || entry.tool !== caller.tool) throw unknownState(caller.tool);
    const hasArguments = Object.keys(caller.arguments).length > 0;
    if (hasArguments && canonicalJson(caller.arguments) !== canonicalJson(entry.arguments)) {
      throw otherArguments(caller.tool);
    }
    entry.busy = true;
    return {
      arguments: entry.arguments,
      state: entry.needed.state,
      requests: entry.needed.requests,
      settle: (end) => {
        if (end === "again") entry.busy = false;
        else this.#drop(handle);
      },
    };
  }

  #makeRoom(principal: string, nowMs: number): void {
    let own = 0;
    for (const [handle, entry] of this.#entries) {
      if (entry.expireMs <= nowMs) this.#drop(handle);
      else if (entry.principal === principal) own += 1;
    }
    for (const [handle, entry] of this.#entries) {
      const isFull = this.#entries.size > MAX_WAITING || this.#length > MAX_KEPT_LENGTH;
      const isOwn = entry.principal === principal;
      if (!isFull && own <= MAX_WAITING_OF_ONE) return;
      if (!isFull && !isOwn) continue;
      this.#drop(handle);
      if (isOwn) own -= 1;
    }
  }

  #drop(handle: string): void {
    const entry = this.#entries.get(handle);
    if (entry === undefined) return;
    this.#entries.delete(handle);
    this.#length -= entry.length;
  }
}

function otherArguments(tool: string): GatewayError {
  const description = "must be left out, or be those of the call that is continued";
  return new GatewayError(
    "REQUEST_INVALID",
    `invocation.arguments of a continuation of tool \`${tool}\` ${description}`,
    {
      violations: [{ field: "invocation.arguments", reason: "NOT_ALLOWED", description }],
      metadata: { tool },
    },
  );
}
