import type { ServerResponse } from "node:http";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { createFakeClock } from "../../core/fake-clock.ts";
import {
  call,
  closed,
  openTool,
  send,
  sendJson,
  startRawUpstream,
  startUpstream,
  type ToolOptions,
} from "./fixture.ts";

const POST = { keys: { method: "POST" } };

/** One call of a tool whose upstream answers so. */
async function answered(respond: (response: ServerResponse) => void, options: Partial<ToolOptions> = {}) {
  await using upstream = await startUpstream(respond);
  await using tool = await openTool({ ...options, keys: { endpoint: `${upstream.origin}/o`, ...options.keys } });
  const outcome = await call(tool);
  return { ...outcome, requests: upstream.requests, origin: upstream.origin };
}

/** One call of a tool whose upstream writes these bytes and then does as told. */
async function answeredRaw(bytes: string, end: "close" | "reset" | "keep", options: Partial<ToolOptions> = {}) {
  await using upstream = await startRawUpstream((socket) => {
    socket.write(bytes, "latin1", () => {
      if (end === "reset") socket.resetAndDestroy();
      else if (end === "close") socket.end();
    });
  });
  await using tool = await openTool({ ...options, keys: { endpoint: `${upstream.origin}/o`, ...options.keys } });
  return await call(tool);
}

test("a JSON answer is a value, with every digit of its integers", async () => {
  const body = '{"code":0,"data":{"id":871234567890123457,"f":0.1}}';
  const { result } = await answered((response) => sendJson(response, 200, body));
  expect(result).toEqual({
    content: [],
    value: { code: 0, data: { id: 871234567890123457n, f: 0.1 } },
    upstreamCode: 200,
    effect: "none",
  });
});

test.for(["application/json", "application/problem+json", "text/json", "application/vnd.api+json; charset=utf-8"])(
  "%s is read as JSON",
  async (type) => {
    const { result } = await answered((response) => send(response, type, "[1]"));
    expect(result?.value).toEqual([1]);
  },
);

test("the declared format counts more than the content type", async () => {
  const json = await answered((response) => send(response, "text/plain", '{"a":1}'), { format: "json" });
  expect(json.result?.value).toEqual({ a: 1 });
  const text = await answered((response) => send(response, "application/json", '{"a":1}'), { format: "text" });
  expect(text.result?.content).toEqual([{ type: "text", text: '{"a":1}' }]);
});

test("204 is success with an empty result, whatever its headers say [U-D01]", async () => {
  const respond = (response: ServerResponse): void => {
    response.writeHead(204, { "content-type": "application/json" }).end();
  };
  const { result } = await answered(respond, { keys: { method: "DELETE" }, format: "json" });
  expect(result).toEqual({ content: [], upstreamCode: 204, effect: "committed" });
});

test.for([
  ["a 200 without a body", "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 0\r\n\r\n"],
  ["white space", "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n\r\n"],
  ["an empty coded body", "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n"],
] as const)("%s is success with an empty result [U-D01]", async ([, bytes]) => {
  const { result } = await answeredRaw(bytes, "keep");
  expect(result).toEqual({ content: [], upstreamCode: 200, effect: "none" });
});

test("the answer to HEAD has no body, whatever length it names", async () => {
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n";
  const { result } = await answeredRaw(head, "close", { keys: { method: "HEAD" } });
  expect(result).toEqual({ content: [], upstreamCode: 200, effect: "none" });
});

test("a web page where JSON is due is a failure with its title, not the page [U-D02]", async () => {
  const page = `<!doctype html><html><head><title>\n Sign  in &amp; go </title></head>${"<p>x</p>".repeat(10_000)}</html>`;
  const { result } = await answered((response) => send(response, "text/html; charset=utf-8", page), { format: "json" });
  expect(result?.failure).toEqual({
    reason: "UPSTREAM_BAD_RESPONSE",
    message:
      "order_status: the upstream's answer (HTTP 200) cannot be read: expected JSON, got a web page (text/html) titled " +
      '"Sign in &amp; go"; is a login or credential missing?',
    upstreamCode: 200,
    retryable: false,
    upstreamFault: true,
  });
});

