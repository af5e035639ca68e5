import { createHmac, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { fillMultipart, type MultipartPart } from "../../../src/adapters/http/multipart-body.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import {
  call,
  closed,
  openTool,
  type PathOptions,
  problemsOf,
  type SeenRequest,
  sent,
  startRawUpstream,
} from "./fixture.ts";

const TEXT: JsonObject = { type: "string" };
const FILE: JsonObject = { type: "string", contentEncoding: "base64" };
const ENDPOINT = "http://127.0.0.1/o";

/** More than a socket takes unread. */
const LARGE = Buffer.alloc(12_000_000, "x").toString("base64");

/** Options of a tool that sends a form. */
function form(multipart: JsonObject, params: JsonObject, keys: JsonObject = {}): PathOptions {
  return { keys: { endpoint: "/o", method: "POST", multipart, ...keys }, params, required: [] };
}

/** The form as a parser that is not ours reads it. */
async function parsed(request: SeenRequest | undefined): Promise<(readonly [string, string | File])[]> {
  const headers = { "content-type": request?.headers["content-type"] ?? "" };
  const data = await new Response(request?.bytes ?? "", { headers }).formData();
  return [...data];
}

/** Lines of the headers of the parts. */
function dispositions(request: SeenRequest | undefined): string[] {
  return request?.body.split("\r\n").filter((line) => line.startsWith("content-disposition")) ?? [];
}

test("a multipart form has texts, JSON and files, with its length known", async () => {
  const bytes = randomBytes(100_001);
  const multipart = {
    source: "agent é",
    订单: "no. {id}",
    tag: "{tags}",
    meta: { json: { id: "$id", list: ["$tags", 1], none: "$none" } },
    note: { text: "a,{id}", content_type: "text/csv" },
    none: "{none}",
    scan: { file: "{scan}", filename: "{name}", content_type: "{type}" },
    raw: { file: "{raw}" },
    gone: { file: "{none_file}" },
  };
  const params = {
    id: { type: "integer" },
    tags: { type: "array" },
    none: TEXT,
    scan: FILE,
    name: TEXT,
    type: TEXT,
    raw: FILE,
    none_file: FILE,
  };
  const args = {
    id: 871234567890123457n,
    tags: ["x", 2],
    none: null,
    scan: bytes.toString("base64"),
    name: "扫描 1.png",
    type: "image/png",
    raw: "",
  };
  const { request, error } = await sent(form(multipart, params), args);
  expect(error).toBeUndefined();
  expect(request?.headers["content-type"]).toMatch(/^multipart\/form-data; boundary=toolgate-[0-9a-f]{36}$/);
  expect(request?.headers["content-length"]).toBe(String(request?.bytes.length));
  expect(request?.headers).not.toHaveProperty("transfer-encoding");
  const fields = await parsed(request);
  expect(fields.map(([name, value]) => [name, typeof value === "string" ? value : value.name])).toEqual([
    ["source", "agent é"],
    ["订单", "no. 871234567890123457"],
    ["tag", "x"],
    ["tag", "2"],
    ["meta", '{"id":871234567890123457,"list":[["x",2],1]}'],
    ["note", "a,871234567890123457"],
    ["scan", "扫描 1.png"],
    ["raw", "raw"],
  ]);
  const files = fields.flatMap(([, value]) => (typeof value === "string" ? [] : [value]));
  expect(files.map(({ type }) => type)).toEqual(["image/png", "application/octet-stream"]);
  expect(Buffer.from((await files[0]?.bytes()) ?? []).equals(bytes)).toBe(true);
  expect(files[1]?.size).toBe(0);
  expect(request?.body).toContain('name="meta"\r\ncontent-type: application/json\r\n\r\n');
  expect(request?.body).toContain('name="note"\r\ncontent-type: text/csv\r\n\r\n');
});

test("a form all of whose arguments are absent is an empty form", async () => {
  const { request } = await sent(form({ a: "{a}" }, { a: TEXT }), {});
  expect(request?.body).toMatch(/^--toolgate-[0-9a-f]{36}--\r\n$/);
});

test.for([
  ["../../etc/passwd", "passwd"],
  ["C:\\Users\\me\\a.txt", "a.txt"],
  ['a"; filename="b.txt', "a%22; filename=%22b.txt"],
  ["..", "scan"],
  ["a/", "scan"],
  ["", "scan"],
  ["é 订单.pdf", "é 订单.pdf"],
  ["a\ud800b", "a\ufffdb"],
  ["x".repeat(500), "x".repeat(200)],
] as const)("the file name %j is sent as %j", async ([name, filename]) => {
  const multipart = { scan: { file: "{scan}", filename: "{name}" } };
  const { request } = await sent(form(multipart, { scan: FILE, name: TEXT }), { scan: "aGk=", name });
  expect(dispositions(request)).toEqual([`content-disposition: form-data; name="scan"; filename="${filename}"`]);
});

