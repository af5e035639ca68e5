import { expect, test } from "vitest";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import type { Principal } from "../../../src/core/principal.ts";
import { createRandom } from "../../core/random.ts";
import { type FakeHttp, type SeenRequest, startFakeHttp } from "./fake-http.ts";
import { call, type OpenServer, type Outcome, openServer, problemsOf, textOf } from "./fixture.ts";

const BY_ROLE = { admin: "ADMIN_TOKEN", sales: "SALES_TOKEN", same: "TOKEN", constructor: "ODD_TOKEN" };

/** Of which family the token is that someone with these roles has; the first one of `by_role` decides. */
function familyOf(roles: readonly string[]): string {
  const [, reference = "TOKEN"] = Object.entries(BY_ROLE).find(([role]) => roles.includes(role)) ?? [];
  return reference;
}

function environmentOf(turn: number): Record<string, string | undefined> {
  return Object.fromEntries(["TOKEN", ...Object.values(BY_ROLE)].map((name) => [name, `${name}-${turn}-0123456789`]));
}

function blockOf({ url }: FakeHttp, more: JsonObject = {}): JsonObject {
  return {
    url,
    protocol: "legacy",
    auth: { bearer: { secret_ref: "TOKEN", by_role: BY_ROLE } },
    restart: { first: "10ms", max: "20ms", attempts: 100 },
    ...more,
  };
}

function callAs(server: OpenServer, roles: readonly string[], tool = "quick", args: JsonObject = {}): Promise<Outcome> {
  const principal: Principal = { id: `key:${roles.join("-")}`, roles, kind: "api_key" };
  return call(server, tool, args, { principal });
}

/** The family of the token that a request came with. */
function sentFamily({ headers }: SeenRequest): string {
  return /^Bearer (.*)-\d+-0123456789$/.exec(headers.authorization ?? "")?.[1] ?? `${headers.authorization}`;
}

function ofMethod({ requests }: FakeHttp, method: string): readonly SeenRequest[] {
  return requests.filter(({ message }) => message.method === method);
}

test.for([
  ["legacy", "sse"],
  ["legacy", "json"],
  ["2026-07-28", "sse"],
] as const)(
  "each call goes out with the credential of its caller's role, at once with others', over lost sessions and changed secrets (%s, %s) [S2-105]",
  { timeout: 180_000 },
  async ([protocol, answers]) => {
    await using fake = await startFakeHttp({ answers, ...(protocol === "legacy" ? {} : { discover: "modern" }) });
    const environment = environmentOf(0);
    let aheadMs = 0;
    const clock: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
    await using server = await openServer({ mcp: blockOf(fake, { protocol }), environment, clock });
    await server.ready();
    const random = createRandom(11);
    const pick = ["admin", "sales", "same", "constructor", "toString", "other"];
    const expected = new Map<string, string>();
    const calledAs = async (roles: readonly string[], turn: number): Promise<void> => {
      const token = `${turn}.${expected.size}`;
      expected.set(token, `Bearer ${familyOf(roles)}-${turn}-0123456789`);
      expect(textOf(await callAs(server, roles, "whoami", { token }))).toBe(token);
    };
    for (let turn = 0; turn < 6; turn++) {
      Object.assign(environment, environmentOf(turn));
      aheadMs += 2_000;
      // A call is sent again once: each begins with a session that holds, and loses it once at most.
      for (const role of pick) await calledAs([role], turn);
      const before = ofMethod(fake, "tools/call").length;
      const forgotten = fake.until(() => ofMethod(fake, "tools/call").length >= before + 8).then(fake.forget);
      const calls = Array.from({ length: 24 }, () => {
        const roles = pick.filter(() => random() < 0.3);
        return calledAs(roles, turn);
      });
      await Promise.all([...calls, forgotten]);
    }
    const seen = ofMethod(fake, "tools/call").map(({ message, headers }) => {
      const args = (message.params?.["arguments"] ?? {}) as Readonly<Record<string, unknown>>;
      return [String(args["token"]), headers.authorization] as const;
    });
    expect(new Set(seen.map(([token]) => token)).size).toBe(expected.size);
    for (const [token, authorization] of seen) expect(authorization).toBe(expected.get(token));
    const families = new Map<string, Set<string>>();
    for (const request of fake.requests) {
      const session = String(request.headers["mcp-session-id"]);
      if (request.headers["mcp-session-id"] === undefined) continue;
      families.set(session, (families.get(session) ?? new Set()).add(sentFamily(request)));
    }
    expect(families.size > 0).toBe(protocol === "legacy");
    // A session is of one credential from its first request to its last.
    expect([...families.values()].every(({ size }) => size === 1)).toBe(true);
    expect(new Set(fake.requests.map(sentFamily))).toEqual(new Set(["TOKEN", ...Object.values(BY_ROLE)]));
  },
);

