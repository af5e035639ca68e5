import { createHmac } from "node:crypto";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { httpAdapter } from "../../../src/adapters/http/index.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import {
  call,
  configure,
  openTool,
  problemsOf,
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
    ["x-request-timeout-ms", expect.stringMatching(/^\d+$/)],
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

test("a secret in the query goes out with every request, a redirected one too, and never shows [K-D01, U-D07]", async () => {
  await using upstream = await startUpstream((response, { target }) => {
    if (target.startsWith("/o?")) response.writeHead(302, { location: "/moved?b=2" }).end();
    else sendJson(response, 200, { seen: target });
  });
  const spaced = { ORDER_API_TOKEN: "sk live/0123456789" };
  const inQuery = { query_name: "api key", secret_ref: "ORDER_API_TOKEN" };
  const signing = {
    algorithm: "hmac-sha256",
    secret_ref: "ORDER_API_TOKEN",
    header_name: "X-Sign",
    content: "{query}",
  };
  const keys = { endpoint: `${upstream.origin}/o?a=1`, auth: inQuery, signing };
  await using tool = await openTool({ keys, environment: spaced });
  const { exchanges, error } = await call(tool, {}, { explain: true });
  expect(error).toBeUndefined();
  expect(upstream.requests.map(({ target }) => target)).toEqual([
    "/o?a=1&api%20key=sk%20live%2F0123456789",
    "/moved?b=2&api%20key=sk%20live%2F0123456789",
  ]);
  for (const [i, { headers, target }] of upstream.requests.entries()) {
    const query = target.split("?")[1] ?? "";
    expect(headers["x-sign"], String(i)).toBe(createHmac("sha256", spaced.ORDER_API_TOKEN).update(query).digest("hex"));
  }
  expect(exchanges.map(({ url }) => url)).toEqual([
    `${upstream.origin}/o?a=1&api%20key=***`,
    `${upstream.origin}/moved?b=2&api%20key=***`,
  ]);
  expect(JSON.stringify(exchanges)).not.toContain("0123456789");
});

test("a secret is sent in one place, and nothing else sets its query parameter", () => {
  const endpoint = "http://127.0.0.1/?k=1";
  const problems = (place: JsonObject): string[] =>
    problemsOf({ keys: { endpoint, auth: { secret_ref: "S", ...place } }, params: { token: {} } });
  const one = "/auth takes one of `header_name` and `query_name`: where the secret goes";
  expect(problems({})).toEqual([one]);
  expect(problems({ header_name: "X-Key", query_name: "q" })).toEqual([one]);
  expect(problems({ query_name: "k" })).toEqual(["/auth/query_name query parameter `k` is set twice"]);
  expect(problems({ query_name: "q", prefix: "Bearer" })).toEqual([
    "/auth/prefix has no effect: it stands before the secret in a header",
  ]);
  expect(problems({ query_name: "token" })).toEqual([
    "/endpoint the declaration sets query parameter `token`, and parameter `token` would set it too; write `token={token}`",
  ]);
});

test("a credential that is written out is warned of by its place, and masked wherever the declaration shows", async () => {
  const literal = "written-out-0123";
  await using upstream = await startUpstream((response) => {
    response.setHeader("x-echo", literal);
    sendJson(response, 200, {});
  });
  const keys: JsonObject = {
    endpoint: `${upstream.origin}/o?api_key=${literal}&sort_key=name&sig={sig}`,
    method: "POST",
    query: { access_token: literal, token: "{sig}", page_token: "7" },
    headers: { Authorization: `Bearer ${literal}`, "X-Trace": "a" },
    body: { login: { password: literal, secret: "$sig" }, tokens: 3 },
  };
  const options: ToolOptions = { keys, params: { sig: { type: "string" } } };
  const configured = configure(options);
  if (!configured.ok) throw new Error(JSON.stringify(configured.issues));
  expect(configured.warnings.map(({ pointer }) => pointer)).toEqual([
    "/endpoint",
    "/query/access_token",
    "/headers/Authorization",
    "/body/login/password",
  ]);
  expect(configured.warnings[0]?.message).toBe(
    "query parameter `api_key` looks like a credential that is written out: put it into an environment variable, " +
      "and name that in `auth.secret_ref`",
  );
  const settings = httpAdapter.explain(configured.config as never);
  expect(JSON.stringify(settings)).not.toContain(literal);
  expect(Object.fromEntries(settings.map(({ key, value }) => [key, value]))).toMatchObject({
    endpoint: `${upstream.origin}/o?api_key=***&sort_key=name&sig={sig}`,
    "query.access_token": "***",
    "query.token": "{sig}",
    "query.page_token": "7",
    body: '{"login":{"password":"***","secret":"$sig"},"tokens":3}',
  });
  await using tool = await openTool(options);
  const { exchange } = await call(tool, { sig: "s1" }, { explain: true });
  expect(JSON.stringify(exchange)).not.toContain(literal);
  expect(exchange?.url).toBe(
    `${upstream.origin}/o?api_key=***&sort_key=name&sig=***&access_token=***&token=***&page_token=7`,
  );
  expect(upstream.requests[0]?.target).toContain(`api_key=${literal}`);

  const form = configure({ keys: { endpoint: upstream.origin, method: "POST", form: { password: literal } } });
  if (!form.ok) throw new Error("refused");
  expect(form.warnings.map(({ pointer }) => pointer)).toEqual(["/form/password"]);
  expect(JSON.stringify(httpAdapter.explain(form.config as never))).not.toContain(literal);
});