test("a redirect is a failure that names neither host nor query of where it leads, and is not followed to another origin [U-D02, U-D07]", async () => {
  await using other = await startUpstream((response) => sendJson(response, 200, {}));
  const options: Partial<ToolOptions> = {
    keys: { auth: { header_name: "X-Api-Key", secret_ref: "KEY" } },
    environment: { KEY: "sk-live-0123456789abcdef" },
  };
  const { result } = await answered((response) => {
    response.writeHead(307, { location: `${other.origin}/login?token=sk-live-0123456789abcdef` }).end();
  }, options);
  expect(result?.failure).toMatchObject({
    reason: "UPSTREAM_STATUS",
    message: `order_status: the upstream redirects to another host (HTTP 307), and redirects to another origin are not followed`,
    upstreamCode: 307,
    retryable: false,
    upstreamFault: false,
  });
  expect(other.requests).toHaveLength(0);
});

test.for([
  ["gzip", gzipSync],
  ["x-gzip", gzipSync],
  ["br", brotliCompressSync],
  ["deflate", deflateSync],
  ["deflate", deflateRawSync],
  ["zstd", zstdCompressSync],
] as const)("a body in %s is decoded [U-D03]", async ([coding, compress]) => {
  const { result } = await answered((response) => {
    response.writeHead(200, { "content-type": "application/json", "content-encoding": coding });
    response.end(compress(Buffer.from('{"code":0}')));
  });
  expect(result?.value).toEqual({ code: 0 });
});

test("codings are undone in the order they were applied, and identity is none [U-D03]", async () => {
  const body = brotliCompressSync(gzipSync(Buffer.from('{"code":0}')));
  const { result } = await answered((response) => {
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip, identity, br" });
    response.end(body);
  });
  expect(result?.value).toEqual({ code: 0 });
});

test.for([
  ["gzip", Buffer.from('{"code":0}'), "its content-encoding says `gzip`, and its bytes are something else"],
  ["br", Buffer.from('{"code":0}'), "its content-encoding says `br`, and its bytes are something else"],
  [
    "gzip",
    gzipSync(Buffer.from('{"code":0}')).subarray(0, 20),
    "its content-encoding says `gzip`, and its bytes are something else",
  ],
  ["compress", Buffer.from("x"), "its content-encoding `compress` is unknown"],
  ["gzip,gzip,gzip,gzip", Buffer.from("x"), "it has 4 content codings"],
] as const)("a body that is not in the coding it names is a failure: %s [U-D03]", async ([coding, body, why]) => {
  const { result } = await answered((response) => {
    response.writeHead(200, { "content-type": "application/json", "content-encoding": coding });
    response.end(body);
  }, POST);
  expect(result).toMatchObject({
    effect: "committed",
    failure: { reason: "UPSTREAM_BAD_RESPONSE", upstreamFault: true },
  });
  expect(result?.failure?.message).toContain(why);
});

