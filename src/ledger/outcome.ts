import type { ContentPart, ToolEvent, ToolFailure, ToolResult } from "../core/call.ts";
import type { Effect } from "../core/effect.ts";
import { ERROR_CATALOGUE, type ErrorReason, FAILURE_REASONS, GatewayError } from "../core/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, ownValue, parseJson, stringifyJson } from "../core/json.ts";

/** How a call ended, as it is kept: its result with all streamed text in it, or an error that is its answer. */
export type Outcome =
  | Extract<ToolEvent, { type: "completed" }>
  | { readonly type: "error"; readonly error: GatewayError };

/** An outcome as text. What caused an error stays behind. */
export function encodeOutcome(outcome: Outcome): string {
  if (outcome.type === "error") {
    const { reason, message, modelMessage, effect, retryable, metadata } = outcome.error;
    return stringifyJson({ error: { reason, message, modelMessage, effect, retryable, metadata } });
  }
  const { result, effect, attempts } = outcome;
  const { structuredJson, failure, truncation } = result;
  return stringifyJson({
    effect,
    attempts,
    content: result.content.map(encodePart),
    ...(structuredJson === undefined ? {} : { structuredJson }),
    ...(failure === undefined ? {} : { failure: encodeFailure(failure) }),
    ...(truncation === undefined
      ? {}
      : { truncation: { mode: truncation.mode, originalLength: truncation.originalLength ?? null } }),
  });
}

/**
 * Reads an outcome back, marked as replayed.
 *
 * @throws GatewayError LEDGER_UNAVAILABLE where the text is no outcome: then somebody else wrote it.
 */
export function decodeOutcome(text: string): Outcome {
  const value = parseJson(text);
  if (!isJsonObject(value)) throw unreadable();
  const error = ownValue(value, "error");
  if (isJsonObject(error)) return { type: "error", error: decodeError(error) };
  const content = ownValue(value, "content");
  const structuredJson = ownValue(value, "structuredJson");
  const failure = ownValue(value, "failure");
  const result: ToolResult = {
    content: Array.isArray(content) ? content.map(decodePart) : [],
    structuredJson: typeof structuredJson === "string" ? structuredJson : undefined,
    failure: isJsonObject(failure) ? decodeFailure(failure) : undefined,
    truncation: decodeTruncation(ownValue(value, "truncation")),
  };
  const effect = decodeEffect(ownValue(value, "effect"));
  return { type: "completed", result, effect, attempts: Number(ownValue(value, "attempts") ?? 1), replayed: true };
}

function encodePart(part: ContentPart): JsonObject {
  switch (part.type) {
    case "text":
      return { text: part.text };
    case "blob":
      return { blob: Buffer.from(part.data).toString("base64"), mimeType: part.mimeType };
    case "link":
      return { uri: part.uri, mimeType: part.mimeType, name: part.name };
  }
}

function decodePart(part: JsonValue): ContentPart {
  if (!isJsonObject(part)) throw unreadable();
  const mimeType = textOf(part, "mimeType");
  const blob = ownValue(part, "blob");
  if (typeof blob === "string") return { type: "blob", mimeType, data: Buffer.from(blob, "base64") };
  const uri = ownValue(part, "uri");
  if (typeof uri === "string") return { type: "link", uri, mimeType, name: textOf(part, "name") };
  return { type: "text", text: textOf(part, "text") };
}

function encodeFailure({ upstreamCode, ...failure }: ToolFailure): JsonObject {
  return upstreamCode === undefined ? failure : { ...failure, upstreamCode };
}

function decodeFailure(failure: JsonObject): ToolFailure {
  const reason = textOf(failure, "reason");
  const upstreamCode = ownValue(failure, "upstreamCode");
  if (!isFailureReason(reason)) throw unreadable();
  return {
    reason,
    message: textOf(failure, "message"),
    upstreamCode: typeof upstreamCode === "number" ? upstreamCode : undefined,
    retryable: ownValue(failure, "retryable") === true,
    upstreamFault: ownValue(failure, "upstreamFault") === true,
  };
}

function decodeTruncation(value: JsonValue | undefined): ToolResult["truncation"] {
  if (!isJsonObject(value)) return undefined;
  const mode = textOf(value, "mode");
  const length = ownValue(value, "originalLength");
  if (mode !== "head" && mode !== "tail" && mode !== "head_tail") throw unreadable();
  return { mode, originalLength: typeof length === "number" ? length : undefined };
}

function decodeError(error: JsonObject): GatewayError {
  const reason = textOf(error, "reason");
  if (!isErrorReason(reason)) throw unreadable();
  const metadata = ownValue(error, "metadata") ?? null;
  return new GatewayError(reason, textOf(error, "message"), {
    modelMessage: textOf(error, "modelMessage"),
    effect: decodeEffect(ownValue(error, "effect")),
    retryable: ownValue(error, "retryable") === true,
    metadata: isJsonObject(metadata) ? texts(metadata) : {},
  });
}

function decodeEffect(value: JsonValue | undefined): Effect {
  return value === "none" || value === "committed" ? value : "unknown";
}

function isErrorReason(word: string): word is ErrorReason {
  return Object.hasOwn(ERROR_CATALOGUE, word);
}

function isFailureReason(word: string): word is ToolFailure["reason"] {
  return Object.hasOwn(FAILURE_REASONS, word);
}

function texts(object: JsonObject): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.keys(object).map((key) => [key, textOf(object, key)]));
}

function textOf(object: JsonObject, key: string): string {
  const value = ownValue(object, key);
  return typeof value === "string" ? value : "";
}

function unreadable(): GatewayError {
  return new GatewayError("LEDGER_UNAVAILABLE", "the answer on record cannot be read", { effect: "committed" });
}
