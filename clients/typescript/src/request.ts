import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import {
  type CallContextSchema,
  type ContinuationInputSchema,
  type Invocation,
  InvocationSchema,
} from "./gen/toolgate/v1/call_pb.ts";
import { type JsonInput, stringifyExact } from "./json.ts";

/** What every method takes. */
export interface RequestOptions {
  /** Ends the request; the gateway stops its work. */
  readonly signal?: AbortSignal | undefined;
  /** Longest time for the whole request, in milliseconds. `Infinity`: none of the client's own. */
  readonly timeoutMs?: number | undefined;
  /** Headers of this request, over the client's own. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Arguments of a tool: an object, or JSON text as a model emits it. */
export type ToolArguments = string | { readonly [name: string]: JsonInput };

/** How to call a tool. */
export interface InvokeOptions extends RequestOptions {
  /** Shorten each text part to this many characters; can only lower the tool's own limit. */
  readonly maxLength?: number | undefined;
  /** Tokens that the model can take which reads the result: bounds this one, and all of one turn (`context.turnId`). */
  readonly modelWindow?: number | undefined;
  /** What is to be known: steers what is kept of a result that is too long. Default: what the arguments say. */
  readonly question?: string | undefined;
  /** Check the call but do not reach the upstream. */
  readonly validateOnly?: boolean | undefined;
  /** Ask for the upstream request and status, secrets masked. */
  readonly explain?: boolean | undefined;
  /**
   * Key that makes the call count once, 1 to 64 visible ASCII characters, such as `crypto.randomUUID()`: called again
   * with it, the gateway gives the same outcome and does not run the tool again. Never let a model choose it.
   */
  readonly requestId?: string | undefined;
  /** Refuse with CONTRACT_CHANGED if the tool's digest is another. */
  readonly contractDigest?: string | undefined;
  /**
   * The caller can answer a tool that asks for input: then the outcome has `needsInput`. Default false: such a call ends
   * with the failure INPUT_REQUIRED. A call with `continuation` accepts input.
   */
  readonly acceptsInput?: boolean | undefined;
  /** Goes on with a call whose outcome had `needsInput`. Its arguments are those of that call, or none. */
  readonly continuation?: ContinuationOptions | undefined;
  /** For logs and correlation. */
  readonly context?: InvokeContext | undefined;
}

/** The answer to a tool that asked for input. */
export interface ContinuationOptions {
  /** `needsInput.state`, as it came. */
  readonly state: string;
  /** By id asked for. A JSON text is sent as it is. */
  readonly inputs: string | Readonly<Record<string, InputAnswer>>;
}

/** What is answered to one request: yes with what it asked for, no, or nothing. */
export type InputAnswer =
  | { readonly action: "accept"; readonly content?: JsonInput }
  | { readonly action: "decline" | "cancel" };

/** Which step of which task a call belongs to. */
export interface InvokeContext {
  readonly sessionId?: string | undefined;
  readonly turnId?: string | undefined;
  /** Id the model gave the tool call. */
  readonly toolCallId?: string | undefined;
  /** Task whose state a stateful tool keeps. */
  readonly taskId?: string | undefined;
}

/** Longest delay of a timer; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * How much longer the RPC may take than the call itself. The gateway ends a call at its time and says whether it took
 * effect; with both ending at the same moment, that answer would lose the race and `effect` would always be unknown.
 */
const ANSWER_GRACE_MS = 500;

/**
 * Options for the generated client.
 *
 * @throws RangeError for a timeout that is not above 0.
 */
export function callOptions(
  options: RequestOptions,
  defaults: { readonly headers: Readonly<Record<string, string>>; readonly timeoutMs: number },
  graceMs = 0,
): CallOptions {
  const timeoutMs = checkedTimeout(options.timeoutMs ?? defaults.timeoutMs) + graceMs;
  return {
    headers: { ...defaults.headers, ...options.headers },
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    ...(timeoutMs > MAX_TIMER_MS ? {} : { timeoutMs }),
  };
}

/** As {@link callOptions}, for Call and CallStream. */
export function invokeOptions(
  options: RequestOptions,
  defaults: { readonly headers: Readonly<Record<string, string>>; readonly timeoutMs: number },
): CallOptions {
  return callOptions(options, defaults, ANSWER_GRACE_MS);
}

/** The message that says what to call. */
export function invocation(
  name: string,
  args: ToolArguments,
  options: InvokeOptions,
  defaultTimeoutMs: number,
): Invocation {
  const timeoutMs = checkedTimeout(options.timeoutMs ?? defaultTimeoutMs);
  return create(InvocationSchema, {
    name,
    arguments: { case: "argumentsJson", value: typeof args === "string" ? args : stringifyExact(args) },
    ...flagsOf(options),
    question: options.question ?? "",
    requestId: options.requestId ?? "",
    contractDigest: options.contractDigest ?? "",
    ...(options.maxLength === undefined ? {} : { maxLength: options.maxLength }),
    ...(options.modelWindow === undefined ? {} : { modelWindow: options.modelWindow }),
    ...(Number.isFinite(timeoutMs) ? { timeout: durationFromMs(timeoutMs) } : {}),
    ...(options.continuation === undefined ? {} : { continuation: continuationOf(options.continuation) }),
    ...(options.context === undefined ? {} : { context: contextOf(options.context) }),
  });
}

function flagsOf({ validateOnly = false, explain = false, acceptsInput = false }: InvokeOptions): {
  readonly validateOnly: boolean;
  readonly explain: boolean;
  readonly acceptsInput: boolean;
} {
  return { validateOnly, explain, acceptsInput };
}

function continuationOf({ state, inputs }: ContinuationOptions): MessageInitShape<typeof ContinuationInputSchema> {
  return { state, inputsJson: typeof inputs === "string" ? inputs : stringifyExact(answersOf(inputs)) };
}

function answersOf(inputs: Readonly<Record<string, InputAnswer>>): { readonly [id: string]: JsonInput } {
  const entries = Object.entries(inputs).map(([id, answer]): [string, JsonInput] => [id, { ...answer }]);
  return Object.fromEntries(entries);
}

function contextOf(context: InvokeContext): MessageInitShape<typeof CallContextSchema> {
  return {
    sessionId: context.sessionId ?? "",
    turnId: context.turnId ?? "",
    toolCallId: context.toolCallId ?? "",
    taskId: context.taskId ?? "",
  };
}

function checkedTimeout(timeoutMs: number): number {
  if (!(timeoutMs > 0)) throw new RangeError(`timeoutMs must be above 0, got ${timeoutMs}; Infinity means none`);
  return timeoutMs;
}
