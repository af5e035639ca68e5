import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { create, toJsonString } from "@bufbuild/protobuf";
import { type Client, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { expect, onTestFinished, test } from "vitest";
import { ResultService } from "../../gen/toolgate/v1/result_service_pb.ts";
import { ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { type Tool, ToolSchema } from "../../gen/toolgate/v1/tool_pb.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createRandom } from "../core/random.ts";
import { addKey } from "../identity/fixtures.ts";
import { openGateway, temporaryFolder } from "./effects-gateway.ts";

const ROLES = ["ops", "sales", "admin"];
/** The tools of the gateway itself, for which the same rules hold. */
const BUILT_IN = ["result_read", "result_search"];

interface Rule {
  readonly allowed_roles?: readonly string[];
  readonly allowed_subjects?: readonly string[];
}

interface Toolset extends Rule {
  readonly tools: readonly string[];
  readonly includes: readonly string[];
  readonly base: boolean;
}

interface Policy {
  readonly expose: "all" | "toolsets";
  readonly toolsets: Readonly<Record<string, Toolset>>;
  readonly group: Rule;
  readonly defaults: Rule;
  readonly tools: Readonly<Record<string, Rule & { readonly toolset?: readonly string[]; readonly group?: string }>>;
  readonly callers: Readonly<Record<string, readonly string[]>>;
}

/** A random policy, in which some say nothing, as in life. */
function randomPolicy(random: () => number): Policy {
  const some = <T>(list: readonly T[], share: number): readonly T[] => list.filter(() => random() < share);
  const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] ?? expect.unreachable();
  const rule = (share: number): Rule => ({
    ...(random() < share ? { allowed_roles: [one([...ROLES, ...ROLES, "*"])] } : {}),
    ...(random() < share / 4 ? { allowed_subjects: [one(["key:c0", "key:c1", "key:*"])] } : {}),
  });
  // Names that fight for an alias, too.
  const names = ["order", "order.status", "order-status", "order_status", "t.1", "t-1", "other"];
  const sets = ["s0", "s1", "s2", "s3"];
  const toolsets = sets.map((name, n): readonly [string, Toolset] => [
    name,
    {
      tools: some(["order*", "t?1", "other", "result_*", "order.status"], 0.5),
      includes: some(sets.slice(n + 1), 0.3),
      base: random() < 0.15,
      ...rule(0.7),
    },
  ]);
  const tools = names.map((name) => {
    const toolset = some(sets, 0.15);
    const keys = { ...rule(0.25), ...(toolset.length > 0 ? { toolset } : {}) };
    return [name, random() < 0.3 ? { ...keys, group: "g" } : keys] as const;
  });
  return {
    expose: random() < 0.3 ? "toolsets" : "all",
    toolsets: Object.fromEntries(toolsets),
    group: rule(0.5),
    defaults: rule(0.3),
    tools: Object.fromEntries(tools),
    callers: Object.fromEntries([0, 1, 2].map((n) => [`c${n}`, some(ROLES, 0.5)])),
  };
}

const says = ({ allowed_roles, allowed_subjects }: Rule): boolean =>
  allowed_roles !== undefined || allowed_subjects !== undefined;

function lets({ allowed_roles = [], allowed_subjects = [] }: Rule, caller: string, roles: readonly string[]): boolean {
  return (
    allowed_roles.some((role) => role === "*" || roles.includes(role)) ||
    allowed_subjects.some((subject) => subject === `key:${caller}` || subject === "key:*")
  );
}

/** What a caller is to see, worked out in another way than the gateway does. */
function visibleTo(
  caller: string,
  { expose, toolsets, group, defaults, tools, callers }: Policy,
  { strict = true }: { readonly strict?: boolean } = {},
): readonly string[] {
  const has = (set: Toolset, name: string): boolean =>
    set.tools.some((glob) =>
      new RegExp(`^${glob.replaceAll(".", "\\.").replaceAll("*", ".*").replaceAll("?", ".")}$`).test(name),
    );
  const inSome = (name: string): readonly Toolset[] =>
    Object.entries(toolsets).flatMap(([set, all]) => {
      return has(all, name) || tools[name]?.toolset?.includes(set) === true ? [all] : [];
    });
  return [...Object.keys(tools), ...BUILT_IN].toSorted().filter((name) => {
    const own = tools[name] ?? {};
    const sets = inSome(name);
    if (expose === "toolsets" && sets.length === 0) return false;
    const shared = sets.filter(says);
    const beneath = own.group === "g" && says(group) ? group : defaults;
    const level = says(own) ? [own] : shared.length > 0 ? shared : says(beneath) ? [beneath] : [];
    const seen = level.map((rule) => lets(rule, caller, callers[caller] ?? []));
    return strict || seen.length === 0 ? !seen.includes(false) : seen.includes(true);
  });
}

interface Served {
  readonly reached: string[];
  as(caller: string): Caller;
}

interface Caller {
  readonly gateway: Client<typeof ToolGatewayService>;
  readonly results: Client<typeof ResultService>;
}

const finish = (task: () => unknown): void => onTestFinished(async () => void (await task()));

/** A gateway with this policy, and of its tools those that are named. */
async function serve(policy: Policy, only: readonly string[]): Promise<Served> {
  const reached: string[] = [];
  const upstream = createServer((request, response) => {
    reached.push(request.url?.slice(1) ?? "");
    response.setHeader("content-type", "text/plain").end(`${"long ".repeat(500)}\n`);
  });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  finish(() => upstream.close());
  const { port } = upstream.address() as AddressInfo;
  const folder = await temporaryFolder();
  finish(() => folder[Symbol.asyncDispose]());
  const headers = new Map<string, string>();
  for (const [caller, roles] of Object.entries(policy.callers)) {
    const keyFile = join(folder.path, "state", "api-keys.json");
    headers.set(caller, `Bearer ${(await addKey(keyFile, caller, roles, { clock: systemClock })).key}`);
  }
  const files = only.flatMap((name): (readonly [string, string])[] => {
    const keys = policy.tools[name];
    if (keys === undefined) return [];
    const standard = {
      name,
      description: "用于检查谁可以调用 shows who may call",
      type: "http",
      result: { max_length: 100 },
    };
    return [
      [`tools/${name}.yaml`, JSON.stringify({ ...standard, endpoint: `http://127.0.0.1:${port}/${name}`, ...keys })],
    ];
  });
  const { expose, toolsets, group, defaults } = policy;
  const gateway = await openGateway({
    folder: folder.path,
    files: Object.fromEntries(files),
    settings: {
      identity: { api_keys: true },
      results: { keep: true },
      expose,
      toolsets,
      groups: { g: group },
      defaults,
    },
  });
  finish(() => gateway[Symbol.asyncDispose]());
  const sessionManager = new Http2SessionManager(gateway.url);
  finish(() => sessionManager.abort());
  return {
    reached,
    as: (caller) => {
      const withKey: Interceptor = (next) => (request) => {
        request.header.set("authorization", headers.get(caller) ?? "");
        return next(request);
      };
      const transport = createGrpcTransport({ baseUrl: gateway.url, sessionManager, interceptors: [withKey] });
      return { gateway: createClient(ToolGatewayService, transport), results: createClient(ResultService, transport) };
    },
  };
}

/** Everything an error tells, without the ids of calls; names of headers, whose values may be times. */
async function toldBy(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "there";
  } catch (error) {
    const { code, rawMessage, details, metadata } = ConnectError.from(error);
    const parts = details.map((part) => {
      return "type" in part ? [part.type, Buffer.from(part.value).toString("latin1")] : [];
    });
    const told = JSON.stringify([code, rawMessage, parts, [...metadata.keys()].toSorted()]);
    return told.replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "ID");
  }
}

