import type { CallObserver } from "./call-observer.ts";
import type { Effect } from "./effect.ts";
import type { FailureReason, NoticeReason } from "./failures.ts";
import type { Continuation, NeededInput } from "./input-request.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import type { Logger } from "./logger.ts";
import type { Principal } from "./principal.ts";
import type { KeepOutcome, OpenOverflow } from "./results.ts";

/** What to call. */
export interface ToolCall {
  /** Name of the tool within its upstream; the canonical name for a tool that is its own upstream. */
  readonly tool: string;
  /** Validated, with defaults filled in, once past the step `validate-arguments`. */
  readonly arguments: JsonObject;
  /** Check and assemble, but do not reach the upstream. */
  readonly validateOnly: boolean;
  /** Caller's limit for text, in code points. */
  readonly maxLength: number | undefined;
  /** Tokens that the caller's model can take. Absent: what the gateway is told. */
  readonly modelWindow?: number | undefined;
  /**
   * The caller can answer a tool that asks for input. Absent: no, and what the tool asks must be declined at once, so
   * that nothing waits for it.
   */
  readonly acceptsInput?: boolean;
  /** Goes on with a call that ended with `needsInput`; its arguments are those of that call. */
  readonly continuation?: Continuation;
  /** What the caller wants to know: steers what is kept of an over-long result. Absent: what the arguments say. */
  readonly question?: string | undefined;
  /** What the tool is to its callers, where its upstream knows it by another name. Absent: `tool` alone says it. */
  readonly servedAs?: ServedAs;
}

/** A tool of a server, as its callers know it. */
export interface ServedAs {
  /** Its canonical name. */
  readonly name: string;
  /** Whether a call surely changes nothing. */
  readonly readOnly: boolean;
}

/** What makes a call count once. */
export interface CallKey {
  /** 1 to 64 visible ASCII characters: the caller's `request_id`. */
  readonly value: string;
  /** What an upstream tells repetitions by: the same in every attempt, and another one for another caller's equal key. */
  readonly forUpstream: string;
  /**
   * Puts the call on record before anything is dispatched; durable when it resolves. Asked for again, it happened once.
   *
   * @throws GatewayError LEDGER_UNAVAILABLE, LEDGER_FULL: then nothing may be dispatched.
   */
  claim(): Promise<void>;
  /** An attempt ended of which nobody can say that it had no effect. */
  mayHaveActed(): void;
}

/** Facts of one call. */
export interface CallContext {
  /** UUIDv7. */
  readonly callId: string;
  readonly principal: Principal;
  /** Ends the call; its reason is a GatewayError. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch after which nothing of the call goes on. */
  readonly deadlineMs: number;
  /** 1 for the first. */
  readonly attempt: number;
  /** Emit `exchange` events. */
  readonly explain: boolean;
  readonly sessionId: string | undefined;
  readonly turnId: string | undefined;
  readonly taskId: string | undefined;
  readonly toolCallId: string | undefined;
  /** W3C trace context header of the caller. Source: https://www.w3.org/TR/trace-context/. */
  readonly traceparent: string | undefined;
  /** The header of that name, where there is a `traceparent`. */
  readonly tracestate?: string;
  /** The header of that name. Source: https://www.w3.org/TR/baggage/. */
  readonly baggage?: string;
  /** The RPC, such as `toolgate.v1.ToolGatewayService/Call`. */
  readonly method?: string;
  readonly logger: Logger;
  /** Takes an answer that is too large for memory. Absent: such an answer is an error. */
  readonly overflow?: OpenOverflow | undefined;
  /** Absent: the caller gave no `request_id`, so the call may not be repeated and is not remembered. */
  readonly key?: CallKey;
  /**
   * To be called right before the attempt goes out. Absent: nobody asks for it.
   *
   * @throws GatewayError why it must not go out any more.
   */
  readonly beforeDispatch?: () => void;
  /** Absent: nobody watches. */
  readonly observer?: CallObserver;
}

/** What a tool says of one part of its output. Source: MCP `Annotations`. */
export interface ContentAnnotations {
  /** Whom it is meant for, such as `user` or `assistant`; empty: not said. */
  readonly audience: readonly string[];
  /** From 0, optional, to 1, needed. */
  readonly priority?: number;
  /** When the content last changed, ISO 8601 as the tool wrote it. */
  readonly lastModified?: string;
}

/** What stands beside any part of output. */
export interface ContentFacts {
  readonly annotations?: ContentAnnotations;
  /** The resource whose content a text or blob is, where the tool embedded one. */
  readonly resource?: { readonly uri: string; readonly mimeType: string };
}

/** A reference to something the caller can fetch. */
export interface ContentLink {
  readonly type: "link";
  readonly uri: string;
  readonly mimeType: string;
  readonly name: string;
  /** For people, where it differs from the name. */
  readonly title?: string;
  readonly description?: string;
  readonly sizeBytes?: number;
}

/** One part of output. */
export type ContentPart = ContentFacts &
  (
    | { readonly type: "text"; readonly text: string }
    | { readonly type: "blob"; readonly mimeType: string; readonly data: Uint8Array }
    | ContentLink
  );

/** Something the gateway has to say of a result that is given all the same. */
export interface ResultNotice {
  readonly reason: NoticeReason;
  /** One line. */
  readonly message: string;
}

