import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { GatewayError } from "../../../src/core/errors.ts";
import { createFakeClock } from "../../core/fake-clock.ts";
import { call, invoke, openTool, problemsOf, sendJson, sent, startRawUpstream, startUpstream } from "./fixture.ts";

const HEADER = "x-request-timeout-ms";

/** What an upstream is told of a call that has 12,345.5 ms left. */
async function told(keys: Readonly<Record<string, string | Record<string, string>>>, environment = {}) {
  const clock = createFakeClock();
  const options = { keys: { endpoint: "/orders?a=1", ...keys }, clock, environment };
  const { request, error } = await sent(options, {}, { deadlineMs: clock.now() + 12_345.5 });
  expect(error).toBeUndefined();
  return request?.headers ?? {};
}

test("the upstream is told how many milliseconds are left of the call", async () => {
  expect((await told({}))[HEADER]).toBe("12346");
});

test("the header has another name where one is declared, and none where that says so", async () => {
  const other = await told({ deadline_header: "X-Time-Left" });
  expect([other["x-time-left"], other[HEADER]]).toEqual(["12346", undefined]);
  expect(Object.keys(await told({ deadline_header: "none" }))).not.toContain(HEADER);
});

test("a declaration that sets the header itself is left alone, unless it asks for both", async () => {
  expect((await told({ headers: { "X-Request-Timeout-Ms": "77" } }))[HEADER]).toBe("77");
  const auth = { header_name: HEADER, secret_ref: "TOKEN" };
  expect((await told({ auth }, { TOKEN: "t0k3n-0123456789" }))[HEADER]).toBe("t0k3n-0123456789");
  const both = { endpoint: "http://127.0.0.1/", headers: { "X-Left": "1" }, deadline_header: "x-left" };
  expect(problemsOf({ keys: both })).toEqual([
    "/deadline_header header `x-left` is set twice; names do not differ by case",
  ]);
  expect(problemsOf({ keys: { endpoint: "http://127.0.0.1/", deadline_header: "Host" } })).toEqual([
    "/deadline_header header `Host` is set by the gateway and cannot be declared",
  ]);
});

test("a signature is the same with the header and without it", async () => {
  const signing = {
    algorithm: "hmac-sha256",
    secret_ref: "KEY",
    header_name: "X-Signature",
    content: "{method}\n{path}\n{query}\n{body}",
  };
  const headers = await told({ signing }, { KEY: "k3y-0123456789" });
  expect(headers["x-signature"]).toBe(
    createHmac("sha256", "k3y-0123456789").update("GET\n/orders\na=1\n").digest("hex"),
  );
  expect(headers[HEADER]).toBe("12346");
});

test("a request that is sent again for a redirect says what is left then", async () => {
  const clock = createFakeClock();
  await using upstream = await startUpstream((response, { target }) => {
    void clock.advance(1_000).then(() => {
      if (target === "/new") sendJson(response, 200, {});
      else response.writeHead(302, { location: "/new" }).end();
    });
  });
  await using tool = await openTool({ keys: { endpoint: `${upstream.origin}/old` }, clock });
  await call(tool, {}, { deadlineMs: clock.now() + 5_000 });
  expect(upstream.requests.map(({ headers }) => headers[HEADER])).toEqual(["5000", "4000"]);
});

test("what is nearly over is told as one millisecond, never as none", async () => {
  const clock = createFakeClock();
  const { request } = await sent({ keys: { endpoint: "/" }, clock }, {}, { deadlineMs: clock.now() });
  expect(request?.headers[HEADER]).toBe("1");
});

test.each([
  ["read", ""],
  ["idle", "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\n12"],
])("a deadline that passes says that the time went to `%s`", async (phase, beginning) => {
  const asked = Promise.withResolvers<void>();
  await using upstream = await startRawUpstream((socket) => {
    socket.write(beginning, () => asked.resolve());
  });
  const keys = { endpoint: `${upstream.origin}/`, method: "POST" };
  await using tool = await openTool({ keys, delivery: "incremental" });
  const controller = new AbortController();
  const events = invoke(tool, {}, { signal: controller.signal })[Symbol.asyncIterator]();
  const first = events.next();
  await (phase === "idle" ? first : asked.promise);
  const ended = phase === "idle" ? events.next() : first;
  const metadata = { limit: "tool" };
  controller.abort(new GatewayError("CALL_DEADLINE_EXCEEDED", "the call took longer than 1 ms", { metadata }));
  await expect(ended).rejects.toMatchObject({
    reason: "CALL_DEADLINE_EXCEEDED",
    effect: "unknown",
    retryable: false,
    metadata: { limit: "tool", phase },
  });
});

test("a deadline that has passed before anything was sent says that the time went to `connect`", async () => {
  await using upstream = await startUpstream((response) => sendJson(response, 200, {}));
  await using tool = await openTool({ keys: { endpoint: `${upstream.origin}/` } });
  const signal = AbortSignal.abort(new GatewayError("CALL_DEADLINE_EXCEEDED", "late", { metadata: { limit: "rpc" } }));
  const events = invoke(tool, {}, { signal })[Symbol.asyncIterator]();
  await expect(events.next()).rejects.toMatchObject({ effect: "none", metadata: { limit: "rpc", phase: "connect" } });
  expect(upstream.requests).toEqual([]);
});
