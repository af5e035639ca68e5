import { randomUUID } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { generatedDocuments } from "../../docs/generate.ts";
import { OperatorService, type PolicyValue } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { POLICY_SETTINGS } from "../../src/config/policy-settings.ts";
import { type EchoUpstream, startEchoUpstream } from "./echo-upstream.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { reasonOf, retryUntil, valueOf } from "./gateway-client.ts";
import { CHANGES, type Change, type Settings, TOKENS } from "./setting-changes.ts";
import { REPOSITORY } from "./spawned.ts";

/** A change of one key of a parameter. */
interface ParamChange extends Change {
  /** Of the call. */
  readonly args?: Settings;
}

type Phase = "before" | "after";

/** What the parameter `p` is sent as, in the query. */
const sentAs = (value: string): Settings => ({ target: expect.stringMatching(`\\?p=${value}$`) });

/** How `p` is shown to whoever lists the tools. */
const listedAs = (schema: Settings): Settings => ({ inputSchema: { properties: { p: schema } } });

/** A change of a key of the parameter `p`, which is a text unless it says another type. */
function param(
  key: string,
  [before, after]: readonly [before: Settings, after: Settings],
  seen: Settings,
  args: Settings = {},
): ParamChange {
  const params = (keys: Settings): Settings => ({ params: [{ name: "p", type: "string", ...keys }] });
  return { key: `params.${key}`, before: params(before), after: params(after), seen, args };
}

/** A change of a key of a parameter that goes to the JSON body, whose second value is the one that allows `value`. */
function inBody(
  type: string,
  key: string,
  values: readonly [before: unknown, after: unknown],
  value: unknown,
): ParamChange {
  const declared = values.map(
    (setting): Settings => ({ method: "POST", params: [{ name: "p", type, [key]: setting }] }),
  );
  const [before = {}, after = {}] = declared;
  return { key: `params.${key}`, before, after, args: { p: value }, seen: { body: JSON.stringify({ p: value }) } };
}

const PARAM_CHANGES: readonly ParamChange[] = [
  param("name", [{ name: "a", default: "7" }, { default: "7" }], sentAs("7")),
  param("type", [{ type: "string" }, { type: "integer" }], sentAs("5"), { p: 5 }),
  param("required", [{ required: false }, { required: true }], { reason: "ARGUMENTS_INVALID" }),
  param("default", [{ default: "7" }, { default: "8" }], sentAs("8")),
  param("description", [{ description: "old" }, { description: "new" }], listedAs({ description: "new" })),
  param("enum", [{ enum: ["a"] }, { enum: ["b"] }], sentAs("b"), { p: "b" }),
  param("examples", [{ examples: ["a"] }, { examples: ["b"] }], listedAs({ examples: ["b"] })),
  param("format", [{ format: "email" }, { format: "date" }], sentAs("2024-10-01"), { p: "2024-10-01" }),
  param("pattern", [{ pattern: "^a" }, { pattern: "^b" }], sentAs("b"), { p: "b" }),
  param("minLength", [{ minLength: 2 }, { minLength: 1 }], sentAs("b"), { p: "b" }),
  param("maxLength", [{ maxLength: 1 }, { maxLength: 2 }], sentAs("bb"), { p: "bb" }),
  param("contentEncoding", [{}, { contentEncoding: "base64" }], listedAs({ contentEncoding: "base64" })),
  inBody("string", "nullable", [false, true], null),
  inBody("integer", "minimum", [6, 5], 5),
  inBody("integer", "maximum", [4, 5], 5),
  inBody("array", "items", [{ type: "string" }, { type: "integer" }], [5]),
  inBody("object", "properties", [{ a: { type: "string" } }, { a: { type: "integer" } }], { a: 5 }),
];

/** The others are called before and after their change in another test; here they are explained. */
const ALL_CHANGES: readonly ParamChange[] = [...CHANGES, ...PARAM_CHANGES];