/** A failure the tool itself reported: an answer, not an RPC error. */
export interface ToolFailure {
  readonly reason: FailureReason;
  /** For the model. */
  readonly message: string;
  /** HTTP status, exit code or JSON-RPC error code. */
  readonly upstreamCode: number | undefined;
  /** Whether the tool itself said no, or the protocol that it is reached by. Absent: the reason tells. */
  readonly origin?: "protocol" | "tool";
  readonly retryable: boolean;
  /** Whether the cause may pass by itself, leaving aside whether a repetition is safe. Absent: no. */
  readonly transient?: boolean;
  /** When the upstream wants to be asked again, in milliseconds from now. */
  readonly retryAfterMs?: number;
  /** Whether the upstream itself is at fault (as against the request or the business rule): what a breaker counts. */
  readonly upstreamFault: boolean;
}

/** One request to an upstream and its answer, secrets masked. */
export interface UpstreamExchange {
  readonly method: string;
  readonly url: string;
  readonly requestHeaders: readonly (readonly [name: string, value: string])[];
  /** At most 8,192 characters. */
  readonly requestBody: string;
  readonly status: number | undefined;
  readonly responseHeaders: readonly (readonly [name: string, value: string])[];
  readonly firstByteMs: number | undefined;
}

/** What the tool does while it runs. */
export type ProgressEvent =
  | {
      readonly type: "progress";
      readonly current: number;
      readonly total: number | undefined;
      readonly message: string;
    }
  | { readonly type: "log"; readonly level: "error" | "warning" | "info" | "debug"; readonly message: string }
  /** The call waits for its turn. `limit`: what it waits for, such as `tool "orders"`; `position`: 1 for the next in turn. */
  | { readonly type: "queue-enter"; readonly limit: string; readonly position: number }
  /** The wait is over: the call goes on, or its error follows. */
  | { readonly type: "queue-leave"; readonly waitedMs: number }
  | { readonly type: "exchange"; readonly exchange: UpstreamExchange };

/** A result as the upstream gave it: unshaped, not redacted, so it must not leave the gateway. */
export interface UpstreamResult {
  /** Structured answer. Absent: `content` is all there is. */
  readonly value?: JsonValue;
  /** Parts that were not sent as deltas. */
  readonly content: readonly ContentPart[];
  readonly failure?: ToolFailure;
  /** HTTP status or exit code. */
  readonly upstreamCode?: number;
  readonly notices?: readonly ResultNotice[];
  /** The answer was too large for memory: `content` is a text, its beginning, and this is what became of the whole. */
  readonly overflow?: KeepOutcome;
  /** The tool asks for input before it can go on: no result yet. Only where the call accepts input. */
  readonly needsInput?: NeededInput;
  readonly effect: Effect;
  /** How many attempts it took; set by who repeats a call. Absent: 1. */
  readonly attempts?: number;
}

/** From an adapter: any number of others, then exactly one `result`. Deltas carry whole code points. */
export type UpstreamEvent =
  | ProgressEvent
  | { readonly type: "upstream-delta"; readonly text: string }
  | { readonly type: "upstream-result"; readonly result: UpstreamResult };

/** How output was cut. `head` keeps the beginning, `tail` the end, `head_tail` both; `summary`: what says most of it. */
export type TruncationMode = "head" | "tail" | "head_tail" | "summary";

/** The rule of a tool that had enough of a stream. */
export type EarlyStopRule = "match" | "max_length" | "max_tokens";

/** A result fit for a model: extracted, redacted, shortened. */
export interface ToolResult {
  readonly content: readonly ContentPart[];
  /** JSON text. A JSON result stands here alone and not in `content`. */
  readonly structuredJson: string | undefined;
  readonly failure: ToolFailure | undefined;
  readonly truncation:
    | {
        readonly originalLength: number | undefined;
        readonly mode: TruncationMode;
        /** Names the whole, `result://…`. Absent: it was not kept. */
        readonly handle?: string;
      }
    | undefined;
  /** Absent: none. */
  readonly notices?: readonly ResultNotice[];
  /** A rule of the tool's (`result.early_stop`) had enough of the stream and ended the upstream's call. Absent: none did. */
  readonly earlyStop?: EarlyStopRule;
  /** The declaration vouches for the content. Absent: it comes from outside and is data, never instructions. */
  readonly trusted?: true;
  /** The tool asks for input before it can go on: there is nothing else yet. */
  readonly needsInput?: {
    /** A handle of the gateway's. */
    readonly state: string;
    /** What is asked, by id: JSON text, redacted. */
    readonly requestsJson: string;
    readonly expiresInMs: number;
  };
}

/** To the caller, shaped and redacted: any number of others, then exactly one `completed`. */
export type ToolEvent =
  | ProgressEvent
  | { readonly type: "delta"; readonly index: number; readonly text: string }
  | {
      readonly type: "completed";
      readonly result: ToolResult;
      readonly effect: Effect;
      readonly attempts: number;
      /** The outcome is that of an earlier call, or of one that ran already; absent: of this one. */
      readonly replayed?: boolean;
    };

/** Runs a call. Early `return()` on the iterator cancels upstream work. */
export type Invoke = (call: ToolCall, context: CallContext) => AsyncIterable<UpstreamEvent>;
