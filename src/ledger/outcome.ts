import type {
  ContentAnnotations,
  ContentFacts,
  ContentPart,
  ResultNotice,
  ToolEvent,
  ToolFailure,
  ToolResult,
} from "../core/call.ts";
import type { Effect } from "../core/effect.ts";
import { ERROR_CATALOGUE, type ErrorReason, GatewayError } from "../core/errors.ts";
import { FAILURE_REASONS, NOTICE_REASONS } from "../core/failures.ts";
import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  ownValue,
  parseJson,
  stringifyJson,
} from "../core/json.ts";

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
  const { structuredJson, failure, truncation, notices, trusted, earlyStop } = result;
  return stringifyJson({
    effect,
    attempts,
    content: result.content.map(encodePart),
    ...(structuredJson === undefined ? {} : { structuredJson }),
    ...(failure === undefined ? {} : { failure: encodeFailure(failure) }),
    ...(notices === undefined ? {} : { notices: notices.map(({ reason, message }) => ({ reason, message })) }),
    ...(trusted === undefined ? {} : { trusted }),
    ...(earlyStop === undefined ? {} : { earlyStop }),
    ...(truncation === undefined
      ? {}
      : {
          truncation: {
            mode: truncation.mode,
            originalLength: truncation.originalLength ?? null,
            ...(truncation.handle === undefined ? {} : { handle: truncation.handle }),
          },
        }),
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
  const notices = ownValue(value, "notices");
  const result: ToolResult = {
    content: isJsonArray(content) ? content.map(decodePart) : [],
    structuredJson: typeof structuredJson === "string" ? structuredJson : undefined,
    failure: failure !== undefined && isJsonObject(failure) ? decodeFailure(failure) : undefined,
    truncation: decodeTruncation(ownValue(value, "truncation")),
    ...(isJsonArray(notices) ? { notices: notices.map(decodeNotice) } : {}),
    ...(ownValue(value, "trusted") === true ? { trusted: true } : {}),
    ...decodeEarlyStop(ownValue(value, "earlyStop")),
  };
  const effect = decodeEffect(ownValue(value, "effect"));
  return { type: "completed", result, effect, attempts: Number(ownValue(value, "attempts") ?? 1), replayed: true };
}

function encodePart(part: ContentPart): JsonObject {
  const { annotations, resource } = part;
  const facts = {
    ...(annotations === undefined ? {} : { annotations: { ...annotations } }),
    ...(resource === undefined ? {} : { resource: { uri: resource.uri, mimeType: resource.mimeType } }),
  };
  switch (part.type) {
    case "text":
      return { text: part.text, ...facts };
    case "blob":
      return { blob: Buffer.from(part.data).toString("base64"), mimeType: part.mimeType, ...facts };
    case "link": {
      const { type: _type, annotations: _annotations, resource: _resource, ...link } = part;
      return { ...link, ...facts };
    }
  }
}

function decodePart(part: JsonValue): ContentPart {
  if (!isJsonObject(part)) throw unreadable();
  const facts = decodeFacts(part);
  const mimeType = textOf(part, "mimeType");
  const blob = ownValue(part, "blob");
  if (typeof blob === "string") return { type: "blob", mimeType, data: Buffer.from(blob, "base64"), ...facts };
  if (typeof ownValue(part, "uri") === "string") return { ...decodeLink(part, mimeType), ...facts };
  return { type: "text", text: textOf(part, "text"), ...facts };
}

function decodeLink(part: JsonObject, mimeType: string): ContentPart {
  const title = textOf(part, "title");
  const description = textOf(part, "description");
  const sizeBytes = ownValue(part, "sizeBytes");
  return {
    type: "link",
    uri: textOf(part, "uri"),
    mimeType,
    name: textOf(part, "name"),
    ...(title === "" ? {} : { title }),
    ...(description === "" ? {} : { description }),
    ...(typeof sizeBytes === "number" ? { sizeBytes } : {}),
  };
}

function decodeFacts(part: JsonObject): ContentFacts {
  const resource = ownValue(part, "resource");
  const annotations = ownValue(part, "annotations");
  return {
    ...(resource !== undefined && isJsonObject(resource)
      ? { resource: { uri: textOf(resource, "uri"), mimeType: textOf(resource, "mimeType") } }
      : {}),
    ...(annotations !== undefined && isJsonObject(annotations) ? { annotations: decodeAnnotations(annotations) } : {}),
  };
}

function decodeAnnotations(annotations: JsonObject): ContentAnnotations {
  const audience = ownValue(annotations, "audience");
  const priority = ownValue(annotations, "priority");
  const lastModified = textOf(annotations, "lastModified");
  return {
    audience: isJsonArray(audience) ? audience.filter((word) => typeof word === "string") : [],
    ...(typeof priority === "number" ? { priority } : {}),
    ...(lastModified === "" ? {} : { lastModified }),
  };
}

function decodeNotice(notice: JsonValue): ResultNotice {
  const reason = isJsonObject(notice) ? textOf(notice, "reason") : "";
  if (!isJsonObject(notice) || !isNoticeReason(reason)) throw unreadable();
  return { reason, message: textOf(notice, "message") };
}

function encodeFailure({ upstreamCode, ...failure }: ToolFailure): JsonObject {
  return upstreamCode === undefined ? failure : { ...failure, upstreamCode };
}

function decodeFailure(failure: JsonObject): ToolFailure {
  const reason = textOf(failure, "reason");
  const upstreamCode = ownValue(failure, "upstreamCode");
  if (!isFailureReason(reason)) throw unreadable();
  const origin = ownValue(failure, "origin");
  return {
    ...(origin === "tool" || origin === "protocol" ? { origin } : {}),
    reason,
    message: textOf(failure, "message"),
    upstreamCode: typeof upstreamCode === "number" ? upstreamCode : undefined,
    retryable: ownValue(failure, "retryable") === true,
    upstreamFault: ownValue(failure, "upstreamFault") === true,
  };
}

function decodeEarlyStop(word: JsonValue | undefined): Pick<ToolResult, "earlyStop"> {
  return word === "match" || word === "max_length" || word === "max_tokens" ? { earlyStop: word } : {};
}

function decodeTruncation(value: JsonValue | undefined): ToolResult["truncation"] {
  if (!isJsonObject(value)) return undefined;
  const mode = textOf(value, "mode");
  const length = ownValue(value, "originalLength");
  if (mode !== "head" && mode !== "tail" && mode !== "head_tail" && mode !== "summary") throw unreadable();
  const handle = ownValue(value, "handle");
  return {
    mode,
    originalLength: typeof length === "number" ? length : undefined,
    ...(typeof handle === "string" ? { handle } : {}),
  };
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

function isNoticeReason(word: string): word is ResultNotice["reason"] {
  return Object.hasOwn(NOTICE_REASONS, word);
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