test("the common credential alone makes the offer, and one that nobody calls with is never sent [S2-105]", async () => {
  await using fake = await startFakeHttp();
  await using server = await openServer({ mcp: blockOf(fake), environment: environmentOf(0) });
  await server.ready();
  await fake.until(() => fake.requests.some(({ method }) => method === "GET"));
  expect(textOf(await callAs(server, ["admin"], "change"))).toBe("changed");
  const before = ofMethod(fake, "tools/list").length;
  fake.tell({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
  await server.until(() => server.names().includes("added"));
  expect(ofMethod(fake, "tools/list").length).toBeGreaterThan(before);
  expect(new Set(ofMethod(fake, "tools/list").map(sentFamily))).toEqual(new Set(["TOKEN"]));
  expect(new Set(fake.requests.map(sentFamily))).toEqual(new Set(["TOKEN", "ADMIN_TOKEN"]));
});

test("a role's session ends when nobody of it calls, with its own credential, and the next call has another [S2-105]", async () => {
  const rests = new Set<() => void>();
  const clock: Clock = {
    ...systemClock,
    after(delayMs, task) {
      if (delayMs !== 300_000) return systemClock.after(delayMs, task);
      rests.add(task);
      return { [Symbol.dispose]: () => void rests.delete(task) };
    },
  };
  await using fake = await startFakeHttp();
  {
    await using server = await openServer({ mcp: blockOf(fake), environment: environmentOf(0), clock });
    await server.ready();
    for (const round of [1, 2]) {
      expect(textOf(await callAs(server, ["admin"]))).toBe("ok");
      expect(rests.size).toBe(1);
      for (const rest of rests) rest();
      const deleted = (): readonly SeenRequest[] => fake.requests.filter(({ method }) => method === "DELETE");
      await fake.until(() => deleted().length === round);
      expect(deleted().map(sentFamily)).toEqual(Array(round).fill("ADMIN_TOKEN"));
      rests.clear();
    }
    expect(textOf(await callAs(server, ["sales"]))).toBe("ok");
  }
  const inits = ofMethod(fake, "initialize").map(sentFamily);
  expect(inits).toEqual(["TOKEN", "ADMIN_TOKEN", "ADMIN_TOKEN", "SALES_TOKEN"]);
  // Closing ends all of them, each by its own.
  const deleted = fake.requests.filter(({ method }) => method === "DELETE").map(sentFamily);
  expect(deleted.toSorted()).toEqual(["ADMIN_TOKEN", "ADMIN_TOKEN", "SALES_TOKEN", "TOKEN"]);
});

test("a role's credential that the server refuses fails the calls of that role alone, until it is another one [S2-105]", async () => {
  const accepts = (authorization: string): boolean => !authorization.startsWith("Bearer ADMIN_TOKEN-0");
  await using fake = await startFakeHttp({ accepts });
  const environment = environmentOf(0);
  await using server = await openServer({ mcp: blockOf(fake), environment });
  await server.ready();
  for (let n = 0; n < 7; n++) {
    const { error } = await callAs(server, ["admin"]);
    expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none" });
    expect(error?.message).toContain("the server refuses the gateway's credential (HTTP 401)");
  }
  expect(textOf(await callAs(server, ["sales"]))).toBe("ok");
  expect(server.upstream.availability().state).toBe("ready");
  Object.assign(environment, environmentOf(1));
  expect(textOf(await callAs(server, ["admin"]))).toBe("ok");
  // Nothing was tried for itself, and no call with a credential that is not its own.
  expect(ofMethod(fake, "tools/call").map(sentFamily)).toEqual(["SALES_TOKEN", "ADMIN_TOKEN"]);
});

test("every secret by role has to be set, as the server's own [S2-105]", async () => {
  await using fake = await startFakeHttp();
  const environment = { ...environmentOf(0), SALES_TOKEN: undefined };
  await using server = await openServer({ mcp: blockOf(fake), environment });
  await server.until(() => server.upstream.offer?.() !== undefined);
  expect(server.upstream.availability()).toMatchObject({
    state: "unavailable",
    reason: "secret SALES_TOKEN is not set",
  });
  const { error } = await callAs(server, ["sales"]);
  expect(error).toMatchObject({ reason: "SECRET_MISSING", effect: "none" });
  expect(fake.requests.map(sentFamily)).not.toContain("SALES_TOKEN");
});

test("a value that all callers share takes no secret by role", () => {
  const shared = { secret_ref: "TOKEN", by_role: { admin: "ADMIN_TOKEN" } };
  const words =
    "is not for this value, which is the same for all callers; a credential by role is `auth.bearer` of a remote server";
  expect(problemsOf({ mcp: { command: "npx", env: { API_TOKEN: shared } } })).toEqual([
    `/mcp/env/API_TOKEN/by_role ${words}`,
  ]);
  expect(problemsOf({ mcp: { url: "https://mcp.example.com/", headers: { "X-Key": shared } } })).toEqual([
    `/mcp/headers/X-Key/by_role ${words}`,
  ]);
  expect(problemsOf({ mcp: { command: "npx", auth: { bearer: shared } } })).toEqual([
    "/mcp/auth is for a server with `url`; remove it",
  ]);
});
