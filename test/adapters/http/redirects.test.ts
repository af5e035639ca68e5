import { expect, test } from "vitest";
import { GatewayError } from "../../../src/core/errors.ts";
import { createFakeClock } from "../../core/fake-clock.ts";
import { call, closed, openTool, sendJson, startUpstream, type ToolOptions } from "./fixture.ts";

const SECRET = "sk-live-0123456789abcdef";
const options: Omit<ToolOptions, "keys"> = { environment: { KEY: SECRET } };
const auth = { header_name: "X-Api-Key", secret_ref: "KEY" };

test.for([301, 302, 303, 307, 308])(
  "a GET follows a redirect (HTTP %i) within its origin, with its credential [U-D07]",
  async (status) => {
    await using upstream = await startUpstream((response, { target }) => {
      if (target === "/v1/o?a=1") response.writeHead(status, { location: "../v2/o?b=2#part" }).end("moved");
      else sendJson(response, 200, { code: 0 });
    });
    await using tool = await openTool({ ...options, keys: { endpoint: `${upstream.origin}/v1/o?a=1`, auth } });
    const { result, exchanges } = await call(tool, {}, { explain: true });
    expect(result).toMatchObject({ value: { code: 0 }, upstreamCode: 200, effect: "none" });
    expect(upstream.requests.map(({ method, target, headers }) => [method, target, headers["x-api-key"]])).toEqual([
      ["GET", "/v1/o?a=1", SECRET],
      ["GET", "/v2/o?b=2", SECRET],
    ]);
    expect(upstream.requests[1]?.headers).not.toHaveProperty("referer");
    expect(exchanges.map(({ url, status: shown }) => [url, shown])).toEqual([
      [`${upstream.origin}/v1/o?a=1`, status],
      [`${upstream.origin}/v2/o?b=2`, 200],
    ]);
    expect(upstream.sockets).toHaveLength(1);
  },
);

test("a HEAD stays a HEAD, and an absolute address of the same origin is the same origin", async () => {
  await using upstream = await startUpstream((response, { target, headers }) => {
    if (target === "/o") response.writeHead(302, { location: `http://${headers.host}/p` }).end();
    else response.writeHead(204).end();
  });
  await using tool = await openTool({ keys: { endpoint: `${upstream.origin}/o`, method: "HEAD" } });
  expect((await call(tool)).result?.upstreamCode).toBe(204);
  expect(upstream.requests.map(({ method, target }) => `${method} ${target}`)).toEqual(["HEAD /o", "HEAD /p"]);
});

test("no other origin ever sees a request or a credential [U-D07]", async () => {
  await using other = await startUpstream((response) => sendJson(response, 200, {}));
  let location = "";
  await using upstream = await startUpstream((response, { target }) => {
    response.writeHead(302, { location: target === "/o" ? "/hop" : location }).end();
  });
  await using tool = await openTool({ ...options, keys: { endpoint: `${upstream.origin}/o`, auth } });
  for (const [to, shown] of [
    [`${other.origin}/o?key=${SECRET}`, "another host"],
    [`//127.0.0.1:${other.port}/o`, "another host"],
    [`http://${new URL(upstream.origin).host}@127.0.0.1:${other.port}/o`, "another host"],
    [upstream.origin.replace("http:", "https:"), "another host"],
    [upstream.origin.replace("127.0.0.1", "localhost"), "another host"],
    ["file:///etc/passwd", "a file: address"],
    ["http://[", "an address that is no URL"],
  ] as const) {
    location = to;
    expect((await call(tool)).result?.failure).toMatchObject({
      reason: "UPSTREAM_STATUS",
      message: `order_status: the upstream redirects to ${shown} (HTTP 302), and redirects to another origin are not followed`,
    });
  }
  expect(other.requests).toHaveLength(0);
});

test("at most five redirects are followed", async () => {
  await using upstream = await startUpstream((response, { target }) => {
    response.writeHead(307, { location: `/${Number(target.slice(1)) + 1}` }).end();
  });
  await using tool = await openTool({ keys: { endpoint: `${upstream.origin}/0` } });
  const { result, exchanges } = await call(tool, {}, { explain: true });
  expect(result?.failure?.message).toBe(
    `order_status: the upstream redirects to /6 (HTTP 307), and no more than 5 redirects are followed`,
  );
  expect(upstream.requests).toHaveLength(6);
  expect(exchanges).toHaveLength(6);
});

test("a call that may change something is not sent again, and `redirects: none` follows nothing", async () => {
  await using upstream = await startUpstream((response) => response.writeHead(307, { location: "/login" }).end());
  const where = `order_status: the upstream redirects to /login (HTTP 307), and`;
  for (const [keys, hints, why] of [
    [{ method: "POST" }, {}, "a POST that may change something is not sent again"],
    [{ method: "GET" }, { readOnly: false }, "a GET that may change something is not sent again"],
    [{ redirects: "none" }, {}, "redirects are not followed"],
  ] as const) {
    await using tool = await openTool({ keys: { endpoint: `${upstream.origin}/o`, ...keys }, hints });
    expect((await call(tool)).result?.failure?.message).toBe(`${where} ${why}`);
  }
  expect(upstream.requests.map(({ target }) => target)).toEqual(["/o", "/o", "/o"]);
});

test("each request of a redirected call is signed for its own path", async () => {
  await using upstream = await startUpstream((response, { target }) => {
    if (target === "/a") response.writeHead(302, { location: "/b" }).end();
    else sendJson(response, 200, {});
  });
  const signing = { algorithm: "hmac-sha256", secret_ref: "KEY", header_name: "X-Sign", content: "{path}" };
  await using tool = await openTool({ ...options, keys: { endpoint: `${upstream.origin}/a`, signing } });
  await call(tool);
  const signatures = upstream.requests.map(({ headers }) => headers["x-sign"]);
  expect(signatures).toHaveLength(2);
  expect(new Set(signatures).size).toBe(2);
});

test("the limits of time count for a redirected request too, and its signal ends it", async () => {
  await using upstream = await startUpstream((response, { target }) => {
    if (target === "/o") response.writeHead(302, { location: "/slow" }).end();
  });
  const clock = createFakeClock();
  await using tool = await openTool({ keys: { endpoint: `${upstream.origin}/o` }, clock, timeouts: { readMs: 700 } });
  const slow = async (): Promise<void> => {
    while ((await upstream.nextRequest()).target !== "/slow");
  };
  const controller = new AbortController();
  const stop = (): Promise<void> => Promise.resolve(controller.abort(new GatewayError("CALL_CANCELLED", "stopped")));
  for (const [end, reason] of [
    [() => clock.advance(700), "UPSTREAM_TIMEOUT"],
    [stop, "CALL_CANCELLED"],
  ] as const) {
    const arrived = slow();
    const outcome = call(tool, {}, { signal: controller.signal });
    await arrived;
    await end();
    expect((await outcome).error?.reason).toBe(reason);
  }
  for (const socket of upstream.sockets) await closed(socket);
  expect(clock.pending).toBe(0);
});
