import { expect, test } from "vitest";
import { GatewayError } from "../../../src/core/errors.ts";
import { createFakeClock } from "../../core/fake-clock.ts";
import { closed, openTool, startJsonUpstream, startRawUpstream } from "./fixture.ts";

const { signal } = new AbortController();

test("a probe connects and makes no request", async () => {
  await using upstream = await startJsonUpstream();
  await using tool = await openTool({ keys: { endpoint: `${upstream.origin}/x`, method: "DELETE" } });
  const report = await tool.probe(signal);
  expect(report).toMatchObject({ ok: true, mend: "" });
  expect(report.message).toMatch(/^http:\/\/127\.0\.0\.1:\d+ accepts connections \(\d+ ms\)$/);
  await closed(upstream.sockets[0]);
  expect(upstream.requests).toHaveLength(0);
});

test("a probe says what refuses, and the mend", async () => {
  await using tool = await openTool({ keys: { endpoint: "http://127.0.0.1:1/x" } });
  expect(await tool.probe(signal)).toEqual({
    ok: false,
    message: "no connection to http://127.0.0.1:1: tried 127.0.0.1:1 ECONNREFUSED",
    mend: "Start the upstream, or correct the host and port of `endpoint`.",
  });
});

test("a probe of TLS needs an answer to its greeting, within timeout.connect", async () => {
  const clock = createFakeClock();
  await using upstream = await startRawUpstream(() => undefined);
  const endpoint = upstream.origin.replace("http:", "https:");
  await using tool = await openTool({ keys: { endpoint }, clock, timeouts: { connectMs: 700 } });
  const report = tool.probe(signal);
  await clock.advance(700);
  expect(await report).toMatchObject({ ok: false, message: `no connection to ${endpoint}: no answer within 700 ms` });
  expect(clock.pending).toBe(0);
});

test("a probe of TLS fails where plain HTTP answers", async () => {
  await using upstream = await startRawUpstream((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  await using tool = await openTool({ keys: { endpoint: upstream.origin.replace("http:", "https:") } });
  expect((await tool.probe(signal)).message).toContain("its TLS certificate or handshake is not accepted");
});

test("a probe ends with its signal", async () => {
  await using upstream = await startRawUpstream(() => undefined);
  await using tool = await openTool({ keys: { endpoint: upstream.origin.replace("http:", "https:") } });
  const controller = new AbortController();
  const report = tool.probe(controller.signal);
  const reason = new GatewayError("CALL_CANCELLED", "stopped");
  controller.abort(reason);
  await expect(report).rejects.toBe(reason);
  await expect(tool.probe(controller.signal)).rejects.toBe(reason);
});
