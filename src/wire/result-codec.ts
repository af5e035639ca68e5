import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CallExplanationSchema,
  CallStatsSchema,
  ContentSchema,
  ToolResultSchema,
  UpstreamExchangeSchema,
} from "../../gen/toolgate/v1/call_pb.ts";
import type { CallStreamResponseSchema } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { ContentPart, ToolEvent, ToolFailure, ToolResult, UpstreamExchange } from "../core/call.ts";
import type { Effect } from "../core/effect.ts";
import { GatewayError } from "../core/errors.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { toDuration, toTimestamp } from "./durations.ts";
import { EARLY_STOP_NUMBERS, EFFECT_NUMBERS, ORIGIN_NUMBERS, TRUNCATION_NUMBERS } from "./enums.ts";
import { splitUtf8, utf8Length } from "./utf8.ts";

/** Most bytes of text in one message of a stream, so that a slow reader holds little. */
export const MAX_PIECE_BYTES = 64 * 1024;

/** Largest message gRPC clients take unless told otherwise, less room for what stands beside the result. */
const MAX_RESULT_BYTES = 4 * 1024 * 1024 - 16 * 1024;

/** What happened, as a CallStreamResponse says it. */
export type StreamEvent = NonNullable<MessageInitShape<typeof CallStreamResponseSchema>["event"]>;

/** Output of a tool that goes to the reader of a stream as it comes. */
export type OutputEvent = Extract<ToolEvent, { type: "delta" | "progress" | "log" | "queue-enter" }>;

/** Output as messages: one, or for a long text several of at most {@link MAX_PIECE_BYTES}. */
export function encodeOutput(event: OutputEvent): StreamEvent[] {
  switch (event.type) {
    case "delta":
      return splitUtf8(event.text, MAX_PIECE_BYTES).map((value) => ({
        case: "output",
        value: { index: event.index, delta: { case: "text", value } },
      }));
    case "progress": {
      const { current, total, message } = event;
      return [{ case: "progress", value: total === undefined ? { current, message } : { current, total, message } }];
    }
    case "log":
      return [{ case: "log", value: { level: event.level, message: event.message } }];
    case "queue-enter":
      return [{ case: "queued", value: { limit: event.limit, position: event.position } }];
  }
}

/** Output in pieces of which each is one message: what {@link encodeOutput} makes several of is several here. */
export function outputPieces(event: OutputEvent): OutputEvent[] {
  if (event.type !== "delta") return [event];
  return splitUtf8(event.text, MAX_PIECE_BYTES).map((text) => ({ ...event, text }));
}

/** A result as a message, with the version of the tool that it comes from. */
export function encodeResult(
  result: ToolResult,
  { name, contractDigest, kind }: Pick<ToolDefinition, "name" | "contractDigest" | "kind">,
): MessageInitShape<typeof ToolResultSchema> {
  const { structuredJson, failure, truncation, notices, needsInput, earlyStop } = result;
  return {
    content: result.content.map(encodeContent),
    provenance: { tool: name, contractDigest, trusted: result.trusted === true, upstream: upstreamOf(name, kind) },
    ...(structuredJson === undefined ? {} : { structuredJson }),
    ...(earlyStop === undefined ? {} : { earlyStop: EARLY_STOP_NUMBERS[earlyStop] }),
    ...(failure === undefined ? {} : { failure: encodeFailure(failure) }),
    ...(notices === undefined ? {} : { notices: notices.map(({ reason, message }) => ({ reason, message })) }),
    ...(needsInput === undefined ? {} : { needsInput: encodeNeededInput(needsInput) }),
    ...(truncation === undefined
      ? {}
      : {
          truncation: {
            mode: TRUNCATION_NUMBERS[truncation.mode],
            ...(truncation.originalLength === undefined ? {} : { originalLength: BigInt(truncation.originalLength) }),
            ...(truncation.handle === undefined ? {} : { handle: truncation.handle }),
          },
        }),
  };
}

/** `http`; of a tool of a server `mcp:NAME` with the server's name. Never where that is. */
function upstreamOf(name: string, kind: ToolDefinition["kind"]): string {
  const slash = name.indexOf("/");
  return slash === -1 ? kind : `${kind}:${name.slice(0, slash)}`;
}

/**
 * The result, if it fits in a message that every gRPC client takes.
 *
 * @throws GatewayError RESULT_TOO_LARGE.
 */
