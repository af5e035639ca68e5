import { inspect } from "node:util";
import { expect, test } from "vitest";
import {
  call,
  openTool,
  sendJson,
  startJsonUpstream,
  startRawUpstream,
  startUpstream,
  type ToolOptions,
} from "./fixture.ts";

const SECRET = "sk-live-0123456789+/abcdef";
const auth = { header_name: "Authorization", secret_ref: "ORDER_API_TOKEN", prefix: "Bearer" };
const environment = { ORDER_API_TOKEN: SECRET };

/** Options of a tool with a secret. */
function secretTool(endpoint: string, options: Partial<ToolOptions> = {}): ToolOptions {
  return { environment, ...options, keys: { endpoint, auth, ...options.keys } };
}

function expectNoSecret(value: unknown): void {
  const text = inspect(value, { depth: 20, maxStringLength: null, showHidden: true });
  for (const form of [SECRET, encodeURIComponent(SECRET), Buffer.from(SECRET).toString("base64")]) {
    expect(text).not.toContain(form);
  }
}

test("a missing secret makes the tool unavailable and its calls fail, naming the reference [T-D07]", async () => {
  await using upstream = await startJsonUpstream();
  for (const value of [undefined, "", "  "]) {
    await using tool = await openTool(secretTool(upstream.origin, { environment: { ORDER_API_TOKEN: value } }));
    expect(tool.availability()).toEqual({
      state: "unavailable",
      reason: "secret ORDER_API_TOKEN is not set",
      mend: "Set the environment variable ORDER_API_TOKEN where the gateway is started.",
    });
    const { error } = await call(tool);
    expect(error).toMatchObject({ reason: "SECRET_MISSING", effect: "none", metadata: { secret: "ORDER_API_TOKEN" } });
    expect(error?.message).toBe("order_status: secret ORDER_API_TOKEN is not set; the upstream was not reached");
    expect(error?.modelMessage).not.toContain("ORDER_API_TOKEN");
  }
  expect(upstream.requests).toHaveLength(0);
});

test("a secret that comes, changes or goes is in force at the next call, and the registry is told [T-D07]", async () => {
  await using upstream = await startJsonUpstream();
  const changing: Record<string, string | undefined> = {};
  let changes = 0;
  const changed = (): void => {
    changes += 1;
  };
  await using tool = await openTool(secretTool(upstream.origin, { environment: changing, changed }));
  changing["ORDER_API_TOKEN"] = "first";
  expect((await call(tool)).error).toBeUndefined();
  expect(tool.availability()).toEqual({ state: "ready", reason: "" });
  expect(changes).toBe(1);
  changing["ORDER_API_TOKEN"] = "second";
  expect((await call(tool)).error).toBeUndefined();
  expect(changes).toBe(1);
  delete changing["ORDER_API_TOKEN"];
  expect(tool.availability().state).toBe("unavailable");
  expect(changes).toBe(1);
  await Promise.resolve();
  expect(changes).toBe(2);
  expect(upstream.requests.map((request) => request.headers.authorization)).toEqual(["Bearer first", "Bearer second"]);
});

test.for(["constructor", "__proto__", "toString"])("`%s` is no secret that is always set", async (secretRef) => {
  const keys = { auth: { header_name: "X-Key", secret_ref: secretRef } };
  await using tool = await openTool(secretTool("http://127.0.0.1:1", { keys }));
  expect(tool.availability().state).toBe("unavailable");
});

test("a secret that no header can carry is refused without being shown", async () => {
  await using upstream = await startJsonUpstream();
  const broken = { ORDER_API_TOKEN: `${SECRET}\r\nX-Admin: 1` };
  await using tool = await openTool(secretTool(upstream.origin, { environment: broken }));
  const { error } = await call(tool);
  expect(error?.message).toContain("secret ORDER_API_TOKEN holds a line break");
  expectNoSecret(error);
  expect(upstream.requests).toHaveLength(0);
});

