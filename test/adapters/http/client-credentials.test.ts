import { inspect } from "node:util";
import { expect, test } from "vitest";
import { createHttpAdapter } from "../../../src/adapters/http/index.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { createFakeClock } from "../../core/fake-clock.ts";
import { call, openTool, problemsOf, sendJson, startJsonUpstream, startUpstream, type ToolOptions } from "./fixture.ts";

const SECRET = "s3cr3t:+";
const environment = { CLIENT_SECRET: SECRET };

/** A server that gives `token-1`, `token-2` and so on, or fails. */
async function startTokens(life: { seconds: number; status: number } = { seconds: 3_600, status: 200 }) {
  let given = 0;
  const server = await startUpstream((response) => {
    if (life.status !== 200)
      return sendJson(response, life.status, { error: "invalid_client", error_description: SECRET });
    given += 1;
    sendJson(response, 200, { access_token: `token-${given}-0123456789`, expires_in: life.seconds });
  });
  return { server, life, given: () => given };
}

function declared(tokens: { origin: string }, endpoint: string, more: JsonObject = {}): ToolOptions {
  const client = { token_url: `${tokens.origin}/token`, client_id: "gateway", secret_ref: "CLIENT_SECRET", ...more };
  return { environment, keys: { endpoint, method: "POST", auth: { client_credentials: client } } };
}

test("a token is got once for all tools of the same client, sent as a bearer, and shown nowhere [S2-49, K-D01]", async () => {
  const { server, given } = await startTokens();
  await using _server = server;
  await using upstream = await startJsonUpstream();
  const adapter = createHttpAdapter();
  const options = declared(server, upstream.origin, {
    scopes: ["a", "b"],
    audience: "orders",
    resource: "https://o.example",
  });
  await using one = await openTool({ ...options, adapter });
  await using two = await openTool({ ...options, adapter });
  await using other = await openTool({ ...declared(server, upstream.origin), adapter });
  const outcomes = await Promise.all([one, two, one, two].map((tool) => call(tool, {}, { explain: true })));
  expect(given()).toBe(1);
  expect(outcomes.map(({ result }) => result?.upstreamCode)).toEqual([200, 200, 200, 200]);
  expect(new Set(upstream.requests.map(({ headers }) => headers.authorization))).toEqual(
    new Set(["Bearer token-1-0123456789"]),
  );
  expect(inspect(outcomes, { depth: 20 })).not.toMatch(/token-1|s3cr3t/);
  const [asked] = server.requests;
  expect(asked?.headers.authorization).toBe(`Basic ${Buffer.from("gateway:s3cr3t%3A%2B").toString("base64")}`);
  expect(Object.fromEntries(new URLSearchParams(asked?.body))).toEqual({
    grant_type: "client_credentials",
    scope: "a b",
    audience: "orders",
    resource: "https://o.example",
  });
  await call(other);
  expect(given()).toBe(2);
});

test("`client_auth: post` sends name and secret in the body", async () => {
  const { server } = await startTokens();
  await using _server = server;
  await using upstream = await startJsonUpstream();
  await using tool = await openTool(declared(server, upstream.origin, { client_auth: "post" }));
  await call(tool);
  expect(server.requests[0]?.headers.authorization).toBeUndefined();
  expect(Object.fromEntries(new URLSearchParams(server.requests[0]?.body))).toEqual({
    grant_type: "client_credentials",
    client_id: "gateway",
    client_secret: SECRET,
  });
});

test("a token that is not taken any more is got anew, and the call sent again, once", async () => {
  const { server, given } = await startTokens();
  await using _server = server;
  let good = "token-1-0123456789";
  await using upstream = await startUpstream((response, { headers }) => {
    if (headers.authorization === `Bearer ${good}`) sendJson(response, 200, { ok: true });
    else sendJson(response, 401, { message: "no" });
  });
  await using tool = await openTool(declared(server, upstream.origin));
  expect((await call(tool)).result?.upstreamCode).toBe(200);
  good = "token-2-0123456789";
  // All who were refused share the next one.
  const both = await Promise.all([call(tool), call(tool)]);
  expect(both.map(({ result }) => result?.upstreamCode)).toEqual([200, 200]);
  expect(given()).toBe(2);
  good = "none";
  const before = upstream.requests.length;
  const refused = await call(tool);
  expect(refused.result?.failure).toMatchObject({ reason: "UPSTREAM_UNAUTHORIZED" });
  expect(upstream.requests.length - before).toBe(2);
});