/** Keys whose effect is not in a table, with the test that proves it. */
const IN_OTHER_TESTS: Readonly<Record<string, readonly [file: string, words: string]>> = {
  name: ["test/e2e/settings-in-force.test.ts", "a changed `name` is in force"],
  allowed_roles: ["test/e2e/access.test.ts", "a changed `%s` decides at once"],
  allowed_subjects: ["test/e2e/access.test.ts", "a changed `%s` decides at once"],
  reconcile: ["test/e2e/idempotency.test.ts", "`reconcile` is asked what became of a call"],
  argument_handles: ["test/e2e/results.test.ts", "is replaced by what it names"],
  "result.handle": ["test/e2e/results.test.ts", "`result.handle: false` keeps a tool's results from the disk"],
  group: ["test/e2e/effects-policies.test.ts", "`%s` of a group has an effect"],
  ...Object.fromEntries(
    Object.keys(POLICY_SETTINGS).map((key) => [key, ["test/e2e/effects-policies.test.ts", "Object.entries(POLICIES)"]]),
  ),
  ...Object.fromEntries(
    Object.entries({
      command: ["start", "a missing folder, a folder that is a file"],
      args: ["arguments", "each placeholder stays within one entry"],
      shell: ["arguments", "a shell is run only where the operator allows it"],
      cwd: ["arguments", "a relative command begins at `cwd`"],
      env: ["environment", "a program gets the few variables of the list"],
      inherit_env: ["environment", "a program gets the few variables of the list"],
      stdin: ["arguments", "standard input is a text, JSON, or all arguments"],
      encoding: ["output", "output in %s is decoded as declared"],
      success_codes: ["output", "`success_codes` says which exit codes are no failure"],
      allow_dash: ["arguments", "`allow_dash` lets values begin with a dash"],
      stream: ["output", "`stream: lines` passes whole lines on"],
      "worker.processes": ["worker", "`worker.processes` is how many run at a time"],
      "worker.max_calls": ["worker", "`worker.max_calls` is how many calls one answers"],
    }).map(([key, [file, words]]) => [key, [`test/adapters/script/${file}.test.ts`, words]]),
  ),
  ...Object.fromEntries(
    Object.entries({
      command: ["lifecycle", "a command that is not there is said so"],
      args: ["lifecycle", "a server that dies as it starts is told with its words"],
      cwd: ["keys", "`mcp.cwd` is where the program runs"],
      env: ["keys", "`mcp.env` and `mcp.inherit_env` what it gets besides"],
      inherit_env: ["keys", "`mcp.env` and `mcp.inherit_env` what it gets besides"],
      url: ["remote", "a remote server's tools are listed and called"],
      headers: ["remote", "with its headers filled in and not shown"],
      "auth.bearer.secret_ref": ["remote", "a credential that the server refuses is said so"],
      "auth.bearer.by_role": ["by-role", "each call goes out with the credential of its caller"],
      "auth.client_credentials.token_url": ["access-tokens", "a token is fetched once"],
      "auth.client_credentials.client_id": ["access-tokens", "a token is fetched once"],
      "auth.client_credentials.issuer": ["authorization", "a server cannot have the secret sent to whom it likes"],
      "auth.client_credentials.secret_ref": ["access-tokens", "a token is fetched once"],
      "auth.client_credentials.scopes": ["access-tokens", 'scope: "a b"'],
      "auth.client_credentials.client_auth": ["access-tokens", 'form.get("client_secret")'],
      "auth.client_credentials.resource": ["access-tokens", 'form.get("resource")'],
      "auth.oauth.client_id": ["login", "a client that was registered by hand shows its secret"],
      "auth.oauth.secret_ref": ["login", "a client that was registered by hand shows its secret"],
      "auth.oauth.client_auth": ["login", "a client that was registered by hand shows its secret"],
      "auth.oauth.client_metadata_url": ["login", "a client's metadata document is its name"],
      "auth.oauth.issuer": ["login", "do not name the issuer"],
      "auth.oauth.scopes": ["login", "`scopes`, `resource` and `redirect_port` are used as they are declared"],
      "auth.oauth.resource": ["login", "`scopes`, `resource` and `redirect_port` are used as they are declared"],
      "auth.oauth.redirect_port": ["login", "`scopes`, `resource` and `redirect_port` are used as they are declared"],
      allow_private: ["keys", "`mcp.allow_private` lets a name lead to an address that is not public"],
      "egress.allow": ["keys", "`mcp.egress` and `egress` of gateway.yaml say where"],
      "egress.deny": ["keys", "`mcp.egress` and `egress` of gateway.yaml say where"],
      transport: ["keys", "`mcp.transport` spares the question"],
      protocol: ["remote", "a server of the stateless era is spoken to in it"],
      start: ["lifecycle", "a lazy server is started by its first call"],
      start_timeout: ["lifecycle", "a slow server is waited for as long as start_timeout says"],
      idle_timeout: ["lifecycle", "and stops when nobody calls"],
      "restart.first": ["lifecycle", "and left alone more and more"],
      "restart.max": ["lifecycle", "and left alone more and more"],
      "restart.attempts": ["lifecycle", "a server that failed as often as it may is tried again"],
    }).map(([key, [file, words]]) => [`mcp.${key}`, [`test/adapters/mcp/${file}.test.ts`, words]]),
  ),
  ...Object.fromEntries(
    Object.entries({
      address: ["connections", "tools of one server share a connection"],
      method: ["descriptors", "a method that cannot be called is said so"],
      descriptor: ["descriptors", "a descriptor file that is missing or broken"],
      reflection: ["descriptors", "`grpc.reflection` asks the server for the messages"],
      request: ["calls", "`grpc.request` says what the message is made of"],
      metadata: ["calls", "`grpc.metadata` goes along with its secrets"],
      "tls.ca": ["connections", "`grpc.tls` says who vouches for the server"],
      "tls.cert": ["connections", "`grpc.tls` says who vouches for the server"],
      "tls.key": ["connections", "`grpc.tls` says who vouches for the server"],
      "tls.server_name": ["connections", "`grpc.tls` says who vouches for the server"],
      allow_private: ["connections", "unless `grpc.allow_private` or `grpc.egress` allows it"],
      "egress.allow": ["connections", "unless `grpc.allow_private` or `grpc.egress` allows it"],
      "egress.deny": ["connections", "unless `grpc.allow_private` or `grpc.egress` allows it"],
    }).map(([key, [file, words]]) => [`grpc.${key}`, [`test/adapters/grpc/${file}.test.ts`, words]]),
  ),
  "tools.include": ["test/registry/server-overrides.test.ts", "`tools.include` and `tools.exclude` choose"],
  "tools.exclude": ["test/registry/server-overrides.test.ts", "`tools.include` and `tools.exclude` choose"],
  "tools.overrides": ["test/registry/server-overrides.test.ts", "policies come from the tool's override"],
  trust_hints: ["test/registry/server-overrides.test.ts", "`hints` of a server are shown, and decide nothing unless"],
  // A name that leads to a private address needs a resolver that lies.
  allow_private: ["test/adapters/http/private-addresses.test.ts", "`allow_private` lets a name lead anywhere"],
  // They need a server that gives tokens.
  ...Object.fromEntries(
    Object.entries({
      token_url: "a token is got once for all tools of the same client",
      client_id: "a token is got once for all tools of the same client",
      secret_ref: "a token is got once for all tools of the same client",
      scopes: 'scope: "a b"',
      client_auth: "`client_auth: post` sends name and secret in the body",
      resource: 'resource: "https://o.example"',
      audience: 'audience: "orders"',
    }).map(([key, words]) => [
      `auth.client_credentials.${key}`,
      ["test/adapters/http/client-credentials.test.ts", words] as const,
    ]),
  ),
  // They show in several calls at once.
  "pool.max_connections": ["test/e2e/settings-in-force.test.ts", "a changed `pool` is in force"],
  "pool.max_waiting": ["test/e2e/settings-in-force.test.ts", "a changed `pool` is in force"],
  "pool.max_idle": ["test/e2e/settings-in-force.test.ts", "a changed `pool` is in force"],
};

