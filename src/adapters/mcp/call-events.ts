import type { ProgressEvent } from "../../core/call.ts";
import { isJsonObject, type JsonObject, type JsonValue, ownValue, stringifyJson } from "../../core/json.ts";
import { textBeginning } from "../../core/text.ts";

/** Events that may wait for a reader. */
const MAX_WAITING = 1_000;
/** Most code points of what one of them says: a thousand have to fit into memory. */
const MAX_MESSAGE_LENGTH = 8_192;

/** Levels of syslog, which the protocol uses, as the gateway's four. */
const LEVELS: Readonly<Record<string, "error" | "warning" | "info" | "debug">> = {
  debug: "debug",
  info: "info",
  notice: "info",
  warning: "warning",
  error: "error",
  critical: "error",
  alert: "error",
  emergency: "error",
};

/** What a server's progress notification says; undefined where it says nothing that can be read. */
export function progressEvent(params: JsonObject): ProgressEvent | undefined {
  const current = ownValue(params, "progress");
  const total = ownValue(params, "total");
  const message = ownValue(params, "message");
  if (typeof current !== "number") return undefined;
  return {
    type: "progress",
    current,
    total: typeof total === "number" ? total : undefined,
    message: typeof message === "string" ? messageText(message) : "",
  };
}

/** What a server's log notification says. */
export function logEvent(params: JsonObject): ProgressEvent {
  const level = ownValue(params, "level");
  const known = typeof level === "string" && Object.hasOwn(LEVELS, level) ? LEVELS[level] : undefined;
  return { type: "log", level: known ?? "info", message: messageText(logText(ownValue(params, "data") ?? "")) };
}

function messageText(text: string): string {
  return textBeginning(text, MAX_MESSAGE_LENGTH).toWellFormed();
}

function logText(data: JsonValue): string {
  if (typeof data === "string") return data;
  const message = isJsonObject(data) && Object.keys(data).length === 1 ? ownValue(data, "message") : undefined;
  return typeof message === "string" ? message : stringifyJson(data);
}

/** The server asked something, which is kept elsewhere. */
export interface AskedEvent {
  readonly type: "asked";
}

/** Events on their way to the one who reads a call. A reader that is too slow loses progress first, then log lines. */
export class CallEvents {
  #waiting: (ProgressEvent | AskedEvent)[] = [];
  #lost = 0;
  #wake: (() => void) | undefined;
  #over = false;

  push(event: ProgressEvent | AskedEvent): void {
    if (this.#waiting.length >= MAX_WAITING) {
      const progress = this.#waiting.findIndex(({ type }) => type === "progress");
      const oldest = progress < 0 ? this.#waiting.findIndex(({ type }) => type !== "asked") : progress;
      this.#waiting.splice(Math.max(oldest, 0), 1);
      this.#lost += 1;
    }
    this.#waiting.push(event);
    this.#notify();
  }

  /** No more will come. */
  end(): void {
    this.#over = true;
    this.#notify();
  }

  /** Events as they come, until the end. */
  async *read(): AsyncGenerator<ProgressEvent | AskedEvent, void, undefined> {
    while (true) {
      const next = this.#waiting.shift();
      if (next !== undefined) {
        yield next;
        continue;
      }
      if (this.#over) break;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#lost === 0) return;
    yield {
      type: "log",
      level: "warning",
      message: `${this.#lost} events came faster than they were read and were dropped`,
    };
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