test.for([
  ["JSON", "application/json", '{"code":0,"data":{"a":1}}'],
  ["text", "text/plain", "half a sentence"],
] as const)("%s that ends before its length is never taken as whole [U-D04]", async ([, type, body]) => {
  const bytes = `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: 100\r\n\r\n${body}`;
  for (const end of ["close", "reset"] as const) {
    const read = await answeredRaw(bytes, end);
    expect(read.error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none" });
    expect(read.error?.message).toContain(`the answer was cut short after ${body.length} bytes of its body`);
    const write = await answeredRaw(bytes, end, POST);
    expect(write.error).toMatchObject({ reason: "UPSTREAM_ANSWER_LOST", effect: "unknown", retryable: false });
  }
});

test("a chunked body without its last chunk is cut short [U-D04]", async () => {
  const bytes =
    'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\na\r\n{"code":0}\r\n';
  for (const end of ["close", "reset"] as const)
    expect((await answeredRaw(bytes, end)).error?.reason).toBe("UPSTREAM_UNREACHABLE");
});

test("a body without a length ends with its connection, but not with a reset [U-D04]", async () => {
  const bytes = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{"code":0}';
  expect((await answeredRaw(bytes, "close")).result?.value).toEqual({ code: 0 });
  expect((await answeredRaw(bytes, "reset")).error?.reason).toBe("UPSTREAM_UNREACHABLE");
});

test.for([
  ["text/plain; charset=gbk", [0xb6, 0xa9, 0xb5, 0xa5], "订单"],
  ['text/plain; charset="GB2312"', [0xb6, 0xa9, 0xb5, 0xa5], "订单"],
  ["text/plain; format=flowed; Charset=Shift_JIS", [0x83, 0x65, 0x83, 0x58, 0x83, 0x67], "テスト"],
  ["text/plain; charset=iso-8859-1", [0x63, 0x61, 0x66, 0xe9], "café"],
  ["text/plain; charset=utf-16le", [0x61, 0x00, 0xac, 0x20], "a€"],
  ["text/plain", [0xef, 0xbb, 0xbf, 0x61], "a"],
] as const)("text is decoded by its charset: %s [U-D05]", async ([type, bytes, text]) => {
  const { result } = await answered((response) => send(response, type, Buffer.from(bytes)));
  expect(result?.content).toEqual([{ type: "text", text }]);
});

test("JSON is decoded by its charset, and an unknown one is a failure [U-D05]", async () => {
  const latin = Buffer.from('{"n":"caf\xe9"}', "latin1");
  const known = await answered((response) => send(response, "application/json; charset=iso-8859-1", latin));
  expect(known.result?.value).toEqual({ n: "café" });
  const marked = await answered((response) => send(response, "application/json", "\ufeff[1]"));
  expect(marked.result?.value).toEqual([1]);
  const unknown = await answered((response) => send(response, "application/json; charset=klingon", latin));
  expect(unknown.result?.failure?.message).toContain("its charset `klingon` is unknown");
});

test("an answer over the limit ends the call and closes the connection, with and without a length [U-D06]", async () => {
  const limit = 256 * 1024;
  for (const length of [8 * 1024 * 1024, undefined]) {
    await using upstream = await startUpstream((response) => {
      response.writeHead(200, {
        "content-type": "application/json",
        ...(length === undefined ? {} : { "content-length": length }),
      });
      const block = Buffer.alloc(64 * 1024, " ");
      const more = (): void => {
        while (!response.destroyed && response.write(block));
      };
      response.on("drain", more);
      more();
    });
    await using tool = await openTool({ keys: { endpoint: upstream.origin, method: "POST" }, maxResponseBytes: limit });
    const outcomes = await Promise.all([call(tool), call(tool), call(tool), call(tool)]);
    for (const { error } of outcomes) {
      expect(error).toMatchObject({ reason: "RESULT_TOO_LARGE", effect: "committed" });
      expect(error?.message).toContain(`larger than the limit of ${limit} bytes`);
    }
    await Promise.all(upstream.sockets.map(closed));
  }
});

test("an answer that announces more than the limit is not waited for [U-D06]", async () => {
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2147483648\r\n\r\n";
  expect((await answeredRaw(head, "keep")).error?.reason).toBe("RESULT_TOO_LARGE");
});

test("the limit is for what comes out of the decompression", async () => {
  const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024));
  const { error } = await answered((response) => {
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
    response.end(bomb);
  });
  expect(error?.reason).toBe("RESULT_TOO_LARGE");
});

test("binary content is a blob, and text of any kind is text", async () => {
  const bytes = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0]);
  const image = await answered((response) => send(response, "image/png", bytes));
  expect(image.result?.content).toEqual([{ type: "blob", mimeType: "image/png", data: bytes }]);
  for (const type of ["text/csv", "application/xml", "application/atom+xml", "image/svg+xml", "application/yaml"]) {
    const text = await answered((response) => send(response, type, "a,b"));
    expect(text.result?.content).toEqual([{ type: "text", text: "a,b" }]);
  }
});

