import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { changeApiKeys, readApiKeys } from "../../src/identity/api-key-file.ts";
import { createKey, isSecretOf, keyParts, NO_KEY } from "../../src/identity/api-keys.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { addKey, identityOf, NO_WAYS, PEER, temporaryFolder } from "./fixtures.ts";

const FACTS = { name: "ci", roles: ["reader"], createTimeMs: 5, expireTimeMs: 6 };

test("a key has 256 random bits, and what is kept of it does not tell them", async () => {
  const { key, stored } = createKey(FACTS);
  const { id = "", secret = "" } = keyParts(key) ?? {};
  expect(Buffer.from(secret, "base64url")).toHaveLength(32);
  expect(stored).toMatchObject({ ...FACTS, id, revokeTimeMs: undefined });
  expect(JSON.stringify(stored)).not.toContain(secret);
  expect(isSecretOf(stored, secret)).toBe(true);
  expect(isSecretOf(stored, `${secret.slice(0, -1)}${secret.endsWith("A") ? "E" : "A"}`)).toBe(false);
  const other = createKey(FACTS);
  expect(other.key).not.toBe(key);
  expect(other.stored.salt).not.toBe(stored.salt);
});

test("a secret is compared with what is kept in one place, in the same time whatever it is, also where there is no key", async () => {
  const { key, stored } = createKey(FACTS);
  const secret = keyParts(key)?.secret ?? expect.unreachable();
  expect(isSecretOf(stored, secret)).toBe(true);
  for (const wrong of [`${secret}x`, secret.slice(1), `x${secret.slice(1)}`, ""]) {
    expect(isSecretOf(stored, wrong)).toBe(false);
    expect(isSecretOf(NO_KEY, wrong)).toBe(false);
  }
  const folder = new URL("../../src/identity/", import.meta.url);
  const texts = await Promise.all((await readdir(folder)).map((file) => readFile(new URL(file, folder), "utf8")));
  const compared = texts.flatMap((text) => text.match(/^.*(?:hash|secret)\b[^"`\n]* [!=]==? [^"`\n]*$/gim) ?? []);
  expect(compared.filter((line) => !line.includes("=== undefined"))).toEqual([]);
});

test("what is no key has no parts", () => {
  const { key } = createKey(FACTS);
  for (const text of ["", "tg_", key.slice(1), `${key}x`, ` ${key}`, key.toUpperCase(), "tg_abc_def"]) {
    expect(keyParts(text)).toBeUndefined();
  }
});

test("the file of keys is read as it was written, for its owner only, and many writers lose nothing", async () => {
  const file = join(await temporaryFolder(), "state", "api-keys.json");
  expect(await readApiKeys(file)).toEqual([]);
  const made = await Promise.all(
    Array.from({ length: 8 }, (_, n) => addKey(file, `n${n}`, ["a"], { clock: createFakeClock(), expireTimeMs: n })),
  );
  const kept = await readApiKeys(file);
  expect(kept.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(made.map(({ stored }) => stored));
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

test.each(["", "{", "[]", '{"version":2,"keys":[]}', '{"version":1,"keys":[{"id":"a"}]}', '{"version":1,"keys":{}}'])(
  "a damaged file of keys (%s) is refused as a whole, and is not written over",
  async (text) => {
    const file = join(await temporaryFolder(), "api-keys.json");
    await writeFile(file, text);
    await expect(readApiKeys(file)).rejects.toMatchObject({
      reason: "STORE_FAILED",
      message: expect.stringContaining(file),
    });
    await expect(changeApiKeys(file, (keys) => keys)).rejects.toMatchObject({ reason: "STORE_FAILED" });
    expect(await readFile(file, "utf8")).toBe(text);
  },
);

test("a key is taken by either header, and says whose it is", async () => {
  const { who, addKey: add, clock } = await identityOf({ apiKeys: true });
  const { key } = await add("ci", ["reader", "ops"]);
  await clock.advance(1_000);
  const ci = { id: "key:ci", roles: ["reader", "ops"], kind: "api_key" };
  expect(await who({ authorization: `Bearer ${key}` })).toEqual(ci);
  expect(await who({ authorization: `bearer  ${key}` })).toEqual(ci);
  expect(await who({ "x-api-key": key })).toEqual(ci);
});

test("keys that are made, expire and are revoked count within a second", async () => {
  const { who, addKey: add, clock, keyFile } = await identityOf({ apiKeys: true });
  const { key, stored } = await add("ci", [], clock.now() + 10_000);
  await clock.advance(1_000);
  expect(await who({ "x-api-key": key })).toMatchObject({ id: "key:ci" });
  await clock.advance(9_000);
  expect(await who({ "x-api-key": key })).toBe("CREDENTIAL_INVALID");
  const other = await add("other");
  await clock.advance(1_000);
  expect(await who({ "x-api-key": other.key })).toMatchObject({ id: "key:other" });
  await changeApiKeys(keyFile, (keys) =>
    keys.map((each) => (each.id === stored.id ? each : { ...each, revokeTimeMs: 1 })),
  );
  await clock.advance(1_000);
  expect(await who({ "x-api-key": other.key })).toBe("CREDENTIAL_INVALID");
});

test("a file of keys that is damaged later leaves the last good one in force, and is told once", async () => {
  const { who, addKey: add, clock, keyFile, logger } = await identityOf({ apiKeys: true });
  const { key } = await add("ci");
  await clock.advance(1_000);
  expect(await who({ "x-api-key": key })).toMatchObject({ id: "key:ci" });
  await writeFile(keyFile, "{");
  for (let n = 0; n < 3; n++) {
    await clock.advance(1_000);
    expect(await who({ "x-api-key": key })).toMatchObject({ id: "key:ci" });
  }
  expect(logger.lines.filter(({ message }) => message === "api-keys-rejected")).toHaveLength(1);
});

test("a gateway does not start with a file of keys that it cannot read", async () => {
  const { identity, keyFile } = await identityOf({});
  await writeFile(keyFile, "{");
  await expect(identity.take({ ...NO_WAYS, apiKeys: true })).rejects.toMatchObject({ reason: "STORE_FAILED" });
});

test("no line of the log has a credential, whole or in part [K-D03]", async () => {
  const { who, addKey: add, clock, logger } = await identityOf({ apiKeys: true });
  const { key } = await add("ci");
  await clock.advance(1_000);
  await who({ "x-api-key": key });
  const wrong = createKey(FACTS).key;
  for (const headers of [
    { "x-api-key": wrong },
    { authorization: `Bearer ${wrong}` },
    { authorization: `Basic ${wrong}` },
  ]) {
    expect(await who(headers)).toBe("CREDENTIAL_INVALID");
  }
  const log = JSON.stringify(logger.lines);
  expect(log).toContain("authentication-failed");
  expect(log).toContain(PEER.address);
  for (const each of [key, wrong]) {
    const { secret = "" } = keyParts(each) ?? {};
    for (let at = 0; at + 8 <= secret.length; at++) expect(log).not.toContain(secret.slice(at, at + 8));
  }
});
