import { envelope } from "../service/raw.ts";
import { type Dice, HOSTILE_TEXTS } from "./dice.ts";
import { METHODS, makeMessage } from "./wire-messages.ts";

/** Bodies as Connect takes them. */
const JSON_BODIES: readonly string[] = [
  "{}",
  '{"invocation":{"name":"echo","argumentsJson":"{}"}}',
  '{"invocation":{"name":"echo","argumentsStruct":{"a":1}}}',
  '{"invocation":{"name":"echo","argumentsJson":"{\\"a\\":9007199254740993}","maxLength":1,"timeout":"0.5s"}}',
  '{"invocation":{"name":"echo","requestId":"r1"},"heartbeat":"0.2s","resumeWindow":"5s"}',
  '{"resume":{"callId":"x","afterSequence":"18446744073709551615"}}',
  '{"pageSize":-1,"pageToken":"x","filter":{"kinds":["TOOL_KIND_HTTP",99],"labels":{"a":"b"}}}',
  '{"declarationYaml":"name: t\\ntype: http\\n"}',
  '{"declarationJson":"{\\"name\\":\\"t\\"}","requestId":"q","lease":"5s"}',
  '{"name":"echo","afterRevision":"1"}',
  '{"name":"echo"}',
  '{"service":"toolgate.v1.ToolGatewayService"}',
];

/** What a body of a method has. */
const BODY_FIELDS = [
  ["Call", "invocation"],
  ["CallStream", "invocation"],
  ["List", "page"],
  ["Register", "declaration"],
  ["Get", '"name":"echo"}'],
  ["Check", "service"],
] as const;

const PIECES: readonly string[] = [
  ...'\r\n \t:;,{}[]"\0\u00ff\u0080=?&%/',
  "\r\n\r\n",
  "\n\n",
  "\r\n ",
  "HTTP/1.1",
  "HTTP/9.9",
  "GET / HTTP/1.1\r\n",
  "0\r\n\r\n",
  "ffffffffffffffff\r\n",
  "-1\r\n",
  "Content-Length: 5\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Host: a\r\nHost: b\r\n",
  "null",
  "1e400",
  "PRI * HTTP/2.0",
  ...HOSTILE_TEXTS.filter((text) => !/[^\0-\u00ff]/.test(text)),
];

const CONTENT_TYPES: readonly string[] = [
  "application/json",
  "application/json",
  "application/json; charset=utf-8",
  "application/proto",
  "text/plain",
  "",
  "application/grpc-web+proto",
  "application/grpc-web-text",
  "application/grpc",
  "application/connect+json",
  "application/connect+proto",
  "application/x-www-form-urlencoded",
  "application/json;;;=",
  "*/*",
  "\u00ff",
];

