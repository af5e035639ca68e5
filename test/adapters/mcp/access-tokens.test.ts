import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { startFakeHttp } from "./fake-http.ts";
import { call, openServer, textOf } from "./fixture.ts";

interface TokenServer extends AsyncDisposable {
  readonly url: string;
  readonly asked: { readonly authorization: string | undefined; readonly form: URLSearchParams }[];
}

async function startTokens(answer: (count: number) => { status: number; body: string }): Promise<TokenServer> {
  const asked: TokenServer["asked"] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += String(chunk);
    });
    request.on("end", () => {
      asked.push({ authorization: request.headers.authorization, form: new URLSearchParams(body) });
      const { status, body: text } = answer(asked.length);
      response.writeHead(status, { "content-type": "application/json" }).end(text);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    asked,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

test("a token is fetched once, used for all requests, and fetched again where the server does not take it [S2-46]", async () => {
  await using tokens = await startTokens((count) => ({
    status: 200,
    body: JSON.stringify({ access_token: `token-${count}`, token_type: "Bearer", expires_in: 3_600 }),
  }));
  let good = 1;
  await using fake = await startFakeHttp({ authorization: () => `Bearer token-${good}` });
  const client = { token_url: tokens.url, client_id: "gateway", secret_ref: "CLIENT_SECRET", scopes: ["a", "b"] };
  const mcp = { url: fake.url, protocol: "legacy", auth: { client_credentials: client } };
  await using server = await openServer({ mcp, environment: { CLIENT_SECRET: "s3cr3t:+" } });
  await server.ready();
  expect(textOf(await call(server, "quick"))).toBe("ok");
  expect(tokens.asked).toHaveLength(1);
  const [first] = tokens.asked;
  expect(first?.authorization).toBe(`Basic ${Buffer.from("gateway:s3cr3t%3A%2B").toString("base64")}`);
  expect(Object.fromEntries(first?.form ?? [])).toEqual({
    grant_type: "client_credentials",
    scope: "a b",
    resource: fake.url,
  });
  good = 2;
  expect(textOf(await call(server, "quick"))).toBe("ok");
  expect(tokens.asked).toHaveLength(2);
});

test("a token that is not given is said without the secret", async () => {
  await using tokens = await startTokens(() => ({
    status: 401,
    body: '{"error":"invalid_client","error_description":"s3cr3t-0123 is wrong"}',
  }));
  const client = {
    token_url: tokens.url,
    client_id: "gateway",
    secret_ref: "CLIENT_SECRET",
    client_auth: "post",
    resource: "urn:tools",
  };
  const mcp = { url: "http://127.0.0.1:9/mcp", auth: { client_credentials: client } };
  await using server = await openServer({ mcp, environment: { CLIENT_SECRET: "s3cr3t-0123" } });
  await server.until(() => server.upstream.availability().reason.startsWith("failed"));
  const { reason } = server.upstream.availability();
  expect(reason).toContain("it answered HTTP 401 without a token (invalid_client)");
  expect(reason).not.toContain("s3cr3t");
  expect(tokens.asked[0]?.form.get("client_secret")).toBe("s3cr3t-0123");
  expect(tokens.asked[0]?.form.get("resource")).toBe("urn:tools");
});
