import type { ProgressEvent } from "../../core/call.ts";
import { isJsonObject, type JsonObject, type JsonValue, ownValue, parseJson } from "../../core/json.ts";

/** What a worker says about its call. */
export type WorkerMessage =
  | { readonly kind: "event"; readonly event: ProgressEvent }
  | { readonly kind: "delta"; readonly text: string }
  | { readonly kind: "result"; readonly value: JsonValue }
  | { readonly kind: "error"; readonly message: string; readonly retryable: boolean };

const LEVELS = ["error", "warning", "info", "debug"] as const;

/** Reads a line of a worker; `undefined` where it says nothing about the call with this id. */
export function readWorkerMessage(line: string, id: string): WorkerMessage | undefined {
  const message = parsed(line);
  if (message === undefined || ownValue(message, "id") !== id) return undefined;
  const result = ownValue(message, "result");
  if (result !== undefined) return { kind: "result", value: result };
  const error = ownValue(message, "error");
  if (error !== undefined) return readError(error);
  const delta = ownValue(message, "delta");
  if (typeof delta === "string") return { kind: "delta", text: delta };
  return readEvent(message);
}

function readError(error: JsonValue): WorkerMessage {
  const words = isJsonObject(error) ? ownValue(error, "message") : error;
  const retryable = isJsonObject(error) && ownValue(error, "retryable") === true;
  return { kind: "error", message: typeof words === "string" ? words : "no reason given", retryable };
}

function readEvent(message: JsonObject): WorkerMessage | undefined {
  const progress = ownValue(message, "progress");
  if (isJsonObject(progress)) {
    const [current, total] = ["current", "total"].map((key) => ownValue(progress, key));
    const event: ProgressEvent = {
      type: "progress",
      current: typeof current === "number" ? current : 0,
      total: typeof total === "number" ? total : undefined,
      message: wordsOf(progress),
    };
    return { kind: "event", event };
  }
  const log = ownValue(message, "log");
  if (!isJsonObject(log)) return undefined;
  const level = LEVELS.find((each) => each === ownValue(log, "level")) ?? "info";
  return { kind: "event", event: { type: "log", level, message: wordsOf(log) } };
}

function wordsOf(object: JsonObject): string {
  const words = ownValue(object, "message");
  return typeof words === "string" ? words : "";
}

function parsed(line: string): JsonObject | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    const value = parseJson(line);
    return isJsonObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
