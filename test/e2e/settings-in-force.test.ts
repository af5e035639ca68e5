import { randomUUID } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { POLICY_SETTINGS } from "../../src/config/policy-settings.ts";
import { type Ended, toolgate } from "./cli-process.ts";
import { type EchoUpstream, startEchoUpstream } from "./echo-upstream.ts";
import { createGatewayClient, type GatewayClient, reasonOf, retryUntil, textOf, valueOf } from "./gateway-client.ts";
import { type GatewayProcess, startGateway } from "./gateway-process.ts";
import { CHANGES, type Settings, TOKENS } from "./setting-changes.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";

/** What the schema of a declaration says of a key. */
interface KeySchema {
  readonly "x-not-supported"?: boolean;
  readonly properties?: Readonly<Record<string, KeySchema>>;
}

const running = new AsyncDisposableStack();
const views = { before: new Map<string, Settings>(), after: new Map<string, Settings>() };
let upstream: EchoUpstream;
let process_: GatewayProcess;
let gateway: GatewayClient;

/** A tool is named like its key. */
function declare(key: string, settings: Settings): string {
  const declaration = {
    name: key,
    description: "用于检查配置是否立即生效 shows which settings are in force",
    type: "http",
    endpoint: `http://UP/echo/${key}`,
    ...settings,
  };
  return JSON.stringify(declaration)
    .replace("//UP", `//127.0.0.1:${upstream.port}`)
    .replace("//MUTE", `//127.0.0.1:${upstream.mutePort}`);
}

const toolFile = (key: string): string => join(process_.folder, "tools", `${key}.yaml`);

/** Everything of a tool that a setting can show in: how it is listed, what its upstream got, what its caller gets. */
async function view(key: string): Promise<Settings> {
  const { tool } = await gateway.service.get({ name: key });
  const outcome = await gateway.call(key).then(
    (response) => ({
      value: valueOf(response),
      text: textOf(response),
      failure: response.result?.failure?.reason,
      truncation: response.result?.truncation?.mode,
    }),
    (error: unknown) => ({ reason: reasonOf(error), message: ConnectError.from(error).rawMessage }),
  );
  const { title, description, labels, toolsets, hints, delivery, outputSchemaJson: outputSchema } = tool ?? {};
  return { title, description, labels, toolsets, hints, delivery, outputSchema, ...upstream.last(key), ...outcome };
}

async function viewAll(into: Map<string, Settings>): Promise<void> {
  await Promise.all(CHANGES.map(async ({ key }) => into.set(key, await view(key))));
}

async function etags(): Promise<ReadonlyMap<string, string>> {
  const { tools } = await gateway.service.list({ pageSize: 100 });
  return new Map(tools.map(({ name, etag }) => [name, etag]));
}

function cli(...argv: string[]): Promise<Ended> {
  return toolgate(argv, { env: { TOOLGATE_ADDRESS: `127.0.0.1:${process_.port}` } });
}

beforeAll(async () => {
  upstream = running.use(await startEchoUpstream());
  const tools = Object.fromEntries(CHANGES.map(({ key, before }) => [`${key}.yaml`, declare(key, before)]));
  process_ = running.use(await startGateway({ tools, env: TOKENS }));
  gateway = running.use(createGatewayClient(process_.port));
  await viewAll(views.before);
  const old = await etags();
  await Promise.all(CHANGES.map(({ key, after }) => writeFile(toolFile(key), declare(key, after))));
  await retryUntil(etags, (now) => CHANGES.every(({ key }) => now.get(key) !== old.get(key)));
  await viewAll(views.after);
}, START_TIMEOUT_MS);

afterAll(async () => {
  await running.disposeAsync();
});

test.each(CHANGES)("a changed `$key` is in force at the next call [S2-124]", ({ key, seen }) => {
  expect(views.before.get(key)).not.toMatchObject(seen);
  expect(views.after.get(key)).toMatchObject(seen);
});

test("a changed `name` is in force at the next call [S2-124]", async () => {
  await writeFile(toolFile("renamed"), declare("name_before", {}));
  await retryUntil(
    () => gateway.call("name_before"),
    () => true,
  );
  await writeFile(toolFile("renamed"), declare("name_after", {}));
  await retryUntil(
    () => gateway.call("name_after"),
    () => true,
  );
  const gone = await gateway.call("name_before").catch((error: unknown) => error);
  expect(reasonOf(gone)).toBe("TOOL_NOT_FOUND");
});

test("a changed `allow_private` is in force at once [S2-124]", { timeout: START_TIMEOUT_MS }, async () => {
  for (const allowed of [true, false]) {
    await writeFile(toolFile("allow_private"), declare("allow_private", { allow_private: allowed }));
    const explained = /^allow_private +\S+ +(\w+)$/m;
    await expect
      .poll(async () => explained.exec((await cli("explain", "allow_private")).stdout)?.[1], { timeout: 60_000 })
      .toBe(String(allowed));
  }
});