export function withinMessage(result: ToolResult): ToolResult {
  const bytes =
    result.content.reduce((sum, part) => sum + partBytes(part), 0) +
    textBytes([
      result.structuredJson,
      result.failure?.message,
      result.needsInput?.requestsJson,
      ...(result.notices ?? []).map(({ message }) => message),
    ]);
  if (bytes <= MAX_RESULT_BYTES) return result;
  throw new GatewayError(
    "RESULT_TOO_LARGE",
    `the result has ${bytes} bytes, more than the ${MAX_RESULT_BYTES} of one message; lower \`max_length\` of the call or the tool`,
    { effect: "unknown", metadata: { bytes: String(bytes), limit_bytes: String(MAX_RESULT_BYTES) } },
  );
}

function partBytes(part: ContentPart): number {
  const { annotations, resource } = part;
  const beside = textBytes([
    ...(annotations?.audience ?? []),
    annotations?.lastModified,
    resource?.uri,
    resource?.mimeType,
  ]);
  switch (part.type) {
    case "text":
      return beside + utf8Length(part.text);
    case "blob":
      return beside + part.data.byteLength;
    case "link":
      return beside + textBytes([part.uri, part.mimeType, part.name, part.title, part.description]);
  }
}

function textBytes(texts: readonly (string | undefined)[]): number {
  return texts.reduce((sum, text) => sum + (text === undefined ? 0 : utf8Length(text)), 0);
}

/** How a call went. */
export interface CallStats {
  /** Milliseconds since the epoch. */
  readonly startTimeMs: number;
  /** Waiting for its turn, of all attempts together. */
  readonly queuedMs: number;
  readonly totalMs: number;
  readonly attempts: number;
  readonly effect: Effect;
  /** Whether the outcome is that of an earlier call, or of a running one that was joined. */
  readonly replayed: boolean;
}

/** Figures of a call as a message. */
export function encodeStats(stats: CallStats): MessageInitShape<typeof CallStatsSchema> {
  return {
    startTime: toTimestamp(stats.startTimeMs),
    ...(stats.queuedMs === 0 ? {} : { queued: toDuration(stats.queuedMs) }),
    total: toDuration(stats.totalMs),
    attempts: stats.attempts,
    replayed: stats.replayed,
    effect: EFFECT_NUMBERS[stats.effect],
  };
}

/** What was sent and got, as a message. */
export function encodeExplanation(
  exchanges: readonly UpstreamExchange[],
): MessageInitShape<typeof CallExplanationSchema> {
  return { exchanges: exchanges.map(encodeExchange) };
}

function encodeContent(part: ContentPart): MessageInitShape<typeof ContentSchema> {
  const { annotations, resource } = part;
  if (annotations === undefined && resource === undefined) return { part: encodePart(part) };
  return {
    part: encodePart(part),
    ...(resource === undefined ? {} : { resource: { uri: resource.uri, mimeType: resource.mimeType } }),
    ...(annotations === undefined ? {} : { annotations: { ...annotations, audience: [...annotations.audience] } }),
  };
}

function encodePart(part: ContentPart): NonNullable<MessageInitShape<typeof ContentSchema>["part"]> {
  switch (part.type) {
    case "text":
      return { case: "text", value: part.text };
    case "blob":
      return { case: "blob", value: { mimeType: part.mimeType, data: part.data } };
    case "link": {
      const { uri, mimeType, name, title = "", description = "", sizeBytes } = part;
      const size = sizeBytes === undefined ? {} : { sizeBytes: BigInt(sizeBytes) };
      return { case: "link", value: { uri, mimeType, name, title, description, ...size } };
    }
  }
}

function encodeNeededInput({ state, requestsJson, expiresInMs }: NonNullable<ToolResult["needsInput"]>) {
  return { state, requestsJson, expiresIn: toDuration(expiresInMs) };
}

function encodeFailure({ reason, message, upstreamCode, retryable, origin }: ToolFailure) {
  return {
    reason,
    message,
    retryable,
    ...(upstreamCode === undefined ? {} : { upstreamCode }),
    ...(origin === undefined ? {} : { origin: ORIGIN_NUMBERS[origin] }),
  };
}

function encodeExchange(exchange: UpstreamExchange): MessageInitShape<typeof UpstreamExchangeSchema> {
  const { status, firstByteMs } = exchange;
  return {
    method: exchange.method,
    url: exchange.url,
    requestHeaders: exchange.requestHeaders.map(encodeHeader),
    requestBody: exchange.requestBody,
    responseHeaders: exchange.responseHeaders.map(encodeHeader),
    ...(status === undefined ? {} : { status }),
    ...(firstByteMs === undefined ? {} : { firstByte: toDuration(firstByteMs) }),
  };
}

function encodeHeader([name, value]: readonly [name: string, value: string]) {
  return { name, value };
}
