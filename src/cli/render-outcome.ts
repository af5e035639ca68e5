import { durationMs } from "@bufbuild/protobuf/wkt";
import type {
  CallExplanation,
  CallOutcome,
  Content,
  NeededInput,
  UpstreamExchange,
} from "../../clients/typescript/src/index.ts";
import { EarlyStop } from "../../clients/typescript/src/index.ts";
import { isJsonObject, type JsonValue, ownValue, parseJson, stringifyJson } from "../core/json.ts";
import { durationWords } from "./durations.ts";
import { type Output, plain } from "./terminal.ts";
import { earlyStopWord, truncationWord } from "./words.ts";

/** Prints what the gateway sent and got, in the manner of `curl -v`: `>` for what went out, `<` for what came back. */
export function printExplanation(explanation: CallExplanation, err: Output): void {
  for (const [index, exchange] of explanation.exchanges.entries()) {
    if (explanation.exchanges.length > 1) err.line(err.paint("dim", `attempt ${index + 1}`));
    printExchange(exchange, err);
  }
}

function printExchange(exchange: UpstreamExchange, err: Output): void {
  const line = (mark: string, text: string): void => err.line(`${err.paint("dim", mark)} ${text}`.trimEnd());
  line(">", `${err.paint("bold", plain(exchange.method))} ${plain(exchange.url)}`);
  for (const { name, value } of exchange.requestHeaders)
    line(">", `${err.paint("cyan", plain(name))}: ${plain(value)}`);
  if (exchange.requestBody !== "") {
    line(">", "");
    for (const text of exchange.requestBody.split("\n")) line(">", plain(text));
  }
  const took = exchange.firstByte === undefined ? "" : ` after ${durationWords(durationMs(exchange.firstByte))}`;
  line(
    "<",
    exchange.status === undefined ? err.paint("red", "no answer") : `${statusText(exchange.status, err)}${took}`,
  );
  for (const { name, value } of exchange.responseHeaders)
    line("<", `${err.paint("cyan", plain(name))}: ${plain(value)}`);
  err.line();
}

function statusText(status: number, err: Output): string {
  if (status < 400) return err.paint("green", String(status));
  return err.paint(status < 500 ? "yellow" : "red", String(status));
}

/** The body of a result as people read it: JSON in indented lines, text as it is. Ends with a line break unless empty. */
export function resultText({ result }: CallOutcome): string {
  if (result === undefined) return "";
  const parts = result.content.map(partText);
  if (result.structuredJson !== undefined) parts.push(stringifyJson(parseJson(result.structuredJson), 2));
  const text = parts.join("\n");
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

function printEarlyStop(rule: EarlyStop | undefined, err: Output): void {
  if (rule === undefined || rule === EarlyStop.UNSPECIFIED) return;
  err.line(`${err.paint("yellow", "ended early:")} by \`result.early_stop.${earlyStopWord(rule)}\``);
}

/** Prints how output was cut, what the gateway has to say of it, and a failure the tool reported. */
export function printVerdict(outcome: CallOutcome, err: Output): void {
  const truncation = outcome.result?.truncation;
  if (truncation !== undefined) {
    const length = truncation.originalLength === undefined ? "" : `, ${truncation.originalLength} characters in all`;
    const whole = truncation.handle === "" ? "" : `; toolgate result read ${plain(truncation.handle)} has it all`;
    err.line(`${err.paint("yellow", "shortened:")} ${truncationWord(truncation.mode)} kept${length}${whole}`);
  }
  printEarlyStop(outcome.result?.earlyStop, err);
  for (const { reason, message } of outcome.result?.notices ?? []) {
    err.line(`${err.paint("yellow", "notice:")} ${err.paint("bold", plain(reason))} ${plain(message)}`);
  }
  const { failure } = outcome;
  if (failure === undefined) return;
  const code = failure.upstreamCode === undefined ? "" : ` (${failure.upstreamCode})`;
  const again = failure.retryable ? "; the same call may work later" : "";
  err.line(
    `${err.paint("red", "failed:")} ${err.paint("bold", plain(failure.reason))}${code} ${plain(failure.message)}${again}`,
  );
}

/** Prints what a tool asks for, and how to answer. */
export function printNeededInput({ state, requests, expiresInMs }: NeededInput, err: Output): void {
  const waits = durationWords(expiresInMs);
  err.line(
    `${err.paint("yellow", "the tool asks for input")} and waits ${waits} for it; nothing is answered by itself`,
  );
  const answers: Record<string, JsonValue> = {};
  for (const [id, request] of Object.entries(requests)) {
    const { kind, message, url, schema } = askedIn(request);
    err.line(
      `${err.paint("bold", plain(id))} (${plain(kind)}): ${plain(message)}${url === "" ? "" : ` ${plain(url)}`}`,
    );
    if (schema !== undefined) err.line(`  content: ${plain(stringifyJson(schema))}`);
    answers[id] = { action: "accept", content: {} };
  }
  const example = stringifyJson(answers);
  err.line(`answer: the same command with --continue ${plain(state)} --input '${plain(example)}'`);
  err.line("        or with an action of decline or cancel");
}

function askedIn(request: JsonValue): {
  readonly kind: string;
  readonly message: string;
  readonly url: string;
  readonly schema: JsonValue | undefined;
} {
  const object = isJsonObject(request) ? request : {};
  const text = (key: string): string => {
    const value = ownValue(object, key);
    return typeof value === "string" ? value : "";
  };
  return { kind: text("kind"), message: text("message"), url: text("url"), schema: ownValue(object, "schema") };
}

/** One line on how the call went. */
export function statsLine(outcome: CallOutcome): string {
  const attempts = outcome.attempts === 1 ? "1 attempt" : `${outcome.attempts} attempts`;
  const queued = outcome.queuedMs === 0 ? "" : ` (${durationWords(outcome.queuedMs)} of it waiting for its turn)`;
  return `call ${outcome.callId}: ${durationWords(outcome.totalMs)}${queued}, ${attempts}, effect ${outcome.effect}`;
}

function partText({ part, resource }: Content): string {
  const from = resource === undefined || resource.uri === "" ? "" : ` from ${plain(resource.uri)}`;
  switch (part.case) {
    case "text":
      return part.value;
    case "blob":
      return `[${part.value.data.length} bytes of ${plain(part.value.mimeType)}${from}; --output json has them]`;
    case "link": {
      const { uri, name, title, sizeBytes } = part.value;
      const size = sizeBytes === undefined ? "" : `, ${sizeBytes} bytes`;
      return `[${plain(title || name || "link")}: ${plain(uri)}${size}]`;
    }
    case undefined:
      return "";
  }
}
