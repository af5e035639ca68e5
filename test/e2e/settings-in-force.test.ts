import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { generatedDocuments } from "../../docs/generate.ts";
import { TruncationMode } from "../../gen/toolgate/v1/call_pb.ts";
import { Delivery } from "../../gen/toolgate/v1/tool_pb.ts";
import { toolgate } from "./cli-process.ts";
import { type EchoUpstream, startEchoUpstream } from "./echo-upstream.ts";
import { createGatewayClient, type GatewayClient, reasonOf, retryUntil, textOf, valueOf } from "./gateway-client.ts";
import { type GatewayProcess, startGateway } from "./gateway-process.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";

type Settings = Readonly<Record<string, unknown>>;

/** A key of a declaration with two values, and what a caller sees once the second is in force and not before. */
interface Change {
  readonly key: string;
  readonly before: Settings;
  readonly after: Settings;
  readonly seen: Settings;
}

const ID = { name: "id", type: "string", default: "7" };
const ENVELOPE = { success_field: "code", success_value: 0 };

/** `UP` and `MUTE` in an endpoint stand for the upstream and for one that takes connections and says nothing. */
const CHANGES: readonly Change[] = [
  { key: "title", before: { title: "old" }, after: { title: "new" }, seen: { title: "new" } },
  {
    key: "description",
    before: { description: "修改前的描述 the description before" },
    after: { description: "修改后的描述 the description after" },
    seen: { description: "修改后的描述 the description after" },
  },
  { key: "enabled", before: { enabled: true }, after: { enabled: false }, seen: { reason: "TOOL_DISABLED" } },
  { key: "labels", before: { labels: { a: "1" } }, after: { labels: { a: "2" } }, seen: { labels: { a: "2" } } },
  ...["read_only", "destructive", "idempotent", "open_world"].map((hint) => ({
    key: `hints.${hint}`,
    before: { hints: { [hint]: true } },
    after: { hints: { [hint]: false } },
    seen: { hints: { [hint.replace(/_(.)/, (_, letter: string) => letter.toUpperCase())]: false } },
  })),
  {
    key: "delivery",
    before: { delivery: "conclusive" },
    after: { delivery: "incremental" },
    seen: { delivery: Delivery.INCREMENTAL },
  },
  {
    key: "params",
    before: { params: [ID] },
    after: { params: [{ ...ID, default: "8" }] },
    seen: { target: "/echo/params?id=8" },
  },
  {
    key: "input_schema",
    before: { input_schema: { properties: { id: { type: "string", default: "7" } } } },
    after: { input_schema: { properties: { id: { type: "string", default: "8" } } } },
    seen: { target: "/echo/input_schema?id=8" },
  },
  {
    key: "output_schema",
    before: { output_schema: { type: "object" } },
    after: { output_schema: { type: "array" } },
    seen: { outputSchema: '{"type":"array"}' },
  },
  {
    key: "endpoint",
    before: { endpoint: "http://UP/echo/endpoint/old" },
    after: { endpoint: "http://UP/echo/endpoint/new" },
    seen: { target: "/echo/endpoint/new" },
  },
  { key: "method", before: { method: "POST" }, after: { method: "PUT" }, seen: { method: "PUT" } },
  { key: "query", before: { query: { q: "1" } }, after: { query: { q: "2" } }, seen: { target: "/echo/query?q=2" } },
  {
    key: "headers",
    before: { headers: { "X-Part": "old" } },
    after: { headers: { "X-Part": "new" } },
    seen: { headers: { "x-part": "new" } },
  },
  ...["body", "request_body"].map((key) => ({
    key,
    before: { method: "POST", params: [ID], [key]: { id: "$id" } },
    after: { method: "POST", params: [ID], [key]: { order: "$id" } },
    seen: { body: '{"order":"7"}' },
  })),
  {
    key: "auth.header_name",
    before: { auth: { header_name: "X-Old", secret_ref: "OLD_TOKEN" } },
    after: { auth: { header_name: "X-New", secret_ref: "OLD_TOKEN" } },
    seen: { headers: { "x-new": "old-token-0123456789" } },
  },
  {
    key: "auth.secret_ref",
    before: { auth: { header_name: "X-Key", secret_ref: "OLD_TOKEN" } },
    after: { auth: { header_name: "X-Key", secret_ref: "NEW_TOKEN" } },
    seen: { headers: { "x-key": "new-token-0123456789" } },
  },
  {
    key: "auth.prefix",
    before: { auth: { header_name: "X-Key", secret_ref: "OLD_TOKEN", prefix: "Old" } },
    after: { auth: { header_name: "X-Key", secret_ref: "OLD_TOKEN", prefix: "New" } },
    seen: { headers: { "x-key": "New old-token-0123456789" } },
  },
  {
    key: "result.format",
    before: { result: { format: "json" } },
    after: { result: { format: "text" } },
    seen: { text: expect.stringMatching(/^\{"code":0,/) },
  },
  {
    key: "result.success_field",
    before: { result: ENVELOPE },
    after: { result: { ...ENVELOPE, success_field: "data.flag" } },
    seen: { failure: "TOOL_FAILED" },
  },
  {
    key: "result.success_value",
    before: { result: ENVELOPE },
    after: { result: { ...ENVELOPE, success_value: 1 } },
    seen: { failure: "TOOL_FAILED" },
  },
  {
    key: "result.data_field",
    before: { result: { data_field: "data.text" } },
    after: { result: { data_field: "data.flag" } },
    seen: { value: 1 },
  },
  {
    key: "result.max_length",
    before: { result: { data_field: "data.text", max_length: 90 } },
    after: { result: { data_field: "data.text", max_length: 60 } },
    seen: { text: expect.stringMatching(/^.{1,60}$/s) },
  },
  {
    key: "result.truncation",
    before: { result: { data_field: "data.text", max_length: 60, truncation: "head" } },
    after: { result: { data_field: "data.text", max_length: 60, truncation: "tail" } },
    seen: { truncation: TruncationMode.TAIL },
  },
  {
    key: "timeout.connect",
    before: { endpoint: "https://MUTE/", timeout: { connect: "300ms" } },
    after: { endpoint: "https://MUTE/", timeout: { connect: "200ms" } },
    seen: { reason: "UPSTREAM_TIMEOUT", message: expect.stringMatching(/ 200 ms \(timeout\.connect\)/) },
  },
  {
    key: "timeout.read",
    before: { endpoint: "http://UP/silent", timeout: { read: "300ms" } },
    after: { endpoint: "http://UP/silent", timeout: { read: "200ms" } },
    seen: { reason: "UPSTREAM_TIMEOUT", message: expect.stringMatching(/ 200 ms \(timeout\.read\)/) },
  },
  {
    key: "timeout.idle",
    before: { endpoint: "http://UP/stuck", timeout: { idle: "300ms" } },
    after: { endpoint: "http://UP/stuck", timeout: { idle: "200ms" } },
    seen: { reason: "UPSTREAM_TIMEOUT", message: expect.stringMatching(/ 200 ms \(timeout\.idle\)/) },
  },
  {
    key: "timeout.total",
    before: { endpoint: "http://UP/silent", timeout: { total: "300ms" } },
    after: { endpoint: "http://UP/silent", timeout: { total: "200ms" } },
    seen: { reason: "CALL_DEADLINE_EXCEEDED", message: expect.stringContaining("200 ms") },
  },
];

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
  const { title, description, labels, hints, delivery, outputSchemaJson: outputSchema } = tool ?? {};
  return { title, description, labels, hints, delivery, outputSchema, ...upstream.last(key), ...outcome };
}