test("without a content type the bytes tell", async () => {
  const untyped = (body: string | Uint8Array) => (response: ServerResponse) => void response.end(body);
  expect((await answered(untyped("订单"))).result?.content).toEqual([{ type: "text", text: "订单" }]);
  const binary = await answered(untyped(Buffer.from([0, 1, 2, 255])));
  expect(binary.result?.content).toMatchObject([{ type: "blob", mimeType: "application/octet-stream" }]);
});

test("conclusive delivery of a stream is its text [S2-70]", async () => {
  const events = await answered((response) =>
    send(response, "text/event-stream", "data: a\n\n: c\n\ndata: b\ndata: c\n\n"),
  );
  expect(events.result?.content).toEqual([{ type: "text", text: "a\nb\nc\n" }]);
  const lines = await answered((response) => send(response, "application/x-ndjson", '{"a":1}\n\n{"a":2}'));
  expect(lines.result?.content).toEqual([{ type: "text", text: '{"a":1}\n{"a":2}\n' }]);
});

test("broken JSON is a failure", async () => {
  const { result } = await answered((response) => sendJson(response, 200, '{"half": '));
  expect(result?.failure).toMatchObject({ reason: "UPSTREAM_BAD_RESPONSE", upstreamCode: 200 });
  expect(result?.failure?.message).toContain("expected JSON, got broken JSON (application/json)");
});

test("JSON nested too deep is a failure [X-D06]", async () => {
  const { result } = await answered((response) => sendJson(response, 200, "[".repeat(100_000) + "]".repeat(100_000)));
  expect(result?.failure?.reason).toBe("UPSTREAM_BAD_RESPONSE");
});

test.for([
  [400, "UPSTREAM_STATUS", false, false, "none"],
  [401, "UPSTREAM_UNAUTHORIZED", false, false, "none"],
  [403, "UPSTREAM_UNAUTHORIZED", false, false, "none"],
  [404, "UPSTREAM_STATUS", false, false, "none"],
  [408, "UPSTREAM_STATUS", true, true, "none"],
  [409, "UPSTREAM_STATUS", false, false, "none"],
  [429, "UPSTREAM_RATE_LIMITED", true, false, "none"],
  [500, "UPSTREAM_STATUS", false, true, "unknown"],
  [501, "UPSTREAM_STATUS", false, true, "none"],
  [503, "UPSTREAM_STATUS", false, true, "unknown"],
] as const)("HTTP %i of a write is a failure that says who is at fault and what may have happened", async (row) => {
  const [status, reason, retryable, upstreamFault, effect] = row;
  const { result } = await answered((response) => sendJson(response, status, { message: "no such order" }), POST);
  expect(result).toMatchObject({ content: [], upstreamCode: status, effect });
  expect(result?.failure).toMatchObject({ reason, retryable, upstreamFault, upstreamCode: status });
  expect(result?.failure?.message).toMatch(new RegExp(`^order_status: .*HTTP ${status}\\)?: no such order$`));
});

test("HTTP 503 of a read has no effect and may work later", async () => {
  const { result } = await answered((response) => sendJson(response, 503, {}));
  expect(result).toMatchObject({ effect: "none", failure: { retryable: true } });
});

test.for([
  [{ message: "m", error: "e" }, "m"],
  [{ error: { message: "inner" } }, "inner"],
  [{ error: "invalid_grant", error_description: "token expired" }, "token expired"],
  [{ errors: [{ detail: "first" }, { detail: "second" }] }, "first"],
  [{ type: "about:blank", title: "Not Found", detail: "order 7 is gone" }, "order 7 is gone"],
  [{ title: "Not Found" }, "Not Found"],
  ["just text", "just text"],
] as const)("the upstream's own words are found in %j", async ([body, words]) => {
  const { result } = await answered((response) => sendJson(response, 404, JSON.stringify(body)));
  expect(result?.failure?.message).toBe(`order_status: the upstream answered HTTP 404: ${words}`);
});