async function drained(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

/** Answers of all ways to a name. */
function waysTo(name: string, { gateway }: Caller): Promise<readonly string[]> {
  const invocation = { name };
  return Promise.all([
    toldBy(gateway.get({ name })),
    toldBy(gateway.call({ invocation: { name, validateOnly: true } })),
    // Arguments that the tools of results want are not given: one that is there says so, and is reached no further.
    toldBy(gateway.call({ invocation })),
    toldBy(drained(gateway.callStream({ invocation }))),
  ]);
}

async function listed({ gateway }: Caller): Promise<readonly Tool[]> {
  const tools: Tool[] = [];
  let pageToken = "";
  do {
    const page = await gateway.list({ pageSize: 3, pageToken });
    expect(page.problems).toEqual([]);
    tools.push(...page.tools);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return tools;
}

async function watched({ gateway }: Caller): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const { event } of gateway.watch({})) {
    if (event.case === "synced") break;
    names.push(event.case === "upserted" ? event.value.name : `${event.case}`);
  }
  return names.toSorted();
}

/** All that a caller reads of a tool but the times of its making. */
function shown(tool: Tool): string {
  return toJsonString(
    ToolSchema,
    create(ToolSchema, { ...tool, createTime: undefined, updateTime: undefined }),
  ).replaceAll(/127\.0\.0\.1:\d+/g, "UPSTREAM");
}

