import type { JsonObject as WireStruct, JsonValue as WireValue } from "@bufbuild/protobuf";
import type { Invocation, CallContext as WireContext } from "../../gen/toolgate/v1/call_pb.ts";
import type { ResumePoint } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { GatewayError } from "../core/errors.ts";
import type { Continuation } from "../core/input-request.ts";
import {
  hasDuplicateNames,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  jsonPointer,
  jsonTypeName,
  parseJson,
} from "../core/json.ts";
import { jsonFault } from "../core/json-fault.ts";
import { decodeContinuation } from "./continuation-codec.ts";
import { type DurationRange, durationMs } from "./durations.ts";
import { optionalText, requestInvalid, requiredName } from "./request-error.ts";

/** An invocation as it was asked for, checked but not yet matched with its tool. */
export interface CallRequestFacts {
  readonly name: string;
  readonly arguments: JsonObject;
  /** The call's key; `undefined`: it has none. */
  readonly requestId: string | undefined;
  readonly validateOnly: boolean;
  readonly explain: boolean;
  /** Whether the caller can answer a tool that asks for input. */
  readonly acceptsInput: boolean;
  /** The answers to a tool that asked; `undefined`: the call is a new one. */
  readonly continuation: Continuation | undefined;
  /** Caller's limit for text, in code points. */
  readonly maxLength: number | undefined;
  /** Tokens that the caller's model can take. */
  readonly modelWindow: number | undefined;
  /** What the caller wants to know. */
  readonly question: string | undefined;
  /** Caller's limit for the whole call, besides the RPC deadline. */
  readonly timeoutMs: number | undefined;
  readonly contractDigest: string | undefined;
  readonly sessionId: string | undefined;
  readonly turnId: string | undefined;
  readonly taskId: string | undefined;
  readonly toolCallId: string | undefined;
  /** For logs. */
  readonly attributes: Readonly<Record<string, string>>;
}

/** Longest id in a call's context, and longest value of an attribute; these stand in log lines. */
const MAX_CONTEXT_LENGTH = 256;
/** Longest question, in UTF-16 units. */
const MAX_QUESTION_LENGTH = 4_000;
/** Most attributes of a call. */
const MAX_ATTRIBUTES = 32;
/** Of a call that is to be resumed. */
const MAX_CALL_ID_LENGTH = 64;

const TIMEOUT: DurationRange = { minMs: 1e-6, maxMs: Number.POSITIVE_INFINITY, words: "more than 0" };

/** How long a stream may be silent before a heartbeat, where the caller does not say. */
const DEFAULT_HEARTBEAT_MS = 15_000;
const MIN_HEARTBEAT_MS = 100;

/**
 * Reads an invocation.
 *
 * @throws GatewayError REQUEST_INVALID, ARGUMENTS_MALFORMED.
 */
export function decodeInvocation(invocation: Invocation | undefined): CallRequestFacts {
  if (invocation === undefined) throw requestInvalid("invocation", "MISSING", "must say what to call, got nothing");
  const { context } = invocation;
  return {
    name: requiredName("invocation.name", invocation.name),
    arguments: decodeArguments(invocation.arguments),
    requestId: decodeRequestId(invocation.requestId),
    validateOnly: invocation.validateOnly,
    explain: invocation.explain,
    acceptsInput: invocation.acceptsInput,
    continuation: invocation.continuation === undefined ? undefined : decodeContinuation(invocation.continuation),
    maxLength: atLeastOne("invocation.max_length", invocation.maxLength, "no limit"),
    modelWindow: atLeastOne("invocation.model_window", invocation.modelWindow, "the gateway's"),
    question: optionalText("invocation.question", invocation.question, MAX_QUESTION_LENGTH),
    timeoutMs: durationMs("invocation.timeout", invocation.timeout, TIMEOUT),
    contractDigest: optionalText("invocation.contract_digest", invocation.contractDigest, MAX_CONTEXT_LENGTH),
    sessionId: contextText("session_id", context?.sessionId),
    turnId: contextText("turn_id", context?.turnId),
    taskId: contextText("task_id", context?.taskId),
    toolCallId: contextText("tool_call_id", context?.toolCallId),
    attributes: decodeAttributes(context),
  };
}

/** `absent`: what leaving it out means. */
function atLeastOne(field: string, value: number | undefined, absent: string): number | undefined {
  if (value !== 0) return value;
  throw requestInvalid(field, "OUT_OF_RANGE", `must be at least 1, got 0; leave it out for ${absent}`);
}

/**
 * How long a CallStream may be silent before a heartbeat, in milliseconds; `undefined`: never a heartbeat.
 *
 * @throws GatewayError REQUEST_INVALID below 100 ms.
 */
export function heartbeatMs(heartbeat: Parameters<typeof durationMs>[1]): number | undefined {
  const asked = durationMs("heartbeat", heartbeat, {
    minMs: 0,
    maxMs: Number.POSITIVE_INFINITY,
    words: "0 (never) or at least 0.1 s",
  });
  if (asked === 0) return undefined;
  if (asked !== undefined && asked < MIN_HEARTBEAT_MS) {
    throw requestInvalid("heartbeat", "OUT_OF_RANGE", `must be 0 (never) or at least 0.1 s, got ${asked / 1000} s`);
  }
  return asked ?? DEFAULT_HEARTBEAT_MS;
}

