// The client that the official MCP conformance suite runs: the gateway's adapter, told by the suite where the server is
// and what the scenario is. Usage: node client.ts URL, with MCP_CONFORMANCE_* set by the suite.

import type { UpstreamTool } from "../../src/core/adapter.ts";
import type { ToolCall, UpstreamResult } from "../../src/core/call.ts";
import type { Continuation, InputAnswer, NeededInput } from "../../src/core/input-request.ts";
import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  ownValue,
  parseJson,
} from "../../src/core/json.ts";
import { type OpenServer, openServer } from "../adapters/mcp/fixture.ts";
import { openLoginDesk } from "../adapters/mcp/login-desk.ts";
import { makeContext } from "../pipeline/fixtures.ts";

const url = process.argv.at(-1) ?? "";
const scenario = process.env["MCP_CONFORMANCE_SCENARIO"] ?? "";
const version = process.env["MCP_CONFORMANCE_PROTOCOL_VERSION"];
const given = parseJson(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}");
const context = isJsonObject(given) ? given : {};

/** How long a scenario may take until the server is ready: the suite runs dozens of them at once. */
const READY_MS = 150_000;

/** How often one call may ask for input. */
const MAX_ROUNDS = 10;

/** How often a person logs in before giving up. */
const MAX_LOGINS = 3;

const mcp = {
  url,
  protocol: version === undefined || version < "2026" ? "legacy" : "2026-07-28",
  start_timeout: "2m30s",
  ...authOf(),
};
const environment = { CLIENT_SECRET: textOf("private_key_pem") || textOf("client_secret") || "secret" };
await using desk = await openLoginDesk({ mcp, environment, settings: { defaults: { timeout: { connect: "1m" } } } });
if (isPersonal()) await desk.logIn().catch((error: unknown) => fail(String(error)));
await using opened = await openServer({ mcp, environment, logins: desk.logins });
await ready(opened);
for (const { name, args } of callsOf(opened.upstream.offer?.()?.tools ?? [])) {
  process.stdout.write(`${name}: ${await calledOutcome(opened, name, args)}\n`);
}

/** Calls a tool; where somebody has to log in first, a person does, and it is called again. */
async function calledOutcome(server: OpenServer, tool: string, args: JsonObject): Promise<string> {
  for (;;) {
    const outcome = await outcomeOf(server, tool, args);
    if (!needsLogin(server) || desk.addresses.length === MAX_LOGINS) return outcome;
    await loggedInAgain(server);
    await ready(server);
  }
}

/** Whether the gateway says that somebody has to log in. */
function needsLogin({ upstream }: OpenServer): boolean {
  return upstream.availability().mend?.startsWith("toolgate login") === true;
}

/** Resolves when the gateway has taken another login over. */
async function loggedInAgain(server: OpenServer): Promise<void> {
  await desk.logIn().catch((error: unknown) => fail(String(error)));
  await server.until(() => !needsLogin(server));
}

/** Calls a tool, and answers what it asks by the defaults of what is asked. */
async function outcomeOf(server: OpenServer, tool: string, args: JsonObject): Promise<string> {
  const call = { tool, arguments: args, validateOnly: false, maxLength: undefined, acceptsInput: true };
  try {
    let result = await resultOf(server, call);
    for (let round = 1; result?.needsInput !== undefined && round < MAX_ROUNDS; round++) {
      result = await resultOf(server, { ...call, continuation: answered(result.needsInput) });
    }
    return result?.failure?.message ?? "ok";
  } catch (error) {
    return error instanceof Error ? error.message : "failed";
  }
}

async function resultOf({ upstream }: OpenServer, call: ToolCall): Promise<UpstreamResult | undefined> {
  let result: UpstreamResult | undefined;
  for await (const event of upstream.invoke(call, makeContext({ deadlineMs: Number.MAX_SAFE_INTEGER }))) {
    if (event.type === "upstream-result") result = event.result;
  }
  return result;
}