const running = new AsyncDisposableStack();
const views = new Map<string, Settings>();
const policies = new Map<string, readonly PolicyValue[]>();
let upstream: EchoUpstream;
let gateway: OpenGateway;

/** A tool is named like its key. Keys stand on lines of their own, so that origins tell them apart. */
function declare(name: string, settings: Settings): string {
  const declaration = {
    name,
    description: "用于检查配置是否立即生效 shows which settings are in force",
    type: "http",
    endpoint: `http://UP/echo/${name}`,
    ...settings,
  };
  return JSON.stringify(declaration, null, 1)
    .replace("//UP", `//127.0.0.1:${upstream.port}`)
    .replace("//MUTE", `//127.0.0.1:${upstream.mutePort}`);
}

/** How the tool is listed, what its upstream got, and what its caller gets. */
async function view({ key, args = {} }: ParamChange): Promise<Settings> {
  const { service, call } = gateway.client;
  const { tool } = await service.get({ name: key });
  const outcome = await call(key, args).then(
    (response) => ({ value: valueOf(response) }),
    (error: unknown) => ({ reason: reasonOf(error) }),
  );
  return { inputSchema: JSON.parse(tool?.inputSchemaJson ?? "null"), ...upstream.last(key), ...outcome };
}

async function lookAtAll(phase: Phase): Promise<void> {
  const transport = createConnectTransport({ baseUrl: gateway.url, httpVersion: "1.1" });
  const operator = createClient(OperatorService, transport);
  for (const change of PARAM_CHANGES) views.set(`${phase} ${change.key}`, await view(change));
  for (const { key } of ALL_CHANGES) {
    policies.set(`${phase} ${key}`, (await operator.explain({ name: key })).values);
  }
}

