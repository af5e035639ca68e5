import { join } from "node:path";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { Message } from "../adapters/mcp/fake-behaviour.ts";
import { startFakeHttp } from "../adapters/mcp/fake-http.ts";
import { createRandom } from "../core/random.ts";
import { addKey } from "../identity/fixtures.ts";
import { openGateway, temporaryFolder } from "./effects-gateway.ts";
import { reasonOf } from "./gateway-client.ts";

const TOOLS = ["one", "two", "three", "four", "five"];
const ROLES = ["admin", "sales", "support"];
const TOKENS = { COMMON: "common-0123456789", ADMIN: "admin-0123456789", SALES: "sales-0123456789" };

/** What a caller with these roles has its calls made with. */
function tokenFor(roles: readonly string[]): string {
  if (roles.includes("admin")) return TOKENS.ADMIN;
  return roles.includes("sales") ? TOKENS.SALES : TOKENS.COMMON;
}

function argumentsOf({ params = {} }: Message): Readonly<Record<string, unknown>> {
  return (params["arguments"] ?? {}) as Readonly<Record<string, unknown>>;
}

function clientWith(url: string, key: string): Client<typeof ToolGatewayService> {
  const authorize: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${key}`);
    return next(request);
  };
  return createClient(ToolGatewayService, createGrpcTransport({ baseUrl: url, interceptors: [authorize] }));
}

test("of a server with a credential by role each caller sees what it can call and nothing else, and every call has its own role's credential [S2-105, S2-55]", {
  timeout: 60_000,
}, async () => {
  const random = createRandom(23);
  await using folder = await temporaryFolder();
  const keyFile = join(folder.path, "state", "api-keys.json");
  await using fake = await startFakeHttp({
    tools: TOOLS.map((name) => ({ name, inputSchema: { type: "object", properties: { who: { type: "string" } } } })),
    every: "whoever",
  });
  const allowed = new Map(TOOLS.map((name) => [name, ROLES.filter(() => random() < 0.5)]));
  const overrides = Object.fromEntries(
    [...allowed].map(([name, roles]) => [name, roles.length === 0 ? {} : { allowed_roles: roles }]),
  );
  const bearer = { secret_ref: "COMMON", by_role: { admin: "ADMIN", sales: "SALES" } };
  const mcp = { url: fake.url, protocol: "legacy", auth: { bearer } };
  await using gateway = await openGateway({
    folder: folder.path,
    files: { "tools/shop.yaml": JSON.stringify({ name: "shop", type: "mcp", mcp, tools: { overrides } }) },
    env: TOKENS,
    settings: { identity: { api_keys: true } },
  });
  const callers = await Promise.all(
    [[], ["admin"], ["sales"], ["support"], ["sales", "support"], ["admin", "sales"]].map(async (roles, i) => {
      const { key } = await addKey(keyFile, `caller${i}`, roles, { clock: systemClock });
      return { who: `caller${i}`, roles, client: clientWith(gateway.url, key) };
    }),
  );
  const listed = async ({ client }: (typeof callers)[number]): Promise<readonly string[]> =>
    (await client.list({})).tools.map(({ name }) => name).filter((name) => name.startsWith("shop/"));
  const mayCall = (roles: readonly string[]): readonly string[] =>
    TOOLS.filter((name) => {
      const rule = allowed.get(name) ?? [];
      return rule.length === 0 || rule.some((role) => roles.includes(role));
    }).map((name) => `shop/${name}`);
  for (const caller of callers) {
    await expect.poll(() => listed(caller), { timeout: 30_000 }).toEqual(mayCall(caller.roles).toSorted());
  }
  const outcomes = await Promise.all(
    callers.flatMap(({ who, roles, client }) =>
      TOOLS.map(async (name) => {
        const call = client.call({
          invocation: { name: `shop/${name}`, arguments: { case: "argumentsJson", value: JSON.stringify({ who }) } },
        });
        return [who, name, await call.then(() => "OK", reasonOf), mayCall(roles).includes(`shop/${name}`)] as const;
      }),
    ),
  );
  for (const [, , outcome, may] of outcomes) expect(outcome).toBe(may ? "OK" : "TOOL_NOT_FOUND");
  const seen = fake.requests
    .filter(({ message }) => message.method === "tools/call")
    .map(({ message, headers }) => ({
      who: String(argumentsOf(message)["who"]),
      authorization: headers.authorization,
    }));
  expect(seen).toHaveLength(outcomes.filter(([, , outcome]) => outcome === "OK").length);
  for (const { who, authorization } of seen) {
    const { roles } = callers.find((caller) => caller.who === who) ?? expect.unreachable();
    expect(authorization).toBe(`Bearer ${tokenFor(roles)}`);
  }
});
