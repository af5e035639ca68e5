import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { jwtVerify } from "jose";
import { expect, test } from "vitest";
import { clientAssertion } from "../../../src/adapters/shared/client-assertion.ts";
import { bearerChallenge } from "../../../src/adapters/shared/oauth-discovery.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { startAuthorization } from "./authorization-server.ts";
import { type FakeHttp, startFakeHttp } from "./fake-http.ts";
import { call, type OpenServer, openServer, textOf } from "./fixture.ts";

const PRM = "/.well-known/oauth-protected-resource/mcp";
const ASM = "/.well-known/oauth-authorization-server";
const CLIENT = { client_id: "gateway", secret_ref: "CLIENT_SECRET" };

/** What an authorization server says of itself. */
function ofIssuer(origin: string, more: object = {}): object {
  return { issuer: origin, token_endpoint: `${origin}/token`, ...more };
}

/** Opens a server behind a token, with what its client is declared to be. */
function openBehind(fake: FakeHttp, client: JsonObject, secret = "s3cr3t-0123"): Promise<OpenServer> {
  const mcp = { url: fake.url, protocol: "legacy", auth: { client_credentials: { ...CLIENT, ...client } } };
  return openServer({ mcp, environment: { CLIENT_SECRET: secret } });
}

/** Why a server cannot be reached. */
async function failureOf(fake: FakeHttp, client: JsonObject): Promise<string> {
  await using server = await openBehind(fake, client);
  await server.until(() => server.upstream.availability().reason.startsWith("failed"));
  return server.upstream.availability().reason;
}

test("who gives the tokens is found out by the server's metadata, and the token is for that server [S2-46]", async () => {
  let resource = "";
  await using tokens = await startAuthorization((path, origin) =>
    path === ASM ? ofIssuer(origin, { token_endpoint_auth_methods_supported: ["client_secret_post"] }) : undefined,
  );
  await using fake = await startFakeHttp({
    authorization: () => "Bearer token-1",
    documents: (path) =>
      path === PRM
        ? { resource, authorization_servers: [tokens.origin], scopes_supported: ["read", "write"] }
        : undefined,
  });
  resource = fake.url;
  await using server = await openBehind(fake, {});
  await server.ready();
  expect(textOf(await call(server, "quick"))).toBe("ok");
  expect(tokens.paths).toEqual([ASM, "/token"]);
  const form = { grant_type: "client_credentials", resource: fake.url, scope: "read write" };
  expect(tokens.tokens).toEqual([
    { authorization: undefined, form: { ...form, client_id: "gateway", client_secret: "s3cr3t-0123" } },
  ]);
});

test("the place and the scopes that the server names when it refuses count first, and more scopes are fetched when they are wanted", async () => {
  let [resource, good] = ["", "Bearer token-1"];
  let challenge = "";
  await using tokens = await startAuthorization((path, origin) => {
    if (path === "/about") return { resource, authorization_servers: [`${origin}/tenant`], scopes_supported: ["all"] };
    return path === "/tenant/.well-known/openid-configuration"
      ? { ...ofIssuer(origin), issuer: `${origin}/tenant` }
      : undefined;
  });
  await using fake = await startFakeHttp({
    authorization: () => good,
    challenge: () => ({ status: challenge.includes("insufficient_scope") ? 403 : 401, header: challenge }),
  });
  resource = fake.url;
  challenge = `Bearer realm="x, y", resource_metadata="${tokens.origin}/about", scope="tools"`;
  await using server = await openBehind(fake, {});
  await server.ready();
  expect(tokens.tokens.map(({ form }) => form["scope"])).toEqual(["tools"]);
  good = "Bearer token-2";
  challenge = 'Bearer error="insufficient_scope", scope="tools orders:write"';
  expect(textOf(await call(server, "quick"))).toBe("ok");
  expect(tokens.tokens.map(({ form }) => form["scope"])).toEqual(["tools", "tools orders:write"]);
  good = "Bearer token-nobody-gets";
  const { result } = await call(server, "quick");
  expect(result?.failure).toMatchObject({ reason: "UPSTREAM_UNAUTHORIZED", upstreamCode: 403 });
  expect(tokens.tokens).toHaveLength(2);
});