async function etags(): Promise<ReadonlyMap<string, string>> {
  const { tools } = await gateway.client.service.list({ pageSize: 500 });
  return new Map(tools.map(({ name, etag }) => [name, etag]));
}

beforeAll(async () => {
  upstream = running.use(await startEchoUpstream());
  const folder = running.use(await temporaryFolder()).path;
  const files = Object.fromEntries(ALL_CHANGES.map(({ key, before }) => [`tools/${key}.yaml`, declare(key, before)]));
  gateway = running.use(await openGateway({ folder, files, env: TOKENS }));
  const old = await etags();
  await lookAtAll("before");
  for (const { key, after } of ALL_CHANGES) await writeFile(join(folder, `tools/${key}.yaml`), declare(key, after));
  await retryUntil(etags, (now) => ALL_CHANGES.every(({ key }) => now.get(key) !== old.get(key)));
  await lookAtAll("after");
}, 180_000);

afterAll(async () => {
  await running.disposeAsync();
});

test.each(PARAM_CHANGES)(
  "`$key` has an effect, and a change is in force at the next call [S2-124]",
  ({ key, seen }) => {
    expect(views.get(`before ${key}`)).not.toMatchObject(seen);
    expect(views.get(`after ${key}`)).toMatchObject(seen);
  },
);

