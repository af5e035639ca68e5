import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonArray, isJsonObject, ownValue, stringifyJson } from "../core/json.ts";
import { plain } from "./terminal.ts";

/** One call, in a line. */
export function callText(record: JsonObject): string {
  const lost = ownValue(record, "lost");
  if (lost !== undefined)
    return `${text(record, "time")}  ${textOf(lost)} lines were lost since ${text(record, "since")}`;
  const words = [
    text(record, "time"),
    text(record, "outcome").padEnd(11),
    text(record, "tool"),
    milliseconds(record, "totalMs"),
    text(record, "principal"),
    text(record, "callId") || "-",
    text(record, "reason"),
  ];
  return words.filter((word) => word !== "").join("  ");
}

/** What an administrator did, or who was refused, in a line. */
export function actText(record: JsonObject): string {
  const known = new Set(["level", "time", "outcome", "actor", "message"]);
  const facts = Object.entries(record).flatMap(([key, value]) =>
    known.has(key) ? [] : [`${plain(key)}=${typeof value === "string" ? plain(value) : plain(stringifyJson(value))}`],
  );
  const [time, outcome, action, actor] = ["time", "outcome", "message", "actor"].map((key) => text(record, key));
  return [time, outcome?.padEnd(7), action, actor, ...facts].join("  ");
}

/** A call from what the model said to what it was told, by what its logs know of it. */
export function chainLines(calls: readonly JsonObject[], said: readonly JsonObject[]): readonly string[] {
  const blocks = [...calls, ...(calls.length === 0 ? said : [])].map((call) => {
    const session = said.find((one) => ownValue(one, "callId") === ownValue(call, "callId")) ?? {};
    return chain(call, session);
  });
  return blocks.flatMap((lines, i) => (i === 0 ? lines : ["", ...lines]));
}

function chain(call: JsonObject, session: JsonObject): readonly string[] {
  const upstream = ownValue(session, "upstream");
  const exchanges = isJsonArray(upstream) ? upstream.filter(isJsonObject) : [];
  const rows: (readonly [name: string, value: string])[] = [
    ["call", text(call, "callId")],
    ["time", text(call, "time")],
    ["tool", text(call, "tool")],
    ["caller", text(call, "principal")],
    ["session", ids(call)],
    ["trace", text(call, "traceId")],
    ["arguments", text(session, "arguments") || digest(call)],
    ["validated", text(session, "validated")],
    ...exchanges.flatMap(exchangeRows),
    ["streamed", text(session, "streamed")],
    ["result", resultText(ownValue(session, "result"))],
    ["error", text(session, "error")],
    ["outcome", outcomeText(call)],
    ["took", timesText(call)],
    ["sizes", sizesText(call)],
  ];
  const shown = rows.filter(([, value]) => value !== "");
  const body = shown.map(([name, value]) => `${name.padEnd(10)} ${value}`);
  if (Object.keys(session).length > 0) return body;
  return [...body, "           What was said is on record where `records.session` is true."];
}

function exchangeRows(exchange: JsonObject): (readonly [string, string])[] {
  const body = text(exchange, "requestBody");
  const request = [text(exchange, "method"), text(exchange, "url"), body].filter((word) => word !== "").join(" ");
  const status = text(exchange, "status");
  const first = milliseconds(exchange, "firstByteMs");
  const answer = [status === "" ? "no answer" : status, first === "" ? "" : `after ${first}`].filter(
    (word) => word !== "",
  );
  return [
    ["request", request],
    ["upstream", answer.join(" ")],
  ];
}

function resultText(result: JsonValue | undefined): string {
  if (result === undefined || !isJsonObject(result)) return "";
  const json = text(result, "json");
  return json === "" ? plain(stringifyJson(result)) : json;
}

function outcomeText(call: JsonObject): string {
  const parts = [text(call, "outcome"), text(call, "reason"), text(call, "status")];
  const upstream = text(call, "upstreamCode");
  const attempts = text(call, "attempts");
  return [
    ...new Set(parts),
    upstream === "" ? "" : `upstream ${upstream}`,
    `effect ${text(call, "effect") || "unknown"}`,
    attempts === "" ? "" : `${attempts} ${attempts === "1" ? "attempt" : "attempts"}`,
  ]
    .filter((word) => word !== "")
    .join(", ");
}

function timesText(call: JsonObject): string {
  const parts = [
    ["queued", "queuedMs"],
    ["connected after", "connectMs"],
    ["first byte after", "firstByteMs"],
  ].flatMap(([words = "", key = ""]) => {
    const time = milliseconds(call, key);
    return time === "" ? [] : [`${words} ${time}`];
  });
  const total = milliseconds(call, "totalMs");
  return parts.length === 0 ? total : `${total} (${parts.join(", ")})`;
}

function sizesText(call: JsonObject): string {
  const sizes = ["argument", "request", "response", "result"].flatMap((name) => {
    const bytes = text(call, `${name}Bytes`);
    return bytes === "" ? [] : [`${name} ${bytes}`];
  });
  return sizes.length === 0 ? "" : `${sizes.join(", ")} bytes`;
}

function ids(call: JsonObject): string {
  return ["sessionId", "turnId", "taskId", "toolCallId"]
    .flatMap((key) => {
      const id = text(call, key);
      return id === "" ? [] : [`${key.replace(/Id$/, "")} ${id}`];
    })
    .join(", ");
}

function digest(call: JsonObject): string {
  const value = text(call, "argumentsDigest");
  return value === "" ? "" : `digest ${value}`;
}

function milliseconds(record: JsonObject, key: string): string {
  const value = ownValue(record, key);
  return typeof value === "number" ? `${value} ms` : "";
}

function text(record: JsonObject, key: string): string {
  return textOf(ownValue(record, key));
}

function textOf(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "";
  return plain(typeof value === "string" ? value : stringifyJson(value));
}