function answered({ requests, state }: NeededInput): Continuation {
  const answers = [...requests].map(([id, { schema }]): [string, InputAnswer] => [
    id,
    { action: "accept", content: defaultsOf(schema ?? {}) },
  ]);
  return { state, answers: new Map(answers) };
}

function defaultsOf(schema: JsonObject): JsonObject {
  const properties = ownValue(schema, "properties") ?? null;
  const entries = isJsonObject(properties) ? Object.entries(properties) : [];
  return Object.fromEntries(
    entries.map(([name, property]) => [
      name,
      (isJsonObject(property) ? ownValue(property, "default") : undefined) ?? sample(property),
    ]),
  );
}

/** Resolves when the server is ready; ends the process where it failed. */
async function ready(server: OpenServer): Promise<void> {
  const { upstream, until } = server;
  const late = setTimeout(() => fail("not ready in time"), READY_MS);
  const isReady = (): boolean => {
    const { state, reason } = upstream.availability();
    if (reason.startsWith("failed")) fail(reason);
    return state === "ready" && upstream.offer?.() !== undefined;
  };
  await until(() => isReady() || needsLogin(server));
  if (!isReady()) {
    if (desk.addresses.length === MAX_LOGINS) fail(upstream.availability().reason);
    await loggedInAgain(server);
    await until(isReady);
  }
  clearTimeout(late);
}

function fail(reason: string): never {
  process.stderr.write(`${scenario}: ${reason}\n`);
  process.exit(1);
}

/** Whether a person logs in. */
function isPersonal(): boolean {
  return scenario.startsWith("auth/") && !scenario.startsWith("auth/client-credentials");
}

/** How the gateway gets its tokens, with the client of the scenario where it gives one. */
function authOf(): JsonObject {
  if (!scenario.startsWith("auth/")) return {};
  const [id, signs] = [textOf("client_id"), textOf("private_key_pem") !== ""];
  const client = { client_id: id, secret_ref: "CLIENT_SECRET" };
  if (!isPersonal()) {
    return { auth: { client_credentials: signs ? { ...client, client_auth: "private_key_jwt" } : client } };
  }
  // The name that the suite looks for; other scenarios want to see a registration.
  const document = { client_metadata_url: "https://conformance-test.local/client-metadata.json" };
  return { auth: { oauth: { ...(id === "" ? {} : client), ...(scenario === "auth/basic-cimd" ? document : {}) } } };
}

interface PlannedCall {
  readonly name: string;
  readonly args: JsonObject;
}

/** What the scenario wants to see: the calls it names, or one of each tool. */
function callsOf(tools: readonly UpstreamTool[]): readonly PlannedCall[] {
  const planned = ownValue(context, "toolCalls");
  if (isJsonArray(planned)) {
    return planned.filter(isJsonObject).map((each) => {
      const args = ownValue(each, "arguments");
      const name = ownValue(each, "name");
      return { name: typeof name === "string" ? name : "", args: args !== undefined && isJsonObject(args) ? args : {} };
    });
  }
  const [focal] = tools;
  return tools.map((tool) => ({ name: tool.name, args: sampleArguments(tool, focal?.inputSchema ?? {}) }));
}

/** Values for the parameters that a tool requires; one called `schema` is to come back as the first tool had it. */
function sampleArguments({ inputSchema }: UpstreamTool, schema: JsonObject): JsonObject {
  const required = ownValue(inputSchema, "required");
  const properties = ownValue(inputSchema, "properties") ?? {};
  const names = isJsonArray(required) ? required.filter((name) => typeof name === "string") : [];
  return Object.fromEntries(
    names.map((name) => [
      name,
      name === "schema" ? schema : sample(isJsonObject(properties) ? properties[name] : undefined),
    ]),
  );
}

function sample(property: JsonValue | undefined): JsonValue {
  switch (property !== undefined && isJsonObject(property) ? ownValue(property, "type") : undefined) {
    case "number":
    case "integer":
      return 5;
    case "boolean":
      return true;
    case "object":
      return {};
    case "array":
      return [];
    default:
      return "text";
  }
}

function textOf(key: string): string {
  const value = ownValue(context, key);
  return typeof value === "string" ? value : "";
}
