import { expect, test } from "vitest";
import type { CallerCertificate, Peer } from "../../src/core/identity.ts";
import { createKey } from "../../src/identity/api-keys.ts";
import { createIdentity } from "../../src/identity/identity.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { createLogRecorder } from "../registry/support.ts";
import { fetchKeysWith, headersOf, identityOf, NO_WAYS, PEER } from "./fixtures.ts";

const CERTIFICATE: CallerCertificate = {
  problem: undefined,
  names: [
    { type: "uri", value: "spiffe://example.org/ns/prod/sa/agent" },
    { type: "common_name", value: "agent" },
  ],
};
const RULES = [
  { type: "dns", name: "*", roles: ["dns"] },
  { type: "uri", name: "spiffe://example.org/ns/prod/*", roles: ["prod"] },
  { type: "common_name", name: "agent", roles: ["later"] },
] as const;

function shows(certificate: CallerCertificate | undefined): Peer {
  return { ...PEER, encrypted: true, certificate: () => certificate };
}

test("where nothing is configured every caller is the anonymous operator, whatever it shows", async () => {
  const clock = createFakeClock();
  const identity = await createIdentity({
    settings: undefined,
    keyFile: "/nowhere",
    clock,
    logger: createLogRecorder(),
    fetchKeys: fetchKeysWith(),
  });
  expect(await identity.authenticate(headersOf({ "x-api-key": "wrong" }), PEER)).toMatchObject({ roles: ["operator"] });
});

test("who shows nothing is refused, or is anonymous with the roles given to it", async () => {
  const { who, identity } = await identityOf({ apiKeys: true });
  expect(await who({})).toBe("CREDENTIAL_MISSING");
  await identity.take({ ...NO_WAYS, apiKeys: true, anonymousRoles: ["guest"] });
  expect(await who({})).toEqual({ id: "anonymous", roles: ["guest"], kind: "anonymous" });
});

test("what is shown and does not count is refused, whatever else there is", async () => {
  const { who, addKey, clock } = await identityOf({
    apiKeys: true,
    certificates: RULES,
    trustedHeader: { subject: "x-user", roles: undefined },
    anonymousRoles: ["guest"],
  });
  const { key } = await addKey("ci");
  await clock.advance(1_000);
  const peer = shows(CERTIFICATE);
  const { key: wrong } = createKey({ name: "ci", roles: [], createTimeMs: 0, expireTimeMs: undefined });
  for (const headers of [
    { "x-api-key": wrong },
    { authorization: `Bearer ${wrong}` },
    { authorization: "Bearer a.b.c" },
    { authorization: "Basic Y2k6eA==" },
    { authorization: "" },
    { "x-api-key": "" },
    // Both, and nobody can tell which is meant.
    { "x-api-key": key, authorization: `Bearer ${key}` },
    { "x-api-key": `${key}, ${key}` },
  ]) {
    expect(await who({ "x-user": "alice", ...headers }, peer), JSON.stringify(headers)).toBe("CREDENTIAL_INVALID");
  }
  expect(await who({ "x-user": "alice" }, shows({ ...CERTIFICATE, problem: "CERT_HAS_EXPIRED" }))).toBe(
    "CREDENTIAL_INVALID",
  );
  expect(await who({ "x-user": "alice" }, shows({ problem: undefined, names: [] }))).toBe("CREDENTIAL_INVALID");
});

test("a header counts before a certificate, that before a proxy's word, that before nothing", async () => {
  const { who, addKey, clock } = await identityOf({
    apiKeys: true,
    certificates: RULES,
    trustedHeader: { subject: "x-user", roles: "x-roles" },
    anonymousRoles: ["guest"],
  });
  const { key } = await addKey("ci");
  await clock.advance(1_000);
  const proxied = { "x-user": "alice", "x-roles": "a, b" };
  expect(await who({ ...proxied, "x-api-key": key }, shows(CERTIFICATE))).toMatchObject({ id: "key:ci" });
  expect(await who(proxied, shows(CERTIFICATE))).toEqual({
    id: "cert:spiffe://example.org/ns/prod/sa/agent",
    roles: ["prod"],
    kind: "certificate",
  });
  expect(await who(proxied, shows(undefined))).toEqual({ id: "header:alice", roles: ["a", "b"], kind: "header" });
  expect(await who({}, shows(undefined))).toMatchObject({ id: "anonymous" });
});

