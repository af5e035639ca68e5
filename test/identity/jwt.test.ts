import { once } from "node:events";
import { rename, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { SignJWT, UnsecuredJWT } from "jose";
import { expect, onTestFinished, test } from "vitest";
import type { KeyFetchOptions } from "../../src/adapters/shared/network/key-fetch.ts";
import { type EgressRules, readEgress } from "../../src/core/egress.ts";
import type { JwtIssuer } from "../../src/core/identity.ts";
import { createFakeClock, type FakeClock } from "../core/fake-clock.ts";
import {
  fetchKeysWith,
  type IdentityFixture,
  ISSUER,
  identityOf,
  NO_WAYS,
  PEER,
  type TokenMaker,
  temporaryFolder,
  tokenMaker,
} from "./fixtures.ts";

interface Issued extends IdentityFixture {
  readonly maker: TokenMaker;
  readonly jwksFile: string;
  bearer(token: string): ReturnType<IdentityFixture["who"]>;
}

/** An identity that takes tokens of one issuer, whose keys are in a file. */
async function withIssuer(changes: Partial<JwtIssuer> = {}): Promise<Issued> {
  const clock = createFakeClock();
  const maker = await tokenMaker("k1", clock);
  const jwksFile = join(await temporaryFolder(), "jwks.json");
  await writeFile(jwksFile, maker.jwks);
  const fixture = await identityOf({ jwt: [{ ...ISSUER, jwks: { file: jwksFile }, ...changes }] }, clock);
  return { ...fixture, maker, jwksFile, bearer: (token) => fixture.who({ authorization: `Bearer ${token}` }) };
}

test("a token says who calls, with which roles", async () => {
  const { bearer, maker } = await withIssuer();
  expect(await bearer(await maker.sign({ roles: ["a", "b", "a"] }))).toEqual({
    id: "jwt:alice",
    roles: ["a", "b"],
    kind: "jwt",
  });
  expect(await bearer(await maker.sign({ roles: "a b" }))).toMatchObject({ roles: ["a", "b"] });
  expect(await bearer(await maker.sign({}))).toMatchObject({ roles: [] });
});

test("claims are found by path, mapped to roles, and read as own properties alone", async () => {
  const { bearer, maker } = await withIssuer({
    name: "staff",
    subjectClaim: "email",
    rolesClaim: "realm_access.roles",
    roleMap: new Map([["admins", ["operator", "ops"]]]),
    roles: ["staff"],
  });
  const claims = { email: "a@b.example", realm_access: { roles: ["admins", "others", "constructor"] } };
  expect(await bearer(await maker.sign(claims))).toEqual({
    id: "staff:a@b.example",
    roles: ["staff", "operator", "ops"],
    kind: "jwt",
  });
  const { bearer: by, maker: other } = await withIssuer({ rolesClaim: "constructor.name" });
  expect(await by(await other.sign({}))).toMatchObject({ roles: [] });
  const { bearer: dotted, maker: third } = await withIssuer({ rolesClaim: "https://example.org/roles" });
  expect(await dotted(await third.sign({ "https://example.org/roles": ["a"] }))).toMatchObject({ roles: ["a"] });
});

test("tokens that do not count are refused, each for its reason in the log alone", async () => {
  const { bearer, maker, clock, logger } = await withIssuer();
  const stranger = await tokenMaker("k1", clock);
  const tokens = {
    "another key": await stranger.sign({}),
    "another issuer": await maker.sign({ iss: "https://other.example/" }),
    "another audience": await maker.sign({ aud: "other" }),
    expired: await maker.sign({}, { expSeconds: -31 }),
    "not yet": await maker.sign({ nbf: Math.floor(clock.now() / 1_000) + 60 }),
    "no subject": await maker.sign({ sub: "" }),
    unsigned: new UnsecuredJWT({}).setIssuer(ISSUER.issuer).setAudience("toolgate").setSubject("alice").encode(),
    shared: await new SignJWT({ iss: ISSUER.issuer, aud: "toolgate", sub: "alice", exp: 4_000_000_000 })
      .setProtectedHeader({ alg: "HS256", kid: "k1" })
      .sign(new TextEncoder().encode(maker.jwks)),
    "no token": "no-token-of-anybody",
    long: `${await maker.sign({})}${"x".repeat(20_000)}`,
  };
  for (const [what, token] of Object.entries(tokens)) {
    expect(await bearer(token), what).toBe("CREDENTIAL_INVALID");
  }
  const endless = await new SignJWT({ iss: ISSUER.issuer, aud: "toolgate", sub: "alice" })
    .setProtectedHeader({ alg: "HS256" })
    .sign(new TextEncoder().encode("x".repeat(32)));
  expect(await bearer(endless)).toBe("CREDENTIAL_INVALID");
  const problems = logger.lines.map(({ fields }) => fields["problem"]).filter((problem) => problem !== undefined);
  expect(new Set(problems).size).toBeGreaterThan(5);
  const log = JSON.stringify(logger.lines);
  for (const token of Object.values(tokens)) expect(log).not.toContain(token.slice(-20));
});

test("a token counts until it ends, give or take the skew of clocks", async () => {
  const { bearer, maker, clock } = await withIssuer();
  const token = await maker.sign({}, { expSeconds: 20 });
  expect(await bearer(token)).toMatchObject({ id: "jwt:alice" });
  await clock.advance(49_000);
  expect(await bearer(token)).toMatchObject({ id: "jwt:alice" });
  await clock.advance(2_000);
  expect(await bearer(token)).toBe("CREDENTIAL_INVALID");
});

test("keys in a file are changed while the gateway runs; a damaged file leaves the last ones in force", async () => {
  const { bearer, maker, clock, jwksFile, logger } = await withIssuer();
  expect(await bearer(await maker.sign({}))).toMatchObject({ id: "jwt:alice" });
  const next = await tokenMaker("k2", clock);
  await writeFile(`${jwksFile}.new`, next.jwks);
  await rename(`${jwksFile}.new`, jwksFile);
  await clock.advance(1_000);
  expect(await bearer(await next.sign({}))).toMatchObject({ id: "jwt:alice" });
  expect(await bearer(await maker.sign({ jti: "other" }))).toBe("CREDENTIAL_INVALID");
  await writeFile(jwksFile, "{");
  await clock.advance(1_000);
  expect(await bearer(await next.sign({ jti: "more" }))).toMatchObject({ id: "jwt:alice" });
  expect(logger.lines.filter(({ message }) => message === "jwks-rejected")).toHaveLength(1);
});

test("settings that name a file of keys that cannot be used change nothing", async () => {
  const { identity, bearer, maker, folder } = await withIssuer();
  const settings = { ...NO_WAYS, jwt: [{ ...ISSUER, jwks: { file: join(folder, "none.json") } }] };
  await expect(identity.take(settings)).rejects.toMatchObject({ message: expect.stringContaining("none.json") });
  expect(await bearer(await maker.sign({}))).toMatchObject({ id: "jwt:alice" });
});

/** An issuer that publishes keys over HTTP. */
async function publish(clock: FakeClock): Promise<{ url: string; jwks: string; status: number; asked: number }> {
  const published = { url: "", jwks: (await tokenMaker("k1", clock)).jwks, status: 200, asked: 0 };
  const server = createServer((_request, response) => {
    published.asked += 1;
    response.writeHead(published.status, { "content-type": "application/json" }).end(published.jwks);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  published.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`;
  return published;
}

test("keys are fetched from their issuer, once for many tokens; while it is away nobody is blamed", async () => {
  const clock = createFakeClock(Date.now());
  const published = await publish(clock);
  const maker = await tokenMaker("k1", clock);
  const { who, logger } = await identityOf(
    { jwt: [{ ...ISSUER, jwks: { url: published.url, allowPrivate: false } }] },
    clock,
  );
  const bearer = (token: string) => who({ authorization: `Bearer ${token}` }, PEER);
  published.status = 500;
  for (let n = 0; n < 25; n++) expect(await bearer(await maker.sign({ jti: `${n}` }))).toBe("CREDENTIAL_UNCHECKED");
  expect(logger.lines.some(({ message }) => message === "jwks-unreachable")).toBe(true);
  published.status = 200;
  published.jwks = maker.jwks;
  published.asked = 0;
  const tokens = await Promise.all(Array.from({ length: 20 }, (_, n) => maker.sign({ jti: `t${n}` })));
  expect(
    new Set((await Promise.all(tokens.map(bearer))).map((found) => (typeof found === "string" ? found : found.id))),
  ).toEqual(new Set(["jwt:alice"]));
  expect(published.asked).toBe(1);
});

test("keys are fetched within the bounds of `egress`, and from private addresses only where that is said [X-D01]", async () => {
  const clock = createFakeClock(Date.now());
  const published = await publish(clock);
  const { port } = new URL(published.url);
  const lookup: KeyFetchOptions["lookup"] = (_host, _options, found) =>
    found(null, [{ address: "127.0.0.1", family: 4 }]);
  const signal = new AbortController().signal;
  const named = `http://idp.example.test:${port}/jwks`;
  const fetchNamed = (allowPrivate: boolean, options: Partial<KeyFetchOptions> = {}) =>
    fetchKeysWith({ lookup, ...options })(named, { allowPrivate, signal });
  await expect(fetchNamed(false)).rejects.toThrow("which is no public address");
  expect(await fetchNamed(true)).toEqual({ status: 200, text: published.jwks });
  const egress = (): EgressRules | undefined => readEgress({ deny: ["idp.example.test"] }, () => undefined);
  await expect(fetchNamed(true, { egress })).rejects.toThrow("is denied by `idp.example.test`");
  published.jwks = "x".repeat(2 * 1024 * 1024);
  await expect(fetchNamed(true)).rejects.toThrow("more than 1048576 bytes");
});