test.for(["a\r\nX-Evil: 1", "a\nb", "a\0b", "a\tb", "a\u0085b"])(
  "a file name that would break out of its header is refused: %j",
  async (name) => {
    const multipart = { scan: { file: "{scan}", filename: "{name}" } };
    const { error, requests } = await sent(form(multipart, { scan: FILE, name: TEXT }), { scan: "aGk=", name });
    expect(error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", effect: "none", violations: [{ field: "/name" }] });
    expect(requests).toHaveLength(0);
  },
);

test.for(["image/png\r\nX-Evil: 1", "png", "", "text/plain; x", "a/b; c=é"])(
  "a content type of a file that is none is refused: %j",
  async (type) => {
    const multipart = { scan: { file: "{scan}", content_type: "{type}" } };
    const { error, requests } = await sent(form(multipart, { scan: FILE, type: TEXT }), { scan: "aGk=", type });
    expect(error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", violations: [{ field: "/type" }] });
    expect(requests).toHaveLength(0);
  },
);

test.for(["aGk", "aGk=\n", "a-_=", "data:text/plain;base64,aGk=", "/etc/passwd", "aGk===", "=aGk"])(
  "what is no base64 is no file: %j",
  async (scan) => {
    const { error, requests } = await sent(form({ scan: { file: "{scan}" } }, { scan: FILE }), { scan });
    expect(error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", violations: [{ field: "/scan" }] });
    expect(error?.message).toContain("is no base64");
    expect(requests).toHaveLength(0);
  },
);

test("a file over its limit is refused by its size before anything is sent", async () => {
  const options = form({ scan: { file: "{scan}", max_bytes: 4 } }, { scan: FILE });
  expect((await sent(options, { scan: Buffer.alloc(4).toString("base64") })).error).toBeUndefined();
  const { error, requests } = await sent(options, { scan: Buffer.alloc(5).toString("base64") });
  expect(error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", violations: [{ field: "/scan" }] });
  expect(error?.message).toContain("is a file of 5 bytes, and at most 4 are sent");
  expect(requests).toHaveLength(0);
});

test("a text in a part cannot end it, since nobody knows the boundary before", async () => {
  const options = form({ a: "{a}", b: "2" }, { a: TEXT });
  const first = await sent(options, { a: "1" });
  const boundary = /boundary=(\S+)/.exec(first.request?.headers["content-type"] ?? "")?.[1] ?? "";
  const forged = `1\r\n--${boundary}\r\ncontent-disposition: form-data; name="b"\r\n\r\n3`;
  const second = await sent(options, { a: forged });
  expect(second.request?.headers["content-type"]).not.toContain(boundary);
  expect(await parsed(second.request)).toEqual([
    ["a", forged],
    ["b", "2"],
  ]);
});

test("a large file is decoded in small pieces while it is sent", () => {
  const bytes = randomBytes(3_000_000);
  const parts: MultipartPart[] = [
    { name: "f", kind: "file", param: "f", filename: undefined, contentType: undefined, maxBytes: 5_000_000 },
  ];
  const body = fillMultipart(parts, { f: bytes.toString("base64") }, new Set());
  const pieces = [...body.pieces()];
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(64 * 1024);
  expect(Buffer.concat(pieces).length).toBe(body.length);
  expect(Buffer.concat(pieces).includes(bytes)).toBe(true);
  expect([...body.pieces()]).toEqual(pieces);
});

test("the signature of a multipart form is over its bytes", async () => {
  const signing = { algorithm: "hmac-sha256", secret_ref: "S", header_name: "X-Sign", content: "{method}\n{body}" };
  const options = form({ a: "1", scan: { file: "{scan}" } }, { scan: FILE }, { signing });
  const environment = { S: "key-0123456789" };
  const { request } = await sent({ ...options, environment }, { scan: randomBytes(300).toString("base64") });
  const mac = createHmac("sha256", environment.S)
    .update("POST\n")
    .update(request?.bytes ?? "");
  expect(request?.headers["x-sign"]).toBe(mac.digest("hex"));
});

test("an explained call shows the form without the bytes of its files", async () => {
  const bytes = randomBytes(300);
  const options = form({ a: "{a}", scan: { file: "{scan}" } }, { a: TEXT, scan: FILE });
  const { exchange } = await sent(options, { a: "b", scan: bytes.toString("base64") }, { explain: true });
  expect(exchange?.requestBody).toMatch(
    /name="a"\r\n\r\nb\r\n--toolgate-[0-9a-f]+\r\n[^]*octet-stream\r\n\r\n\(300 bytes\)\r\n--/,
  );
});

test("a form is sent whole a second time where a kept connection was lost", async () => {
  const received: Buffer[] = [];
  let requests = 0;
  await using upstream = await startRawUpstream((socket, text) => {
    if (text.startsWith("POST")) requests += 1;
    if (requests === 2) socket.resetAndDestroy();
    else received.push(Buffer.from(text, "latin1"));
    const all = Buffer.concat(received).toString("latin1");
    if (/--toolgate-[0-9a-f]+--\r\n$/.test(all)) {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}");
      if (requests === 1) received.length = 0;
    }
  });
  const { keys, ...options } = form({ scan: { file: "{scan}" } }, { scan: FILE });
  const tool = await openTool({ ...options, keys: { ...keys, endpoint: upstream.origin }, hints: { readOnly: true } });
  const bytes = randomBytes(200_000);
  expect((await call(tool, { scan: "aGk=" })).error).toBeUndefined();
  expect((await call(tool, { scan: bytes.toString("base64") })).error).toBeUndefined();
  expect(requests).toBe(3);
  expect(Buffer.concat(received).includes(bytes)).toBe(true);
  await tool[Symbol.asyncDispose]();
});

test("a call that is cancelled while its file is being sent ends at once and closes its connection", async () => {
  await using upstream = await startRawUpstream((socket) => socket.pause());
  const { keys, ...options } = form({ scan: { file: "{scan}" } }, { scan: FILE });
  await using tool = await openTool({ ...options, keys: { ...keys, endpoint: upstream.origin } });
  const controller = new AbortController();
  const running = call(tool, { scan: LARGE }, { signal: controller.signal });
  await expect.poll(() => upstream.sockets[0]?.isPaused()).toBe(true);
  controller.abort(new GatewayError("CALL_CANCELLED", "the caller cancelled"));
  expect((await running).error).toMatchObject({ reason: "CALL_CANCELLED", effect: "unknown" });
  upstream.sockets[0]?.removeAllListeners("data").resume();
  await closed(upstream.sockets[0]);
});

test("an upstream that refuses a file before it has read it has answered", async () => {
  await using upstream = await startRawUpstream((socket) => {
    socket.pause();
    socket.write("HTTP/1.1 413 Content Too Large\r\ncontent-length: 5\r\ncontent-type: text/plain\r\n\r\nlarge");
  });
  const { keys, ...options } = form({ scan: { file: "{scan}" } }, { scan: FILE });
  await using tool = await openTool({ ...options, keys: { ...keys, endpoint: upstream.origin } });
  const { result } = await call(tool, { scan: LARGE });
  expect(result).toMatchObject({ effect: "none", failure: { reason: "UPSTREAM_STATUS", upstreamCode: 413 } });
});

test("a form is declared of parts that are whole", () => {
  const problems = (multipart: JsonObject, params: JsonObject = {}, more: JsonObject = {}): string[] =>
    problemsOf({ keys: { endpoint: ENDPOINT, method: "POST", multipart, ...more }, params });
  expect(problems({ a: {} })).toEqual(["/multipart/a a part is one of `text`, `json` and `file`"]);
  expect(problems({ a: { text: "1", json: 1 } })).toEqual(["/multipart/a a part is one of `text`, `json` and `file`"]);
  expect(problems({ a: { text: "1", filename: "f" } })).toEqual([
    "/multipart/a/filename has no effect on a part of kind text: remove it",
  ]);
  expect(problems({ a: { text: "1", content_type: "csv" } })).toEqual([
    "/multipart/a/content_type `csv` is no content type, such as text/csv",
  ]);
  expect(problems({ a: { json: {}, content_type: "text/plain" } })).toEqual([
    "/multipart/a/content_type `text/plain` is no JSON type; use `text` for other text",
  ]);
  expect(problems({ a: { file: "/etc/passwd" } })).toEqual([
    "/multipart/a/file takes one `{param}` alone: the parameter that holds the file's bytes as base64",
  ]);
  expect(problems({ a: { file: "{f}" } }, { f: TEXT })).toEqual([
    "/multipart/a/file parameter `f` is sent as a file, so it must be base64; write `type: string` and " +
      "`contentEncoding: base64` in its declaration",
  ]);
  expect(problems({ a: { file: "{f}", content_type: "png" } }, { f: FILE })).toEqual([
    "/multipart/a/content_type `png` is no content type, such as image/png",
  ]);
  expect(problems({ a: "{nobody}" }, { left: TEXT })).toEqual([
    "/multipart/a `{nobody}` names no parameter; declared are: left",
    "/multipart parameter `left` stands nowhere; write `{left}` in the form or the URL",
  ]);
  expect(problems({ "a\r\nb": "1" })).toEqual(["/multipart/a\r\nb a part needs a name without control characters"]);
  expect(problems({ a: "1" }, {}, { form: { b: "2" } })).toEqual([
    "/multipart a request has one body; set either `form` or `multipart`",
  ]);
  expect(problems({ a: "1" }, {}, { headers: { "Content-Type": "application/json" } })).toEqual([
    "/headers/Content-Type a form sets its content type itself",
  ]);
});
