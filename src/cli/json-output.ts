import { Buffer } from "node:buffer";
import { durationMs, type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import {
  type CallEvent,
  type CallExplanation,
  type CallOutcome,
  type Content,
  type ContentAnnotations,
  type DeclarationProblem,
  EarlyStop,
  FailureOrigin,
  type ResourceLink,
  type ResultNotice,
  type ResultPage,
  type Tool,
  type ToolFailure,
  type ToolResult,
} from "../../clients/typescript/src/index.ts";
import { type JsonObject, type JsonValue, parseJson } from "../core/json.ts";
import { deliveryWord, earlyStopWord, kindWord, stateWord, truncationWord } from "./words.ts";

// What `--output json` prints. docs/cli.md describes it; names are those of the service's JSON, except that schemas and
// structured results stand as JSON and not as text, and enums by the words of the command line.

/** A tool. */
export function toolJson(tool: Tool): JsonObject {
  const { hints } = tool;
  return {
    name: tool.name,
    alias: tool.alias,
    title: tool.title,
    description: tool.description,
    state: stateWord(tool.state),
    stateReason: tool.stateReason,
    kind: kindWord(tool.kind),
    source: tool.source,
    delivery: deliveryWord(tool.delivery),
    labels: tool.labels,
    toolsets: tool.toolsets,
    hints: {
      ...(hints?.readOnly === undefined ? {} : { readOnly: hints.readOnly }),
      ...(hints?.destructive === undefined ? {} : { destructive: hints.destructive }),
      ...(hints?.idempotent === undefined ? {} : { idempotent: hints.idempotent }),
      ...(hints?.openWorld === undefined ? {} : { openWorld: hints.openWorld }),
    },
    ...(tool.defaultTimeout === undefined ? {} : { defaultTimeoutMs: durationMs(tool.defaultTimeout) }),
    etag: tool.etag,
    contractDigest: tool.contractDigest,
    ...timeJson("createTime", tool.createTime),
    ...timeJson("updateTime", tool.updateTime),
    ...timeJson("leaseExpireTime", tool.leaseExpireTime),
    ...(tool.inputSchemaJson === "" ? {} : { inputSchema: parseJson(tool.inputSchemaJson) }),
    ...(tool.outputSchemaJson === undefined ? {} : { outputSchema: parseJson(tool.outputSchemaJson) }),
  };
}

/** A declaration problem. */
export function problemJson(problem: DeclarationProblem): JsonObject {
  const { source, line, column, message, lastGoodServing, note } = problem;
  return { source, line, column, message, lastGoodServing, note };
}

/** A page of a kept result. */
export function pageJson(page: ResultPage): JsonObject {
  const { text, data, cursor, expireTime } = page;
  return {
    ...(data === undefined
      ? { page: page.json === undefined ? text : parseJson(text) }
      : { data: Buffer.from(data).toString("base64") }),
    ...(cursor === undefined ? {} : { cursor }),
    result: {
      tool: page.tool,
      mimeType: page.mimeType,
      sizeBytes: Number(page.sizeBytes),
      complete: page.complete,
      ...(expireTime === undefined ? {} : { expireTime: expireTime.toISOString() }),
    },
  };
}

/** How a call ended. */
export function outcomeJson(outcome: CallOutcome): JsonObject {
  const { result, failure, explanation } = outcome;
  const { truncation } = result ?? {};
  return {
    callId: outcome.callId,
    ...(failure === undefined ? {} : { failure: failureJson(failure) }),
    ...(result?.structuredJson === undefined ? {} : { structured: parseJson(result.structuredJson) }),
    content: (result?.content ?? []).flatMap(contentJson),
    ...noticesJson(result?.notices ?? []),
    ...(outcome.needsInput === undefined ? {} : { needsInput: { ...outcome.needsInput } }),
    ...(truncation === undefined ? {} : { truncation: truncationJson(truncation) }),
    ...earlyStopJson(result),
    stats: { attempts: outcome.attempts, effect: outcome.effect, totalMs: outcome.totalMs, queuedMs: outcome.queuedMs },
    ...(explanation === undefined ? {} : { explanation: explanationJson(explanation) }),
  };
}

/** An event of a streamed call: one line each. */
export function eventJson(event: CallEvent): JsonObject {
  switch (event.type) {
    case "started":
      return {
        event: "started",
        callId: event.callId,
        ...(event.deadline === undefined ? {} : { deadline: event.deadline.toISOString() }),
      };
    case "output":
      return {
        event: "output",
        index: event.index,
        ...(event.data === undefined ? { text: event.text } : { data: base64(event.data) }),
        ...(event.mimeType === "" ? {} : { mimeType: event.mimeType }),
      };
    case "progress":
      return {
        event: "progress",
        current: event.current,
        ...(event.total === undefined ? {} : { total: event.total }),
        message: event.message,
      };
    case "queued":
      return { event: "queued", limit: event.limit, position: event.position };
    case "log":
      return { event: "log", level: event.level, message: event.message };
    case "completed":
      return { event: "completed", ...outcomeJson(event.outcome) };
  }
}

function explanationJson(explanation: CallExplanation): JsonValue {
  return explanation.exchanges.map((exchange) => ({
    method: exchange.method,
    url: exchange.url,
    requestHeaders: exchange.requestHeaders.map(({ name, value }) => ({ name, value })),
    requestBody: exchange.requestBody,
    ...(exchange.status === undefined ? {} : { status: exchange.status }),
    responseHeaders: exchange.responseHeaders.map(({ name, value }) => ({ name, value })),
    ...(exchange.firstByte === undefined ? {} : { firstByteMs: durationMs(exchange.firstByte) }),
  }));
}

function earlyStopJson(result: ToolResult | undefined): JsonObject {
  const rule = result?.earlyStop ?? EarlyStop.UNSPECIFIED;
  return rule === EarlyStop.UNSPECIFIED ? {} : { earlyStop: earlyStopWord(rule) };
}

function truncationJson({ mode, originalLength, handle }: NonNullable<ToolResult["truncation"]>): JsonObject {
  return {
    mode: truncationWord(mode),
    ...(originalLength === undefined ? {} : { originalLength }),
    ...(handle === "" ? {} : { handle }),
  };
}

function failureJson({ reason, message, retryable, upstreamCode, origin }: ToolFailure): JsonObject {
  const code = upstreamCode === undefined ? {} : { upstreamCode };
  return { reason, message, retryable, ...code, ...originJson(origin) };
}

function originJson(origin: FailureOrigin): JsonObject {
  if (origin === FailureOrigin.TOOL) return { origin: "tool" };
  return origin === FailureOrigin.PROTOCOL ? { origin: "protocol" } : {};
}

function noticesJson(notices: readonly ResultNotice[]): JsonObject {
  return notices.length === 0 ? {} : { notices: notices.map(({ reason, message }) => ({ reason, message })) };
}

function contentJson({ part, resource, annotations }: Content): JsonObject[] {
  const facts: JsonObject = {
    ...(resource === undefined ? {} : { resource: { uri: resource.uri, mimeType: resource.mimeType } }),
    ...(annotations === undefined ? {} : { annotations: annotationsJson(annotations) }),
  };
  switch (part.case) {
    case "text":
      return [{ text: part.value, ...facts }];
    case "blob":
      return [{ blob: { mimeType: part.value.mimeType, data: base64(part.value.data) }, ...facts }];
    case "link":
      return [{ link: linkJson(part.value), ...facts }];
    case undefined:
      return [];
  }
}

function linkJson({ uri, mimeType, name, title, description, sizeBytes }: ResourceLink): JsonObject {
  return {
    uri,
    mimeType,
    name,
    ...(title === "" ? {} : { title }),
    ...(description === "" ? {} : { description }),
    ...(sizeBytes === undefined ? {} : { sizeBytes }),
  };
}

function annotationsJson({ audience, priority, lastModified }: ContentAnnotations): JsonObject {
  return {
    ...(audience.length === 0 ? {} : { audience: [...audience] }),
    ...(priority === undefined ? {} : { priority }),
    ...(lastModified === "" ? {} : { lastModified }),
  };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

function timeJson(name: string, time: Timestamp | undefined): JsonObject {
  return time === undefined ? {} : { [name]: timestampDate(time).toISOString() };
}
