import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { UpstreamEvent } from "../../../src/core/call.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { createFakeClock } from "../../core/fake-clock.ts";
import {
  call,
  closed,
  invoke,
  openTool,
  send,
  sendJson,
  startRawUpstream,
  startUpstream,
  type ToolOptions,
} from "./fixture.ts";

/** One call of a streaming tool whose upstream answers so. */
async function streamed(respond: (response: ServerResponse) => void, options: Partial<ToolOptions> = {}) {
  await using upstream = await startUpstream(respond);
  const keys = { endpoint: upstream.origin, ...options.keys };
  await using tool = await openTool({ ...options, keys, delivery: "incremental" });
  return await call(tool);
}

/** Sends a body in pieces of so many bytes, each in its own packet. */
async function sendInPieces(
  response: ServerResponse,
  type: string,
  body: string | Buffer,
  size: number,
): Promise<void> {
  response.writeHead(200, { "content-type": type });
  const bytes = Buffer.from(body);
  for (let at = 0; at < bytes.length; at += size) {
    await new Promise((resolve) => response.write(bytes.subarray(at, at + size), resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.end();
}

test("server-sent events arrive as their data, cut anywhere [U-D10]", async () => {
  const body = ': hi\r\nevent: m\r\ndata: {"a":\r\ndata: 1}\r\n\r\n:ping\r\nid: 7\r\nretry: 10\r\ndata:x\r\n\r\n';
  for (const size of [1, 3, 1000]) {
    const { deltas, result } = await streamed(
      (response) => void sendInPieces(response, "text/event-stream", body, size),
    );
    expect(deltas).toEqual(['{"a":\n1}\n', "x\n"]);
    expect(result).toEqual({ content: [], upstreamCode: 200, effect: "none" });
  }
});

test("NDJSON arrives line by line, cut anywhere", async () => {
  const body = '{"a":"订单"}\r\n\n{"b":2}\n{"c":3}';
  for (const size of [1, 2, 1000]) {
    const { deltas } = await streamed((response) => void sendInPieces(response, "application/x-ndjson", body, size));
    expect(deltas).toEqual(['{"a":"订单"}\n', '{"b":2}\n', '{"c":3}\n']);
  }
});

test("other text arrives as it comes, in whole characters of its charset", async () => {
  const text = "订单 😀 é";
  for (const size of [1, 2, 3]) {
    const { deltas, result } = await streamed((response) => void sendInPieces(response, "text/plain", text, size));
    expect(deltas.every((delta) => delta.isWellFormed() && delta !== "")).toBe(true);
    expect(deltas.join("")).toBe(text);
    expect(result?.content).toEqual([]);
  }
  const gbk = Buffer.from([0xb6, 0xa9, 0xb5, 0xa5]);
  const decoded = await streamed((response) => void sendInPieces(response, "text/plain; charset=gbk", gbk, 1));
  expect(decoded.deltas.join("")).toBe("订单");
});

test("a compressed stream is decoded", async () => {
  const { deltas } = await streamed((response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" });
    response.end(gzipSync("data: a\n\ndata: b\n\n"));
  });
  expect(deltas).toEqual(["a\n", "b\n"]);
});

test("the first piece is given on while the upstream still works [S2-16, S2-68, S2-70]", async () => {
  let finish: (() => void) | undefined;
  await using upstream = await startUpstream((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: first\n\n");
    finish = () => response.end("data: last\n\n");
  });
  await using tool = await openTool({ keys: { endpoint: upstream.origin }, delivery: "incremental" });
  const events = invoke(tool)[Symbol.asyncIterator]();
  expect((await events.next()).value).toEqual({ type: "upstream-delta", text: "first\n" });
  finish?.();
  expect((await events.next()).value).toEqual({ type: "upstream-delta", text: "last\n" });
  expect((await events.next()).value).toMatchObject({ type: "upstream-result" });
  expect((await events.next()).done).toBe(true);
});

test("a long event comes in pieces small enough for one message", async () => {
  const data = "😀".repeat(50_000);
  const { deltas } = await streamed((response) => send(response, "text/event-stream", `data: ${data}\n\n`));
  expect(deltas.join("")).toBe(`${data}\n`);
  expect(deltas.every((delta) => delta.isWellFormed() && Buffer.byteLength(delta) <= 64 * 1024)).toBe(true);
});

test("one JSON value makes no sense in pieces and comes as the result", async () => {
  const { deltas, result } = await streamed((response) => sendJson(response, 200, { a: 1 }));
  expect(deltas).toEqual([]);
  expect(result?.value).toEqual({ a: 1 });
  const asText = await streamed((response) => sendJson(response, 200, { a: 1 }), { format: "text" });
  expect(asText.deltas).toEqual(['{"a":1}']);
  const binary = await streamed((response) => send(response, "image/png", Buffer.from([1, 2])));
  expect(binary.result?.content).toMatchObject([{ type: "blob", mimeType: "image/png" }]);
});

test("a stream that is refused is a failure without deltas", async () => {
  const { deltas, result } = await streamed((response) => sendJson(response, 503, { message: "busy" }));
  expect(deltas).toEqual([]);
  expect(result?.failure).toMatchObject({ reason: "UPSTREAM_STATUS", upstreamCode: 503 });
});

test("a stream that is cut gives what came and ends with an error [U-D04]", async () => {
  const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
  for (const method of ["GET", "POST"]) {
    await using upstream = await startRawUpstream((socket) => {
      socket.write(`${head}9\r\ndata: a\n\n\r\n7\r\ndata: b\r\n`, () => socket.end());
    });
    await using tool = await openTool({ keys: { endpoint: upstream.origin, method }, delivery: "incremental" });
    const { deltas, result, error } = await call(tool);
    expect(deltas).toEqual(["a\n"]);
    expect(result).toBeUndefined();
    expect(error?.reason).toBe(method === "GET" ? "UPSTREAM_UNREACHABLE" : "UPSTREAM_ANSWER_LOST");
  }
});

test("a stream in a broken coding gives what came and ends as a failure", async () => {
  const { result } = await streamed((response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "content-encoding": "br" });
    response.end("data: a\n\n");
  });
  expect(result?.failure?.reason).toBe("UPSTREAM_BAD_RESPONSE");
});

test.for(["text/event-stream", "application/x-ndjson"])("one event or line has a limit: %s", async (type) => {
  await using upstream = await startUpstream((response) => {
    response.writeHead(200, { "content-type": type });
    const more = (): void => {
      while (!response.destroyed && response.write("x".repeat(64 * 1024)));
    };
    response.write("data: ");
    response.on("drain", more);
    more();
  });
  await using tool = await openTool({ keys: { endpoint: upstream.origin }, delivery: "incremental" });
  const { error } = await call(tool);
  expect(error).toMatchObject({ reason: "RESULT_TOO_LARGE", effect: "none" });
  expect(error?.message).toBe(
    "order_status: one line of the upstream's answer is longer than the limit of 1048576 characters",
  );
  await closed(upstream.sockets[0]);
});

test("a slow reader slows the upstream down, and nothing is lost [G-D08]", { timeout: 180_000 }, async () => {
  let written = 0;
  await using upstream = await startUpstream((response) => {
    response.writeHead(200, { "content-type": "text/plain" });
    const more = (): void => {
      // Numbered blocks of 64 KiB: 1 GiB in all.
      while (!response.destroyed && written < 16_384) {
        const block = String(written).padStart(64 * 1024);
        written += 1;
        if (!response.write(block)) return;
      }
    };
    response.on("drain", more);
    more();
  });
  await using tool = await openTool({ keys: { endpoint: upstream.origin }, delivery: "incremental" });
  const events = invoke(tool)[Symbol.asyncIterator]();
  let text = "";
  const take = async (): Promise<void> => {
    const { value } = await events.next();
    const event = value as UpstreamEvent;
    if (event.type === "upstream-delta") text += event.text;
  };
  await take();
  // As much time as the buffers on the way need to fill up.
  let before = -1;
  while (written !== before) {
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  expect(written * 64).toBeLessThan(16 * 1024);
  for (let i = 0; i < 40; i++) await take();
  const numbers = text.match(/\d+/g)?.map(Number) ?? [];
  expect(numbers.length).toBeGreaterThan(1);
  expect(numbers).toEqual(numbers.map((_, i) => i));
  await events.return?.();
  await closed(upstream.sockets[0]);
});

test("a call that was cancelled gives nothing on that had come already", async () => {
  await using upstream = await startUpstream((response) =>
    send(response, "text/event-stream", "data: x\n\n".repeat(100)),
  );
  await using tool = await openTool({ keys: { endpoint: upstream.origin }, delivery: "incremental" });
  const controller = new AbortController();
  const events = invoke(tool, {}, { signal: controller.signal })[Symbol.asyncIterator]();
  expect((await events.next()).value).toEqual({ type: "upstream-delta", text: "x\n" });
  controller.abort(new GatewayError("CALL_CANCELLED", "cancelled"));
  await expect(events.next()).rejects.toMatchObject({ reason: "CALL_CANCELLED" });
});

test("time the reader takes does not count as silence of the upstream", async () => {
  const clock = createFakeClock();
  await using upstream = await startUpstream((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end("data: a\n\ndata: b\n\ndata: c\n\n");
  });
  const tool = await openTool({
    keys: { endpoint: upstream.origin },
    clock,
    delivery: "incremental",
    timeouts: { idleMs: 400 },
  });
  const texts: string[] = [];
  for await (const event of invoke(tool)) {
    if (event.type !== "upstream-delta") continue;
    texts.push(event.text);
    await clock.advance(500);
  }
  expect(texts).toEqual(["a\n", "b\n", "c\n"]);
  await tool[Symbol.asyncDispose]();
});