const SEEDS = [1, 2, 3];

test("the random policies tell rules apart that several toolsets have", () => {
  const telling = SEEDS.filter((seed) => {
    const policy = randomPolicy(createRandom(seed));
    return Object.keys(policy.callers).some((caller) => {
      return visibleTo(caller, policy).length !== visibleTo(caller, policy, { strict: false }).length;
    });
  });
  expect(telling.length).toBeGreaterThan(1);
});

test.each(SEEDS)(
  "over the wire every way agrees for every caller, and what is hidden leaves no trace: random policy %i [S2-52, S2-55, S2-56, X-D09]",
  {
    timeout: 120_000,
  },
  async (seed) => {
    const policy = randomPolicy(createRandom(seed));
    const names = [...Object.keys(policy.tools), ...BUILT_IN];
    const whole = await serve(policy, names);
    for (const caller of Object.keys(policy.callers)) {
      const visible = visibleTo(caller, policy);
      const one = whole.as(caller);
      const tools = await listed(one);
      expect(tools.map(({ name }) => name)).toEqual(visible);
      expect(await watched(one)).toEqual(visible);
      // The same gateway where the tools that the caller may not see have never been.
      const alone = await serve(policy, visible);
      const other = alone.as(caller);
      expect(tools.map((tool) => ({ ...JSON.parse(shown(tool)), etag: "" }))).toEqual(
        (await listed(other)).map((tool) => ({ ...JSON.parse(shown(tool)), etag: "" })),
      );
      whole.reached.length = 0;
      const hidden = [...names.filter((name) => !visible.includes(name)), "order_statu", "nobody_has_this"];
      for (const name of hidden) expect(await waysTo(name, one)).toEqual(await waysTo(name, other));
      // A name that is hidden may be the alias of a tool that is not.
      for (const name of whole.reached) expect(visible).toContain(name);
      for (const { name, alias } of tools) {
        for (const either of new Set([name, alias])) {
          expect(await waysTo(either, one)).toEqual(await waysTo(either, other));
          expect((await one.gateway.get({ name: either })).tool?.name).toBe(name);
        }
        if (!BUILT_IN.includes(name)) expect(await waysTo(alias, one)).toEqual(Array(4).fill("there"));
      }
    }
  },
);

test("what a result was kept of is read by whoever called, and for all others a handle is one that never was", async () => {
  const open = { allowed_roles: ["*"] };
  const policy: Policy = {
    expose: "all",
    toolsets: {},
    group: {},
    defaults: {},
    tools: { order: open, other: { allowed_roles: ["admin"] } },
    callers: { c0: ["admin"], c1: [], c2: ["admin"] },
  };
  const served = await serve(policy, ["order", "other"]);
  const owner = served.as("c0");
  for (const name of ["order", "other"]) {
    const { result } = await owner.gateway.call({ invocation: { name } });
    const handle = result?.truncation?.handle ?? "";
    expect(handle).toMatch(/^result:/);
    expect((await owner.results.read({ handle })).result?.tool).toBe(name);
    const last = handle.at(-1) === "a" ? "b" : "a";
    const never = handle.slice(0, -1) + last;
    for (const caller of ["c1", "c2"]) {
      const told = await toldBy(served.as(caller).results.read({ handle }));
      expect(told).not.toBe("there");
      expect(told.replaceAll(handle, "HANDLE")).toBe(
        (await toldBy(served.as(caller).results.read({ handle: never }))).replaceAll(never, "HANDLE"),
      );
    }
  }
});