/**
 * How long a stream is to be kept for its caller when the connection is lost, in milliseconds; `undefined`: not at all.
 *
 * @throws GatewayError REQUEST_INVALID below 0.
 */
export function resumeWindowMs(window: Parameters<typeof durationMs>[1]): number | undefined {
  const range = { minMs: 0, maxMs: Number.POSITIVE_INFINITY, words: "0 (not at all) or more" };
  const asked = durationMs("resume_window", window, range);
  return asked === 0 ? undefined : asked;
}

/**
 * The place to go on at.
 *
 * @throws GatewayError REQUEST_INVALID where an invocation stands beside it, or it names no call.
 */
export function decodeResume(
  { callId, afterSequence }: ResumePoint,
  invocation: Invocation | undefined,
): { readonly callId: string; readonly after: number } {
  if (invocation !== undefined) {
    throw requestInvalid("invocation", "NOT_ALLOWED", "must not stand beside `resume`, which goes on with a call");
  }
  const id = optionalText("resume.call_id", callId, MAX_CALL_ID_LENGTH);
  if (id === undefined) throw requestInvalid("resume.call_id", "MISSING", "must name a call, got nothing");
  // One too large is one that no stream comes to.
  return { callId: id, after: Number(afterSequence) };
}

/** What counts as a request id everywhere. */
export const REQUEST_ID = /^[\x21-\x7e]{1,64}$/;

function decodeRequestId(value: string): string | undefined {
  if (value === "") return undefined;
  if (REQUEST_ID.test(value)) return value;
  throw requestInvalid("invocation.request_id", "MALFORMED", "must be 1 to 64 visible ASCII characters");
}

function decodeArguments(wire: Invocation["arguments"]): JsonObject {
  switch (wire.case) {
    case undefined:
      return {};
    case "argumentsJson":
      return wire.value.trim() === "" ? {} : parseArguments(wire.value);
    case "argumentsStruct":
      return decodeStruct(wire.value);
  }
}

function parseArguments(text: string): JsonObject {
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch (cause) {
    throw malformedText(text, cause);
  }
  // Which of the two was meant nobody knows, and who checked the text before may have looked at the other.
  if (hasDuplicateNames(text, value)) throw malformedText(text);
  if (isJsonObject(value)) return value;
  const got = `must be a JSON object such as {"city": "Berlin"}, got ${jsonTypeName(value)}`;
  throw malformed("arguments_json", { reason: "WRONG_TYPE", pointer: "", description: got });
}

function malformedText(text: string, cause?: unknown): GatewayError {
  const fault = jsonFault(text) ?? { reason: "NOT_JSON", pointer: "", description: "is not valid JSON" };
  return malformed("arguments_json", fault, cause);
}

/** A Struct is JSON but for numbers that JSON has no word for. Its depth is limited where it is decoded. */
function decodeStruct(struct: WireStruct): JsonObject {
  refuseNonJson(struct, []);
  return struct;
}

function refuseNonJson(value: WireValue, steps: readonly (string | number)[]): void {
  if (typeof value === "number" && !Number.isFinite(value)) {
    const pointer = jsonPointer(steps);
    const description = `holds ${value} at ${pointer}, which JSON has no word for; send a finite number or a string`;
    throw malformed("arguments_struct", { reason: "OUT_OF_RANGE", pointer, description });
  }
  if (typeof value !== "object" || value === null) return;
  for (const [name, entry] of Object.entries(value)) refuseNonJson(entry, [...steps, name]);
}

/** What is wrong with the arguments as a whole, and where. */
interface Malformation {
  readonly reason: string;
  /** JSON pointer into the arguments. */
  readonly pointer: string;
  /** Goes on after the field's name. */
  readonly description: string;
}

function malformed(field: string, { reason, pointer, description }: Malformation, cause?: unknown): GatewayError {
  return new GatewayError("ARGUMENTS_MALFORMED", `${field} ${description}`, {
    violations: [{ field: pointer, reason, description }],
    cause,
  });
}

function contextText(field: string, value: string | undefined): string | undefined {
  return optionalText(`invocation.context.${field}`, value ?? "", MAX_CONTEXT_LENGTH);
}

function decodeAttributes(context: WireContext | undefined): Readonly<Record<string, string>> {
  const attributes = context?.attributes ?? {};
  const names = Object.keys(attributes);
  const field = "invocation.context.attributes";
  if (names.length > MAX_ATTRIBUTES) {
    throw requestInvalid(field, "TOO_MANY", `may have at most ${MAX_ATTRIBUTES} entries, got ${names.length}`);
  }
  for (const name of names) {
    optionalText(field, name, MAX_CONTEXT_LENGTH);
    optionalText(field, attributes[name] ?? "", MAX_CONTEXT_LENGTH);
  }
  return attributes;
}