test("a proxy's header with two names, or none, means nobody", async () => {
  const { who } = await identityOf({ trustedHeader: { subject: "x-user", roles: undefined } });
  for (const subject of ["alice, bob", "alice bob", "", "ä", "a".repeat(600)]) {
    expect(await who({ "x-user": subject })).toBe("CREDENTIAL_INVALID");
  }
  expect(await who({})).toBe("CREDENTIAL_MISSING");
  // A token of the mesh that nobody here checks is not the gateway's business.
  expect(await who({ "x-user": "alice", authorization: "Bearer a.b.c" })).toMatchObject({ id: "header:alice" });
});

test.each([
  ["a.example", "a.example", true],
  ["a.example", "b.a.example", false],
  ["*.example", "a.example", true],
  ["*.example", ".example.evil", false],
  ["spiffe://x/*/sa/*", "spiffe://x/ns/sa/a", true],
  ["spiffe://x/*/sa/*", "spiffe://x/sa/a", false],
  ["a*a", "a", false],
  ["*", "", true],
])("of certificates %s means %s: %s", async (name, value, expected) => {
  const { who } = await identityOf({ certificates: [{ type: "dns", name, roles: [] }] });
  const found = await who({}, shows({ problem: undefined, names: [{ type: "dns", value }] }));
  expect(typeof found === "object").toBe(expected);
});

test("who tries credentials is slowed, by address, and those that were good go on", async () => {
  const { who, addKey, clock, logger } = await identityOf({ apiKeys: true });
  const { key } = await addKey("ci");
  const late = await addKey("late");
  await clock.advance(1_000);
  expect(await who({ "x-api-key": key })).toMatchObject({ id: "key:ci" });
  const outcomes: unknown[] = [];
  for (let n = 0; n < 40; n++) outcomes.push(await who({ "x-api-key": `tg_wrong${n}` }));
  expect(outcomes.filter((outcome) => outcome === "CREDENTIAL_INVALID")).toHaveLength(20);
  expect(outcomes.slice(20)).toEqual(Array(20).fill("CREDENTIALS_THROTTLED"));
  expect(await who({ "x-api-key": key })).toMatchObject({ id: "key:ci" });
  expect(await who({ "x-api-key": late.key })).toBe("CREDENTIALS_THROTTLED");
  expect(await who({ "x-api-key": late.key }, { ...PEER, address: "10.9.9.9" })).toMatchObject({ id: "key:late" });
  expect(await who({ "x-api-key": late.key })).toMatchObject({ id: "key:late" });
  await clock.advance(1_000);
  expect(await who({ "x-api-key": "tg_again" })).toBe("CREDENTIAL_INVALID");
  expect(await who({ "x-api-key": "tg_again" })).toBe("CREDENTIALS_THROTTLED");
  const failures = logger.lines.filter(({ message }) => message === "authentication-failed");
  expect(failures.map(({ fields }) => fields["slowed"])).toEqual([...Array(19).fill(false), true, true]);
});

test.each([
  ["::ffff:10.1.2.3", "10.1.2.3"],
  ["2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"],
  ["fe80::1%eth0", "fe80::2"],
])("%s and %s are slowed as one", async (first, second) => {
  const { who } = await identityOf({ apiKeys: true });
  for (let n = 0; n < 20; n++) await who({ "x-api-key": `x${n}` }, { ...PEER, address: first });
  expect(await who({ "x-api-key": "y" }, { ...PEER, address: second })).toBe("CREDENTIALS_THROTTLED");
  expect(await who({ "x-api-key": "y" }, { ...PEER, address: "2001:db8:1:3::1" })).toBe("CREDENTIAL_INVALID");
});

test("an attack from many addresses takes bounded room", async () => {
  const { who } = await identityOf({ apiKeys: true });
  for (let n = 0; n < 10_100; n++) await who({ "x-api-key": "x" }, { ...PEER, address: `10.0.${n >> 8}.${n & 255}` });
  expect(await who({ "x-api-key": "x" })).toBe("CREDENTIAL_INVALID");
});