test("a client signs with its key who it is, for the issuer [S2-46]", async () => {
  let resource = "";
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await using tokens = await startAuthorization((path, origin) => (path === ASM ? ofIssuer(origin) : undefined));
  await using fake = await startFakeHttp({
    authorization: () => "Bearer token-1",
    documents: (path) => (path === PRM ? { resource, authorization_servers: [tokens.origin] } : undefined),
  });
  resource = fake.url;
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  await using server = await openBehind(fake, { client_auth: "private_key_jwt" }, pem.replaceAll("\n", "\\n"));
  await server.ready();
  const [asked] = tokens.tokens;
  expect(asked?.form).toMatchObject({
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
  });
  expect(asked?.form).not.toHaveProperty("client_secret");
  const { payload } = await jwtVerify(asked?.form["client_assertion"] ?? "", publicKey, { audience: tokens.origin });
  expect(payload).toMatchObject({ iss: "gateway", sub: "gateway", jti: expect.any(String) });
});

test("every kind of key signs by its own algorithm, and what is no key signs nothing", async () => {
  const facts = { clientId: "gateway", audience: "https://auth.example.test", nowMs: Date.now() };
  const keys = [
    ["RS256", generateKeyPairSync("rsa", { modulusLength: 2_048 }).privateKey],
    ["ES384", generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey],
    ["EdDSA", generateKeyPairSync("ed25519").privateKey],
  ] as const;
  for (const [algorithm, key] of keys) {
    const assertion = clientAssertion(key.export({ type: "pkcs8", format: "pem" }).toString(), facts) ?? "";
    const { protectedHeader } = await jwtVerify(assertion, createPublicKey(key));
    expect(protectedHeader.alg).toBe(algorithm);
  }
  expect(clientAssertion("s3cr3t", facts)).toBeUndefined();
});

test("a server cannot have the secret sent to whom it likes", async () => {
  let prm: object = {};
  let asm: (origin: string) => object = () => ({});
  await using tokens = await startAuthorization((path, origin) => (path === ASM ? asm(origin) : undefined));
  await using fake = await startFakeHttp({
    authorization: () => "Bearer nobody",
    documents: (path) => (path === PRM ? prm : undefined),
  });
  const named = { resource: fake.url, authorization_servers: [tokens.origin] };
  const cases: readonly (readonly [words: string, prm: object, asm: (origin: string) => object, JsonObject?])[] = [
    ["are about another resource", { ...named, resource: "https://evil.example.com/mcp" }, ofIssuer],
    ["name no authorization server", { resource: fake.url }, ofIssuer],
    ["are those of another issuer", named, (origin) => ofIssuer(origin, { issuer: "https://attacker.example.com" })],
    ["do not name the issuer https://auth.example.test", named, ofIssuer, { issuer: "https://auth.example.test" }],
    ["lead to `10.0.0.7`, which", { ...named, authorization_servers: ["http://10.0.0.7/"] }, ofIssuer],
    ["lead to `10.0.0.8`, which", named, (origin) => ofIssuer(origin, { token_endpoint: "http://10.0.0.8/token" })],
    ["have no token_endpoint", named, (origin) => ({ issuer: origin })],
    ["issuer that is no address", { ...named, authorization_servers: ["urn:x"] }, ofIssuer],
  ];
  for (const [words, resource, issuer, client = {}] of cases) {
    [prm, asm] = [resource, issuer];
    const reason = await failureOf(fake, client);
    expect(reason).toContain("no access token from anybody: ");
    expect(reason).toContain(words);
  }
  expect(tokens.tokens).toEqual([]);
});

test("a challenge is read whatever stands beside it", () => {
  const nothing = { error: undefined, scope: undefined, resourceMetadata: undefined };
  expect(bearerChallenge(undefined)).toEqual(nothing);
  expect(bearerChallenge('Basic realm="scope=x"')).toEqual(nothing);
  expect(bearerChallenge('Basic realm="a", Bearer scope="a \\"b\\"", error=invalid_token, scope="second"')).toEqual({
    ...nothing,
    scope: 'a "b"',
    error: "invalid_token",
  });
});