test("a token is renewed before its end while it is still used, also where the renewal fails", async () => {
  const clock = createFakeClock();
  const { server, life, given } = await startTokens({ seconds: 100, status: 200 });
  await using _server = server;
  await using upstream = await startJsonUpstream();
  await using tool = await openTool({ ...declared(server, upstream.origin), clock });
  const sent = async (): Promise<unknown> => {
    expect((await call(tool)).error).toBeUndefined();
    return upstream.requests.at(-1)?.headers.authorization;
  };
  expect(await sent()).toBe("Bearer token-1-0123456789");
  await clock.advance(80_000);
  expect(await sent()).toBe("Bearer token-1-0123456789");
  expect(given()).toBe(1);
  life.status = 500;
  await clock.advance(14_000);
  // Within the last tenth of its life: it is renewed behind the call.
  expect(await sent()).toBe("Bearer token-1-0123456789");
  await expect.poll(() => server.requests.length).toBe(2);
  life.status = 200;
  await clock.advance(5_500);
  await expect
    .poll(async () => {
      await sent();
      return given();
    })
    .toBe(2);
  await clock.advance(1_000);
  expect(await sent()).toBe("Bearer token-2-0123456789");
});

test("where no token is given the call ends with the tool and the reason, and the upstream is not reached", async () => {
  const { server } = await startTokens({ seconds: 1, status: 401 });
  await using _server = server;
  await using upstream = await startJsonUpstream();
  await using tool = await openTool(declared(server, upstream.origin));
  const { error } = await call(tool);
  expect(error).toMatchObject({
    reason: "UPSTREAM_UNREACHABLE",
    effect: "none",
    message: `order_status: client gateway: no access token from ${server.origin}: it answered HTTP 401 without a token (invalid_client); the server was not called`,
    modelMessage: "order_status: the gateway cannot identify itself to the upstream; its operator must mend it",
    metadata: { tool: "order_status" },
  });
  await using unset = await openTool({ ...declared(server, upstream.origin), environment: {} });
  expect(unset.availability().reason).toBe("secret CLIENT_SECRET is not set");
  expect((await call(unset)).error).toMatchObject({ reason: "SECRET_MISSING" });
  expect(upstream.requests).toHaveLength(0);
});

test("`egress` holds for the address of tokens too, and a call that is only validated gets none [X-D01]", async () => {
  const { server, given } = await startTokens();
  await using _server = server;
  await using upstream = await startJsonUpstream();
  const options = declared(server, upstream.origin);
  const egress = { allow: [`127.0.0.1:${upstream.port}`] };
  await using narrow = await openTool({ ...options, keys: { ...options.keys, egress } });
  const { error } = await call(narrow);
  expect(error?.message).toContain("is not in `egress.allow` of the declaration");
  await using tool = await openTool(options);
  expect((await call(tool, {}, { validateOnly: true })).error).toBeUndefined();
  expect(given()).toBe(0);
});

test("what cannot work is refused with the mend", () => {
  const client = { token_url: "https://idp.example/token", client_id: "a", secret_ref: "A" };
  const problems = (auth: JsonObject, more: JsonObject = {}, reach?: ToolOptions["reach"]): string[] =>
    problemsOf({
      keys: { endpoint: "https://api.example/", auth, ...more },
      ...(reach === undefined ? {} : { reach }),
    });
  expect(problems({ client_credentials: client })).toEqual([]);
  expect(problems({ header_name: "X" })).toEqual(["/auth takes `secret_ref`, or `client_credentials` with one"]);
  expect(problems({ client_credentials: client, prefix: "Bearer" })).toEqual([
    "/auth/prefix has no effect beside `client_credentials`: leave it out",
  ]);
  expect(problems({ client_credentials: client }, { headers: { authorization: "x" } })).toEqual([
    expect.stringContaining("is set twice"),
  ]);
  for (const [url, why] of [
    ["ftp://idp.example/", "is no http or https URL"],
    ["https://a:b@idp.example/", "holds a name or password"],
    ["https://idp.example/#a", "has a fragment"],
    ["https://idp.example/{tenant}", "is fixed text"],
  ] as const) {
    expect(problems({ client_credentials: { ...client, token_url: url } })).toEqual([expect.stringContaining(why)]);
  }
  const inside = { client_credentials: { ...client, token_url: "http://10.0.0.1/" } };
  expect(problems(inside)).toEqual([]);
  expect(problems(inside, {}, "loopback")).toEqual([expect.stringContaining("is no public address")]);
});