test("a changed `pool` is in force at the next call [S2-124]", { timeout: START_TIMEOUT_MS }, async () => {
  // Of an origin of its own, since its tools share the limits.
  const ask = async (mark: string): Promise<unknown> => {
    const call = gateway.call("pool", { mark });
    return call.then(() => upstream.last(mark)?.clientPort, reasonOf);
  };
  const declarePool = async (pool: Settings, seen: (answers: readonly unknown[]) => boolean): Promise<void> => {
    const params = [{ name: "mark", type: "string", required: true }];
    const endpoint = `http://pool.localhost:${upstream.port}/echo/{mark}`;
    await writeFile(toolFile("pool"), declare("pool", { endpoint, params, pool }));
    const askAll = async (): Promise<readonly unknown[]> => {
      const [first, second] = await Promise.all([ask(randomUUID()), ask(randomUUID())]);
      return [first, second, await ask(randomUUID())];
    };
    await retryUntil(askAll, seen);
  };
  const refused = "UPSTREAM_POOL_EXHAUSTED";
  await declarePool({ max_connections: 1, max_waiting: 0 }, (answers) => answers.includes(refused));
  await declarePool({ max_connections: 1, max_waiting: 1, max_idle: 1 }, ([a, b, c]) => a === b && b === c);
  await declarePool({ max_connections: 2, max_waiting: 0, max_idle: 0 }, (answers) => {
    return !answers.includes(refused) && new Set(answers).size === 3;
  });
});

test("every key in force has been changed [S2-124]", async () => {
  const [http] = JSON.parse(await readFile("docs/schema/tool.schema.json", "utf8")).oneOf;
  const keys: string[] = [];
  const walk = (properties: Readonly<Record<string, KeySchema>>, path: string): void => {
    for (const [name, schema] of Object.entries(properties)) {
      if (schema["x-not-supported"] === true) continue;
      if (schema.properties === undefined) keys.push(`${path}${name}`);
      else walk(schema.properties, `${path}${name}.`);
    }
  };
  walk(http.properties, "");
  // Policies have a test of their own, and so have those who may call and what a pool does. `reconcile` shows only where an answer was lost;
  // `allow_private` only where a name leads to a private address, and in explain. `type` has one value so far.
  const pool = ["pool.max_connections", "pool.max_waiting", "pool.max_idle"];
  const access = ["allowed_roles", "allowed_subjects"];
  const apart = [
    "name",
    "type",
    "allow_private",
    "reconcile",
    "group",
    // Of results that are kept: results.test.ts shows them.
    "argument_handles",
    "result.handle",
    ...pool,
    ...access,
    ...Object.keys(POLICY_SETTINGS),
  ];
  // Tokens need a server that gives them.
  const known = keys.filter((key) => !apart.includes(key) && !key.startsWith("auth.client_credentials."));
  expect(CHANGES.map(({ key }) => key).toSorted()).toEqual(known.toSorted());
});

test("after a reload the list has the tool, and explain the policy now in force [S2-123, S2-125]", {
  timeout: START_TIMEOUT_MS,
}, async () => {
  const printed = async (...argv: string[]): Promise<string> => (await cli(...argv)).stdout;
  const declared = (read: string): string =>
    `${declare("policy", {}).slice(0, -1)},\n"timeout": {"read": "${read}"}}\n`;
  await writeFile(toolFile("policy"), declared("10s"));
  await retryUntil(
    () => gateway.service.get({ name: "policy" }),
    () => true,
  );
  expect(await printed("tool", "list", "--name", "policy")).toMatch(/^policy +active +http +file:policy\.yaml /m);
  expect(await printed("explain", "policy")).toMatch(/^timeout\.read +file:policy\.yaml:2 +10s$/m);
  const { tool } = await gateway.service.get({ name: "policy" });
  await writeFile(toolFile("policy"), declared("20s"));
  await retryUntil(
    () => gateway.service.get({ name: "policy" }),
    (now) => now.tool?.etag !== tool?.etag,
  );
  expect(await printed("tool", "list", "--name", "policy")).toMatch(/^policy +active +http +file:policy\.yaml /m);
  expect(await printed("explain", "policy")).toMatch(/^timeout\.read +file:policy\.yaml:2 +20s$/m);
  expect(process_.output()).toMatch(/"source":"file:policy\.yaml"[^\n]*"changed":\["policy"\][^\n]*config reloaded/);
});

test("list and doctor show a file that is not loaded, with the rule that leaves it out [S2-122]", {
  timeout: START_TIMEOUT_MS,
}, async () => {
  const file = join(process_.folder, "tools", "left_out.txt");
  await writeFile(file, declare("left_out", {}));
  await writeFile(join(process_.folder, "outside.yaml"), declare("outside", {}));
  await retryUntil(
    () => gateway.service.list({}),
    ({ problems }) => problems.length > 0,
  );
  const rule = /left_out\.txt.*ignored: no include rule matches \(tools\.include: /;
  expect((await cli("tool", "list")).stderr).toMatch(rule);
  expect((await cli("doctor")).stdout).toMatch(rule);
  for (const name of ["left_out", "outside"]) {
    const error = await gateway.call(name).catch((caught: unknown) => caught);
    expect(reasonOf(error)).toBe("TOOL_NOT_FOUND");
  }
  await rm(file);
});