test("the upstream's own words are one line of at most 500 characters, a page's only its title", async () => {
  const long = await answered((response) => sendJson(response, 500, { message: `a\r\n\u0007b ${"😀".repeat(600)}` }));
  const words = long.result?.failure?.message.split("HTTP 500: ")[1] ?? "";
  expect(words.startsWith("a b 😀")).toBe(true);
  expect(Array.from(words)).toHaveLength(501);
  const page = await answered((response) => {
    response
      .writeHead(502, { "content-type": "text/html" })
      .end("<html><title>Bad gateway</title><body>internals</body></html>");
  });
  expect(page.result?.failure?.message).toBe("order_status: the upstream answered HTTP 502: Bad gateway");
  const plain = await answered((response) => {
    response.writeHead(409, { "content-type": "text/plain" }).end("Conflict\n");
  });
  expect(plain.result?.failure?.message).toBe("order_status: the upstream answered HTTP 409: Conflict");
});

test("only the beginning of an error page is read", async () => {
  const { result } = await answered((response) => {
    response.writeHead(500, { "content-type": "application/json" });
    response.end(`{"message":"no","rest":"${"x".repeat(4 * 1024 * 1024)}"}`);
  });
  expect(result?.failure).toMatchObject({ message: "order_status: the upstream answered HTTP 500", upstreamCode: 500 });
});

test("a failure in an odd charset or coding still tells its status", async () => {
  for (const headers of [{ "content-type": "text/plain; charset=klingon" }, { "content-encoding": "lzma" }]) {
    const { result } = await answered((response) => void response.writeHead(404, headers).end("x"));
    expect(result?.failure?.reason).toBe("UPSTREAM_STATUS");
  }
});

test.for([
  ["2", "; retry after 2 s", 2_000],
  ["Thu, 01 Jan 2026 00:00:05 GMT", "; retry after 5 s", 5_000],
  ["Thu, 01 Jan 1970 00:00:00 GMT", "; retry after 0 s", 0],
  ["soon", "", undefined],
  ["-1", "", undefined],
  ["1.5", "", undefined],
  ["9".repeat(400), "", undefined],
] as const)("Retry-After %s is told in seconds, and handed on [U-D09]", async ([header, hint, waitMs]) => {
  const clock = createFakeClock(Date.UTC(2026, 0, 1));
  const { result } = await answered((response) => void response.writeHead(429, { "retry-after": header }).end(), {
    clock,
  });
  expect(result?.failure?.message).toBe(`order_status: the upstream asks to slow down (HTTP 429)${hint}`);
  expect(result?.failure?.retryAfterMs).toBe(waitMs);
});

test("hints count more than the method for what a call may have changed", async () => {
  const get = await answered((response) => sendJson(response, 200, {}), { hints: { readOnly: false } });
  expect(get.result?.effect).toBe("committed");
  const post = await answered((response) => sendJson(response, 200, {}), { ...POST, hints: { readOnly: true } });
  expect(post.result?.effect).toBe("none");
});

test("early hints before the answer are passed over", async () => {
  const bytes =
    "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
  expect((await answeredRaw(bytes, "keep")).result?.value).toEqual({});
});

test.for([
  ["no HTTP at all", "220 smtp ready\r\n", "sent what is not HTTP/1.1"],
  ["endless headers", `HTTP/1.1 200 OK\r\n${"x: y\r\n".repeat(40_000)}\r\n`, "has too large headers"],
] as const)("%s is no answer", async ([, bytes, words]) => {
  const read = await answeredRaw(bytes, "keep");
  expect(read.error?.reason).toBe("UPSTREAM_UNREACHABLE");
  expect(read.error?.message).toContain(words);
  expect((await answeredRaw(bytes, "keep", POST)).error).toMatchObject({
    reason: "UPSTREAM_ANSWER_LOST",
    effect: "unknown",
  });
});

test("a connection closed before the answer loses it", async () => {
  for (const end of ["close", "reset"] as const) {
    expect((await answeredRaw("", end)).error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none" });
    const { error } = await answeredRaw("", end, POST);
    expect(error).toMatchObject({ reason: "UPSTREAM_ANSWER_LOST", effect: "unknown" });
    expect(error?.modelMessage).toBe(
      "order_status: the upstream closed the connection before it answered; the request may have taken effect: find out before calling again",
    );
  }
});