test("no error holds the secret, whatever the upstream does [K-D01]", async () => {
  const outcomes = [];
  await using failing = await startUpstream((response) => sendJson(response, 500, {}));
  await using broken = await startUpstream((response) => sendJson(response, 200, "{"));
  await using gone = await startRawUpstream((socket) => socket.resetAndDestroy());
  await using silent = await startRawUpstream(() => undefined);
  for (const { origin } of [failing, broken, gone, silent]) {
    for (const method of ["GET", "POST"]) {
      await using tool = await openTool(secretTool(origin, { keys: { method }, timeouts: { readMs: 50 } }));
      outcomes.push(await call(tool, {}, { explain: true }));
    }
  }
  await using tool = await openTool(secretTool("http://127.0.0.1:1"));
  outcomes.push(
    await call(tool, {}, { explain: true }),
    await tool.probe(new AbortController().signal),
    tool.availability(),
  );
  expect(outcomes).toHaveLength(11);
  expectNoSecret(outcomes);
});

test("an explained call shows what was sent and got, with secrets masked [K-D01, K-D05]", async () => {
  await using upstream = await startUpstream((response, { headers }) => {
    response.setHeader("set-cookie", "session=1");
    response.setHeader("x-echo", `got ${headers.authorization}`);
    sendJson(response, 201, {});
  });
  const keys = { method: "POST", headers: { "X-Api-Key": "hard-coded", "X-Name": "订单" }, body: { note: "$note" } };
  const options = secretTool(`${upstream.origin}/o?key={key}`, { keys, params: { key: {}, note: {} } });
  await using tool = await openTool(options);
  const { exchange } = await call(tool, { key: SECRET, note: `is ${SECRET}` }, { explain: true });
  expect(exchange).toMatchObject({
    method: "POST",
    url: `${upstream.origin}/o?key=***`,
    requestBody: '{"note":"is ***"}',
    status: 201,
    firstByteMs: expect.any(Number),
  });
  expect(exchange?.requestHeaders).toEqual([
    ["user-agent", expect.stringContaining("toolgate/")],
    ["accept", "application/json, */*;q=0.5"],
    ["x-api-key", "***"],
    ["x-name", "订单"],
    ["content-type", "application/json"],
    ["authorization", "Bearer ***"],
  ]);
  expect(exchange?.responseHeaders).toEqual(
    expect.arrayContaining([
      ["set-cookie", "***"],
      ["x-echo", "got Bearer ***"],
    ]),
  );
  expectNoSecret(exchange);
});

test("a short secret is masked in its header, and tears no other word apart", async () => {
  await using upstream = await startJsonUpstream();
  const options = secretTool(`${upstream.origin}/origin`, { environment: { ORDER_API_TOKEN: "ori" } });
  await using tool = await openTool(options);
  const { exchange } = await call(tool, {}, { explain: true });
  expect(exchange?.url).toBe(`${upstream.origin}/origin`);
  expect(exchange?.requestHeaders.at(-1)).toEqual(["authorization", "Bearer ***"]);
});

test("an explained call without an answer shows what was sent", async () => {
  await using gone = await startRawUpstream((socket) => socket.resetAndDestroy());
  await using tool = await openTool(secretTool(gone.origin));
  const { exchange, error } = await call(tool, {}, { explain: true });
  expect(error?.reason).toBe("UPSTREAM_UNREACHABLE");
  expect(exchange).toMatchObject({ method: "GET", url: `${gone.origin}/`, status: undefined, responseHeaders: [] });
});

test("an explained check shows what would be sent, at most 8,192 characters of its body", async () => {
  const options = secretTool("http://127.0.0.1:1/o", { keys: { method: "POST" }, params: { note: {} } });
  await using tool = await openTool(options);
  const { exchange, result } = await call(tool, { note: "😀".repeat(9_000) }, { explain: true, validateOnly: true });
  expect(result).toEqual({ content: [], effect: "none" });
  expect(exchange).toMatchObject({
    method: "POST",
    url: "http://127.0.0.1:1/o",
    status: undefined,
    firstByteMs: undefined,
  });
  expect(exchange?.requestBody.length).toBeLessThanOrEqual(8_192);
  expect(exchange?.requestBody.isWellFormed()).toBe(true);
});

test("a call that is not to be explained has no exchange", async () => {
  await using upstream = await startJsonUpstream();
  await using tool = await openTool(secretTool(upstream.origin));
  expect((await call(tool)).exchange).toBeUndefined();
});