/** Headers beside those of framing. Most are on the way to a decision of the gateway. */
const HEADERS: readonly (readonly [name: string, values: readonly string[]])[] = [
  ["Host", ["127.0.0.1", "localhost:1", "a b[", "", "[::", "evil.test", "x@y", "\u00e9"]],
  ["Connect-Protocol-Version", ["1", "2", "", "x"]],
  ["Connect-Timeout-Ms", ["1", "0", "-1", "99999999999", "1.5", "x", ""]],
  ["grpc-timeout", ["1S", "0n", "99999999H", "1", "-1S", "100000000000S"]],
  ["Content-Encoding", ["gzip", "identity", "br", "gzip, gzip", "zstd"]],
  ["Accept-Encoding", ["gzip", "*", "br;q=x", ""]],
  ["Connect-Content-Encoding", ["gzip", "br"]],
  ["Connection", ["close", "keep-alive", "upgrade", "Upgrade, HTTP2-Settings", "content-length"]],
  ["Upgrade", ["h2c", "websocket"]],
  ["HTTP2-Settings", ["AAMAAABkAAQAAP__", "x", ""]],
  ["Expect", ["100-continue", "x"]],
  ["Origin", ["https://evil.test", "null", "http://127.0.0.1"]],
  ["Access-Control-Request-Method", ["POST"]],
  ["Authorization", ["Bearer x", "Basic \u0080", ""]],
  ["traceparent", ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-x", ""]],
  ["X-Request-Id", ["a".repeat(300), "\t", "x"]],
  ["TE", ["trailers", "chunked"]],
  ["Cookie", ["a=b; ".repeat(50)]],
  ["x-bin-bin", ["AAA", "===", "\u00ff"]],
];

/** Requests of one HTTP/1 connection, as pieces to be written one by one. */
export function makeHttp1(dice: Dice): string[] {
  const requests = dice.some(1, 3, () => makeRequest(dice));
  const whole = dice.oneIn(12) ? dice.some(1, 30, () => dice.pick(PIECES)).join("") : requests.join("");
  const text = dice.oneIn(4) ? dice.slips(whole, PIECES) : whole;
  const bytes = Buffer.from(text, "latin1").toString("latin1");
  return dice.oneIn(3) ? [bytes] : cut(dice, bytes);
}

/** The same bytes in a few pieces. */
export function cut(dice: Dice, bytes: string): string[] {
  const places = dice.some(1, 4, () => dice.number(bytes.length + 1)).toSorted((a, b) => a - b);
  return [0, ...places].map((from, i) => bytes.slice(from, places[i])).filter((piece) => piece !== "");
}

const RARE_METHODS = ["HEAD", "OPTIONS", "PUT", "CONNECT", "TRACE", "x", "\u00ff"] as const;

function postTarget(dice: Dice): string {
  if (!dice.oneIn(5)) return dice.pick(METHODS.slice(0, 9));
  return dice.pick([...METHODS, "/", "*", "/readyz", "//", "http://x/", "/..%2f"]);
}

function makeRequest(dice: Dice): string {
  // Half of them as a client sends them, but for a slip here and there.
  const type = dice.oneIn(2) ? "application/json" : dice.pick(CONTENT_TYPES);
  const method = dice.pick(["GET", "GET", "GET", "POST", "POST", "POST", "POST", dice.pick(RARE_METHODS)]);
  const path = method === "GET" ? getTarget(dice) : postTarget(dice);
  const version = dice.oneIn(40) ? dice.pick(["HTTP/1.0", "HTTP/2.0", "HTTP/1.1 ", "", "http/1.1"]) : "HTTP/1.1";
  const lines = [`${method} ${path} ${version}`];
  if (!dice.oneIn(40)) lines.push("Host: 127.0.0.1");
  if (type !== "") lines.push(`Content-Type: ${type}`);
  for (const [name, values] of HEADERS) {
    if (!dice.oneIn(60)) continue;
    lines.push(`${dice.oneIn(4) ? name.toUpperCase() : name}:${dice.oneIn(5) ? "" : " "}${dice.pick(values)}`);
  }
  if (dice.oneIn(40)) lines.push(`X-Large: ${"v".repeat(dice.pick([8_000, 16_384, 70_000]))}`);
  if (dice.oneIn(40)) lines.push(...Array.from({ length: 2_100 }, (_, i) => `x${i}: y`));
  return `${lines.join("\r\n")}\r\n${framed(dice, makeBody(dice, type, path))}`;
}

function getTarget(dice: Dice): string {
  const query = dice.pick([
    "connect=v1&encoding=json&message=%7B%7D",
    "encoding=proto&base64=1&message=",
    "message=%zz",
    "x=".repeat(900),
  ]);
  return dice.pick([
    "/readyz",
    "/healthz",
    "/",
    "/metrics",
    `${dice.pick(METHODS)}?${query}`,
    `${dice.pick(METHODS)}?${query}&${dice.plainText()}`,
  ]);
}

/** Whether a body is one of the method; nothing fits all. */
function fits(path: string, body: string): boolean {
  const [, field] = BODY_FIELDS.find(([method]) => path.endsWith(method)) ?? ["", "{}"];
  return body === "{}" || body.includes(field);
}

function makeBody(dice: Dice, type: string, path: string): string {
  if (type.includes("json") && !type.includes("connect+")) {
    const body = dice.oneIn(6) ? dice.pick(JSON_BODIES) : dice.pick(JSON_BODIES.filter((each) => fits(path, each)));
    return dice.oneIn(3) ? dice.slips(body, PIECES) : body;
  }
  const message = type.includes("json") ? Buffer.from(dice.pick(JSON_BODIES)) : makeMessage(dice);
  const enveloped = type.includes("grpc") || type.includes("connect+");
  const bytes = enveloped ? envelope(message, dice.pick([0, 0, 0, 1, 2, 3, 128, 255])) : Buffer.from(message);
  return bytes.toString(type.includes("text") ? "base64" : "latin1");
}

/** Headers of framing and the body, mostly as they belong together. */
function framed(dice: Dice, body: string): string {
  switch (dice.number(20)) {
    case 0:
      return `Content-Length: ${body.length + dice.pick([-1, 1, 1_000, 5e9])}\r\n\r\n${body}`;
    case 1:
      return `Content-Length: ${dice.pick(["-1", "0x5", "1e3", "+5", "", "5, 5", "99999999999999999999"])}\r\n\r\n${body}`;
    case 2:
      return `Content-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n\r\n${chunked(dice, body)}`;
    case 3:
    case 4:
      return `Transfer-Encoding: chunked\r\n\r\n${chunked(dice, body)}`;
    case 5:
      return `Transfer-Encoding: ${dice.pick(["gzip, chunked", "x", "chunked, chunked", " chunked", "identity"])}\r\n\r\n${body}`;
    case 6:
      return `\r\n${body}`;
    default:
      return `Content-Length: ${body.length}\r\n\r\n${body}`;
  }
}

function chunked(dice: Dice, body: string): string {
  const chunks = cut(dice, body).map((chunk) => {
    const size = dice.oneIn(8) ? dice.pick(["-1", "fffffffff", "0", "g", "1;x=y", ""]) : chunk.length.toString(16);
    return `${size}\r\n${chunk}\r\n`;
  });
  return `${chunks.join("")}${dice.oneIn(6) ? "" : `0\r\n${dice.oneIn(4) ? "x-trailer: y\r\n" : ""}\r\n`}`;
}