async function viewAll(into: Map<string, Settings>): Promise<void> {
  await Promise.all(CHANGES.map(async ({ key }) => into.set(key, await view(key))));
}

async function etags(): Promise<ReadonlyMap<string, string>> {
  const { tools } = await gateway.service.list({ filter: { includeDisabled: true }, pageSize: 100 });
  return new Map(tools.map(({ name, etag }) => [name, etag]));
}

beforeAll(async () => {
  upstream = running.use(await startEchoUpstream());
  const tools = Object.fromEntries(CHANGES.map(({ key, before }) => [`${key}.yaml`, declare(key, before)]));
  const env = { OLD_TOKEN: "old-token-0123456789", NEW_TOKEN: "new-token-0123456789" };
  process_ = running.use(await startGateway({ tools, env }));
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

test("every key in force has been changed [S2-124]", () => {
  const page = generatedDocuments().find(({ path }) => path === "docs/schema/tool.schema.json");
  const [http] = JSON.parse(page?.text ?? "").oneOf;
  const keys: string[] = [];
  const walk = (properties: Record<string, any>, path: string): void => {
    for (const [name, schema] of Object.entries(properties)) {
      if (schema["x-not-supported"] === true) continue;
      if (schema.properties === undefined) keys.push(`${path}${name}`);
      else walk(schema.properties, `${path}${name}.`);
    }
  };
  walk(http.properties, "");
  // `type` has one value so far.
  expect(new Set(["name", "type", ...CHANGES.map(({ key }) => key)])).toEqual(new Set(keys));
});

test("after a reload the list has the tool, and explain the policy now in force [S2-123, S2-125]", {
  timeout: START_TIMEOUT_MS,
}, async () => {
  const cli = async (...argv: string[]): Promise<string> => {
    const ended = await toolgate(argv, { env: { TOOLGATE_ADDRESS: `127.0.0.1:${process_.port}` } });
    expect(ended).toMatchObject({ code: 0 });
    return ended.stdout;
  };
  const declared = (read: string): string =>
    `${declare("policy", {}).slice(0, -1)},\n"timeout": {"read": "${read}"}}\n`;
  await writeFile(toolFile("policy"), declared("10s"));
  await retryUntil(
    () => gateway.service.get({ name: "policy" }),
    () => true,
  );
  expect(await cli("tool", "list", "--name", "policy")).toMatch(/^policy +active +http +file:policy\.yaml /m);
  expect(await cli("explain", "policy")).toMatch(/^timeout\.read +file:policy\.yaml:2 +10s$/m);
  const { tool } = await gateway.service.get({ name: "policy" });
  await writeFile(toolFile("policy"), declared("20s"));
  await retryUntil(
    () => gateway.service.get({ name: "policy" }),
    (now) => now.tool?.etag !== tool?.etag,
  );
  expect(await cli("tool", "list", "--name", "policy")).toMatch(/^policy +active +http +file:policy\.yaml /m);
  expect(await cli("explain", "policy")).toMatch(/^timeout\.read +file:policy\.yaml:2 +20s$/m);
  expect(process_.output()).toMatch(/"source":"file:policy\.yaml"[^\n]*"changed":\["policy"\][^\n]*config reloaded/);
});

test("list and doctor show a file that is not loaded, with the rule that leaves it out [S2-122]", {
  timeout: START_TIMEOUT_MS,
}, async () => {
  const env = { TOOLGATE_ADDRESS: `127.0.0.1:${process_.port}` };
  const file = join(process_.folder, "tools", "left_out.txt");
  await writeFile(file, declare("left_out", {}));
  await writeFile(join(process_.folder, "outside.yaml"), declare("outside", {}));
  await retryUntil(
    () => gateway.service.list({}),
    ({ problems }) => problems.length > 0,
  );
  const rule = /left_out\.txt.*ignored: no include rule matches \(tools\.include: /;
  const listed = await toolgate(["tool", "list"], { env });
  expect(listed.stdout).toMatch(rule);
  expect((await toolgate(["doctor"], { env })).stdout).toMatch(rule);
  for (const name of ["left_out", "outside"]) {
    const error = await gateway.call(name).catch((caught: unknown) => caught);
    expect(reasonOf(error)).toBe("TOOL_NOT_FOUND");
  }
  await rm(file);
});