test("a `type` that is not known loads no tool, and the changed one is in force at the next call [S2-124]", async () => {
  const { service, call } = gateway.client;
  const file = join(gateway.folder, "tools/typed.yaml");
  const problemsOfIt = async (): Promise<readonly string[]> =>
    (await service.list({})).problems
      .filter(({ source }) => source === "file:typed.yaml")
      .map(({ message }) => message);
  await writeFile(file, declare("typed", { type: "htpp" }));
  await expect.poll(problemsOfIt, { timeout: 10_000 }).toEqual([expect.stringMatching(/`type`.*htpp.*`?http/)]);
  expect(reasonOf(await call("typed").catch((error: unknown) => error))).toBe("TOOL_NOT_FOUND");
  await writeFile(file, declare("typed", {}));
  await retryUntil(
    () => call("typed"),
    () => true,
  );
  expect(await problemsOfIt()).toEqual([]);
});

/** Writes two declarations, and resolves once both tools are there. */
async function addTools(first: Settings, second: Settings): Promise<readonly [first: string, second: string]> {
  const names = [`added_${randomUUID()}`, `added_${randomUUID()}`] as const;
  for (const [index, settings] of [first, second].entries()) {
    const name = names[index] ?? "";
    await writeFile(join(gateway.folder, `tools/${name}.yaml`), declare(name, settings));
    await retryUntil(
      () => gateway.client.service.get({ name }),
      () => true,
    );
  }
  return names;
}

test("`hints.read_only` decides what is said of a lost answer", async () => {
  const broken = { method: "POST", endpoint: "http://UP/reset" };
  const names = await addTools({ ...broken, hints: { read_only: true } }, { ...broken, hints: { read_only: false } });
  const reasons = names.map((name) => gateway.client.call(name).catch(reasonOf));
  expect(await Promise.all(reasons)).toEqual(["UPSTREAM_UNREACHABLE", "UPSTREAM_ANSWER_LOST"]);
});

test("`delivery` decides whether a stream has pieces of the answer before its end", async () => {
  const text = { result: { format: "text" } };
  const names = await addTools({ ...text, delivery: "incremental" }, { ...text, delivery: "conclusive" });
  const outputs = names.map(async (name) => {
    const cases: unknown[] = [];
    for await (const { event } of gateway.client.service.callStream({ invocation: { name } })) cases.push(event.case);
    return cases.includes("output");
  });
  expect(await Promise.all(outputs)).toEqual([true, false]);
});

/** What explain calls a key, and the line it stands on in the changed file. */
function explainedAs(key: string, after: Settings): { readonly name: string; readonly line: number } {
  const [top = "", nested, deeper] = key.split(".");
  // What may have any name is explained name by name, and parameters as the schema they make.
  const [free] = ["labels", "query", "headers", "form"].includes(top) ? Object.keys(after[top] ?? {}) : [];
  const inner = top === "params" ? undefined : (nested ?? free);
  const lines = declare(key, after).split("\n");
  const topLine = lines.findIndex((line) => line.startsWith(` "${top}":`));
  if (nested === "redact" && deeper !== undefined) {
    return { name: key, line: lines.findIndex((line, i) => i > topLine && line.startsWith(`   "${deeper}":`)) + 1 };
  }
  if (top === "toolset") return { name: `toolsets.${String(after[top])}`, line: topLine + 1 };
  if (inner === undefined) return { name: top === "params" ? "input_schema" : top, line: topLine + 1 };
  return {
    name: `${top}.${inner}`,
    line: lines.findIndex((line, i) => i > topLine && line.startsWith(`  "${inner}":`)) + 1,
  };
}

test.each(ALL_CHANGES)("after a change, explain has the new `$key` and the line it stands on [S2-125]", (change) => {
  const { key, after } = change;
  const { name, line } = explainedAs(key, after);
  const [before, now] = (["before", "after"] as const).map((phase) =>
    policies.get(`${phase} ${key}`)?.find((value) => value.key === name),
  );
  expect(now?.origin).toBe(`file:${key}.yaml:${line}`);
  // What a header holds may be a credential, so it is never shown.
  if (key === "headers") expect(now?.value).toBe("***");
  else expect(now?.value).not.toBe(before?.value);
});

/** Part of a JSON Schema. */
interface SchemaNode {
  readonly "x-not-supported"?: boolean;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
}

/** Dotted keys that are in force, those of parameters among them. */
function keysOf({ properties, items }: SchemaNode, path: string): readonly string[] {
  const inner = Object.entries(items?.properties ?? properties ?? {});
  if (inner.length === 0) return [path];
  return inner
    .filter(([, schema]) => schema["x-not-supported"] !== true)
    .flatMap(([name, schema]) => keysOf(schema, path === "" ? name : `${path}.${name}`));
}

test("every key of a declaration has a test of its effect", () => {
  const page = generatedDocuments().find(({ path }) => path === "docs/schema/tool.schema.json");
  const { oneOf } = JSON.parse(page?.text ?? "") as { readonly oneOf: readonly SchemaNode[] };
  // `type` has a test of its own above.
  const changed = ["type", ...ALL_CHANGES.map(({ key }) => key).filter((key) => key !== "params")];
  expect(new Set([...changed, ...Object.keys(IN_OTHER_TESTS)])).toEqual(
    new Set(oneOf.flatMap((kind) => keysOf(kind, ""))),
  );
});

test.each(Object.entries(IN_OTHER_TESTS))("the effect of `%s` has a test of its own", async (_key, [file, words]) => {
  expect(await readFile(join(REPOSITORY, file), "utf8")).toContain(words);
});
