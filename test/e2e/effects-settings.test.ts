import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TruncationMode } from "../../gen/toolgate/v1/call_pb.ts";
import { type CallResponse, ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { SETTINGS, type SettingKey } from "../../src/config/gateway-config-schema.ts";
import { POLICY_SETTINGS, type PolicyKey } from "../../src/config/policy-settings.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import { createFileLogins } from "../../src/stores/file-logins.ts";
import { startFakeHttp } from "../adapters/mcp/fake-http.ts";
import { loginAt } from "../adapters/mcp/login-authority.ts";
import { createFakeClock, type FakeClock } from "../core/fake-clock.ts";
import { ISSUER, tokenMaker } from "../identity/fixtures.ts";
import { AUTHORITY } from "../service/certificate-folder.ts";
import { createAuthority, type Issued, issue } from "../service/certificates.ts";
import { rawSession, rawSocket } from "../service/raw.ts";
import { rawTls } from "../service/tls-raw.ts";
import { type EchoUpstream, startEchoUpstream } from "./echo-upstream.ts";
import { type OpenGateway, type OpenGatewayOptions, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { RECORD_EFFECTS } from "./effects-records.ts";
import { TELEMETRY_EFFECTS } from "./effects-telemetry.ts";
import { type GatewayClient, reasonOf, retryUntil, textOf } from "./gateway-client.ts";
import { spawnScript } from "./spawned.ts";

/** Starts a gateway that ends with the test; in a folder of its own where none is given. */
type Open = (options?: OpenOptions) => Promise<OpenGateway>;

type OpenOptions = Partial<Omit<OpenGatewayOptions, "clock">> & { readonly clock?: FakeClock };

/** Values of a key, and what each makes of a gateway. */
interface Difference {
  /** Where the values stand, if not under the key itself. */
  readonly section?: string;
  readonly values: readonly unknown[];
  readonly see: (gateway: OpenGateway) => Promise<unknown>;
  readonly seen: readonly unknown[];
}

/** Proves that a key has an effect, or fails. */
type Effect = Difference | ((open: Open) => Promise<void>);

const LIST = "/toolgate.v1.ToolGatewayService/List";
const WATCH = "/toolgate.v1.ToolGatewayService/Watch";
const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const [FIRST, SECOND] = ["http://first.example.test", "http://second.example.test"] as const;

const upstreams = new AsyncDisposableStack();
let upstream: EchoUpstream;

beforeAll(async () => {
  upstream = upstreams.use(await startEchoUpstream());
});

afterAll(async () => {
  await upstreams.disposeAsync();
});

function tool(name: string, keys: Readonly<Record<string, unknown>> = {}): string {
  const standard = { name, description: "用于检查网关配置 shows which settings have an effect", type: "http" };
  return JSON.stringify({ ...standard, endpoint: `http://127.0.0.1:${upstream.port}/echo/${name}`, ...keys });
}

function script(name: string, keys: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ name, description: "用于检查脚本配置 shows settings of scripts", type: "script", ...keys });
}

const at = (path: string): string => `http://127.0.0.1:${upstream.port}/${path}`;

/** `{ tools: { settle: value } }` of `tools.settle`. */
function setting(key: string, value: unknown): Readonly<Record<string, unknown>> {
  return key.split(".").reduceRight((inner: unknown, name) => ({ [name]: inner }), value) as Record<string, unknown>;
}

/** The handle of a result that is too long; empty where it was not kept. */
async function keptHandle({ client }: OpenGateway): Promise<string> {
  const { result } = await client.service.call({ invocation: { name: "json", maxLength: 10 } });
  return result?.truncation?.handle ?? "";
}

/** A page of a kept result, or what stands for an error. */
async function readKept({ url }: OpenGateway, handle: string): Promise<{ result?: { expireTime?: string } }> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ handle });
  const answer = await fetch(`${url}/toolgate.v1.ResultService/Read`, { method: "POST", headers, body });
  return (await answer.json()) as { result?: { expireTime?: string } };
}

/** Whether the first of ten results is still kept at the end. */
async function firstKeptLasts(gateway: OpenGateway): Promise<boolean> {
  const first = await keptHandle(gateway);
  for (let i = 0; i < 9; i++) await keptHandle(gateway);
  return (await readKept(gateway, first)).result !== undefined;
}

/** The tools every difference finds. */
function toolFiles(): Readonly<Record<string, string>> {
  return {
    "tools/json.json": tool("json"),
    "tools/yaml.yaml": tool("yaml"),
    "elsewhere/other.yaml": tool("other"),
    "tools/text.yaml": tool("text", { result: { data_field: "data.text" } }),
    "tools/numbered.yaml": tool("numbered", { result: { data_field: "data", fields: { keep: ["flag"] } } }),
    "tools/worded.yaml": tool("worded", {
      result: { data_field: "data", template: `key AKIA${"ABCD".repeat(4)} of card {flag}000` },
    }),
    "tools/turned.yaml": tool("turned", { result: { data_field: "data", template: "{flag}\u202e" } }),
    "tools/wordy.yaml": tool("wordy", { result: { template: `{message} ${"word ".repeat(1_900)}` } }),
    "tools/silent.yaml": tool("silent", { endpoint: at("silent") }),
    "tools/patient.yaml": tool("patient", { endpoint: at("silent"), timeout: { read: "1h", total: "1h" } }),
    "tools/busy.yaml": tool("busy", { endpoint: at("silent"), timeout: { connect: "300ms", read: "1s" } }),
    "tools/marked.yaml": tool("marked", {
      endpoint: at("echo/{mark}"),
      params: [{ name: "mark", type: "string", required: true }],
    }),
    "tools/stuck.yaml": tool("stuck", { endpoint: at("stuck") }),
    "tools/endless.yaml": tool("endless", { endpoint: at("endless") }),
    "tools/writing.yaml": tool("writing", { method: "POST" }),
    "tools/flowing.yaml": tool("flowing", {
      endpoint: at("endless"),
      delivery: "incremental",
      result: { format: "text", max_length: 20_000 },
    }),
    "tools/secret.yaml": secretTool(),
    "tools/mute.yaml": tool("mute", { endpoint: `https://127.0.0.1:${upstream.mutePort}/` }),
  };
}

function secretTool(): string {
  return tool("secret", { auth: { header_name: "X-Key", secret_ref: "PLACED" } });
}

/** The secret that the upstream got. */
async function sentSecret(client: GatewayClient): Promise<unknown> {
  await client.call("secret");
  return (upstream.last("secret") as { headers?: Record<string, unknown> } | undefined)?.headers?.["x-key"];
}

/** A tool lacks its secret without the setting, has it with it at once, and not any more when it is taken back. */
async function seesSecret(open: Open, { files = {} }: OpenOptions, secrets: object): Promise<void> {
  const gateway = await open({ files: { ...toolFiles(), ...files } });
  for (const path of Object.keys(files)) await chmod(join(gateway.folder, path), 0o600);
  expect(await gateway.client.call("secret").catch(reasonOf)).toBe("SECRET_MISSING");
  expect((await gateway.reconfigure({ secrets })).needRestart).toEqual([]);
  expect(await sentSecret(gateway.client)).toMatch(/^(from-a-|printed PLACED)/);
  await gateway.reconfigure({});
  expect(await gateway.client.call("secret").catch(reasonOf)).toBe("SECRET_MISSING");
}

/** Calls a tool with a key. */
function keyed(client: GatewayClient, name: string, requestId: string): Promise<CallResponse> {
  return client.service.call({ invocation: { name, requestId } });
}

/** Begins a stream that is to be kept. */
async function beginStream(client: GatewayClient, name: string) {
  const request = { invocation: { name }, resumeWindow: { seconds: 20n, nanos: 0 } };
  const messages = client.service.callStream(request)[Symbol.asyncIterator]();
  const { event } = (await messages.next()).value ?? {};
  return { messages, started: event?.case === "started" ? event.value : undefined };
}

/** Reads a stream to its end; of a tool, or one that is resumed. Resolves with its call id. */
async function wholeStream(
  client: GatewayClient,
  of: string | Parameters<GatewayClient["service"]["callStream"]>[0],
): Promise<string> {
  let callId = "";
  const request = typeof of === "string" ? { invocation: { name: of }, resumeWindow: { seconds: 20n, nanos: 0 } } : of;
  for await (const { event } of client.service.callStream(request)) {
    if (event.case === "started") callId = event.value.callId;
  }
  return callId;
}

async function namesOf({ client }: OpenGateway): Promise<readonly string[]> {
  const { tools } = await client.service.list({ pageSize: 100 });
  return tools.map(({ name }) => name).toSorted();
}

/** The part of a failed call's message that the pattern picks. */
function failing(name: string, pattern: RegExp): (gateway: OpenGateway) => Promise<unknown> {
  return async ({ client }) => {
    const error: unknown = await client.call(name).catch((caught: unknown) => caught);
    if (!(error instanceof ConnectError)) return error;
    return pattern.exec(error.rawMessage)?.[0] ?? error.rawMessage;
  };
}

/** Tools that a caller with these headers may see. */
async function listed(url: string, headers: Readonly<Record<string, string>> = {}): Promise<readonly unknown[]> {
  const response = await fetch(url + LIST, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: "{}",
  });
  const answer: unknown = await response.json();
  const { tools = [] } = answer as { tools?: readonly unknown[] };
  return tools;
}

/** What comes of registering a tool of a host that nobody declares, and one of a host that is known. */
async function registerTwo({ client }: OpenGateway): Promise<unknown> {
  const tools = [tool("strange", { endpoint: "http://127.0.0.1:9/" }), tool("known")];
  const register = (value: string): Promise<unknown> =>
    client.service.register({ declaration: { case: "declarationJson", value } }).then(() => "taken", reasonOf);
  return Promise.all(tools.map(register));
}

/** The word for why a caller with these headers is refused. */
async function whyRefused({ url }: OpenGateway, headers: Readonly<Record<string, string>> = {}): Promise<unknown> {
  const transport = createConnectTransport({ baseUrl: url, httpVersion: "1.1" });
  return createClient(ToolGatewayService, transport)
    .list({}, { headers })
    .then(() => "OK", reasonOf);
}

/** How many of three calls by one caller are refused for its rate, one after the other and of different tools. */
async function refusedOfThree({ client }: OpenGateway): Promise<number> {
  let refused = 0;
  for (const name of ["json", "yaml", "json"]) {
    const outcome = await client.call(name).catch(reasonOf);
    if (outcome === "RATE_LIMITED") refused++;
  }
  return refused;
}

async function statusOf(url: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const response = await fetch(url, { method: "POST", headers, body: "{}" });
  await response.arrayBuffer();
  return response.status;
}

/** Writes two tools, one after the other, each once the gateway that watches has the one before. */
async function writeTwo(watching: OpenGateway): Promise<void> {
  for (const name of ["one", "two"]) {
    await writeFile(join(watching.folder, "tools", `${name}.yaml`), tool(name));
    await retryUntil(
      () => watching.client.call(name),
      () => true,
    );
  }
}

/** Lets a clock run until the work is done. */
async function whileTimePasses<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  const pending = Symbol("pending");
  let outcome: T | typeof pending;
  do {
    await clock.advance(10);
    outcome = await Promise.race([work, Promise.resolve(pending)]);
  } while (outcome === pending);
  return outcome;
}

/** What two calls at once end with. */
function pairOf(name: string): Difference["see"] {
  return async ({ client }) => {
    const calls = [client.call(name), client.call(name)].map((each) => each.catch(reasonOf));
    return (await Promise.all(calls)).map(String).toSorted();
  };
}

/** Whether the second of two calls, `pauseMs` after the first, goes over the same connection. */
function reusesConnection(pauseMs: number): Difference["see"] {
  return async ({ client }) => {
    const portOfCall = async (): Promise<number | undefined> => {
      const mark = randomUUID();
      await client.call("marked", { mark });
      return upstream.last(mark)?.clientPort;
    };
    const first = await portOfCall();
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    return (await portOfCall()) === first;
  };
}

/** The one with the first settings has a new tool soon, the other never. */
function onlyOneLooks(looking: object, blind: object): Effect {
  return async (open) => {
    const files = { "tools/early.yaml": tool("early") };
    const first = await open({ files, settings: { tools: looking, state: { folder: "first" } } });
    const second = await open({ folder: first.folder, settings: { tools: blind, state: { folder: "second" } } });
    await writeTwo(first);
    expect(await namesOf(first)).toEqual(["early", "one", "two"]);
    expect(await namesOf(second)).toEqual(["early"]);
  };
}

const TLS = { cert: "tls.crt", key: "tls.key" };

function tlsFiles({ cert, key }: Issued): Readonly<Record<string, string>> {
  return { "tls.crt": cert, "tls.key": key };
}

/** Status of a listing over a connection that shows a certificate. */
async function statusWith(port: number, { cert, key }: Issued): Promise<string> {
  using raw = await rawTls(port, { cert, key });
  const head = `POST ${LIST} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 2`;
  raw.socket.write(`${head}\r\n\r\n{}`);
  await raw.received(/HTTP\/1.1 \d+/);
  return /HTTP\/1.1 (\d+)/.exec(raw.text())?.[1] ?? "";
}

/** A gateway shows the certificate that it was given, which takes both files. */
async function shownCertificate(open: Open): Promise<void> {
  for (const names of [
    ["localhost", "127.0.0.1"],
    ["other.test", "127.0.0.1"],
  ]) {
    const files = tlsFiles(issue({ issuer: AUTHORITY, names }));
    const { port } = await open({ files, settings: { tls: TLS } });
    using raw = await rawTls(port);
    expect(raw.socket.getPeerCertificate().subject.CN).toBe(names[0]);
  }
}

/** Of two servers that hang as they start, one waits for the other where one may start at a time, for a moment. */
function startsInTurn(
  key: string,
  mcpOf: (mark: string) => object,
  hasBegun: (mark: string) => boolean,
): (open: Open) => Promise<void> {
  return async (open) => {
    await using folder = await temporaryFolder();
    for (const atOnce of [1, 2]) {
      const names = [`a${atOnce}`, `b${atOnce}`];
      const files = names.map((name) => {
        const mcp = { protocol: "legacy", ...mcpOf(join(folder.path, name)) };
        return [`tools/${name}.json`, JSON.stringify({ name, type: "mcp", mcp })];
      });
      const begun = (): number => names.filter((name) => hasBegun(join(folder.path, name))).length;
      const clock = createFakeClock();
      await open({ clock, files: Object.fromEntries(files), settings: { servers: { [key]: atOnce } } });
      await expect.poll(begun, { timeout: 20_000 }).toBe(atOnce);
      await delay(100);
      expect(begun()).toBe(atOnce);
      await clock.advance(200);
      await expect.poll(begun, { timeout: 20_000 }).toBe(2);
    }
  };
}

/** Every key of gateway.yaml with what shows that it has an effect; policies have a test of their own. */
const EFFECTS: Readonly<Record<Exclude<SettingKey, `defaults.${PolicyKey}`>, Effect>> = {
  async listen(open) {
    const { port, stop } = await open();
    await stop();
    expect((await open({ settings: { listen: `127.0.0.1:${port}` } })).port).toBe(port);
  },
  "tls.cert": shownCertificate,
  "tls.key": shownCertificate,
  async "tls.min_version"(open) {
    const files = tlsFiles(issue({ issuer: AUTHORITY }));
    for (const [version, spoken] of [
      ["TLSv1.2", true],
      ["TLSv1.3", false],
    ] as const) {
      const { port } = await open({ files, settings: { tls: { ...TLS, min_version: version } } });
      const older = rawTls(port, { maxVersion: "TLSv1.2" }).then((raw) => raw[Symbol.dispose]());
      expect(
        await older.then(
          () => true,
          () => false,
        ),
      ).toBe(spoken);
    }
  },
  async "tls.client_ca"(open) {
    const files = { ...tlsFiles(issue({ issuer: AUTHORITY })), "ca.crt": AUTHORITY.cert };
    const status = async (ca: string): Promise<string> => {
      const settings = { tls: { ...TLS, client_ca: ca }, identity: { mtls: [{ dns: "caller" }] } };
      const { port } = await open({ files: { ...files, "other.crt": createAuthority("other").cert }, settings });
      return statusWith(port, issue({ issuer: AUTHORITY, names: ["caller"] }));
    };
    expect([await status("ca.crt"), await status("other.crt")]).toEqual(["200", "401"]);
  },
  async "tls.client_auth"(open) {
    const files = { ...tlsFiles(issue({ issuer: AUTHORITY })), "ca.crt": AUTHORITY.cert };
    const identity = { mtls: [{ dns: "caller" }] };
    const status = async (auth: string): Promise<string> => {
      const { port } = await open({
        files,
        settings: { tls: { ...TLS, client_ca: "ca.crt", client_auth: auth }, identity },
      });
      using raw = await rawTls(port);
      raw.socket.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
      return await raw.received(/200 OK/).then(
        () => "let in",
        () => "refused",
      );
    };
    expect([await status("optional"), await status("required")]).toEqual(["let in", "refused"]);
  },
  "identity.api_keys": { values: [false, true], see: whyRefused, seen: ["OK", "CREDENTIAL_MISSING"] },
  async "identity.jwt"(open) {
    const maker = await tokenMaker();
    const jwt = [{ issuer: ISSUER.issuer, audiences: ["toolgate"], jwks_file: "jwks.json", algorithms: ["ES256"] }];
    const gateway = await open({ files: { "jwks.json": maker.jwks }, settings: { identity: { jwt } } });
    expect(await whyRefused(gateway)).toBe("CREDENTIAL_MISSING");
    expect(await whyRefused(gateway, { authorization: `Bearer ${await maker.sign({})}` })).toBe("OK");
  },
  async "identity.mtls"(open) {
    const files = { ...tlsFiles(issue({ issuer: AUTHORITY })), "ca.crt": AUTHORITY.cert };
    const caller = issue({ issuer: AUTHORITY, names: ["spiffe://example.org/agent"] });
    const outcome = async (uri: string): Promise<string> => {
      const settings = { tls: { ...TLS, client_ca: "ca.crt" }, identity: { mtls: [{ uri }] } };
      const { port } = await open({ files, settings });
      return statusWith(port, caller);
    };
    expect([await outcome("spiffe://example.org/*"), await outcome("spiffe://other.org/*")]).toEqual(["200", "401"]);
  },
  async "identity.trusted_header.subject"(open) {
    const gateway = await open({ settings: { identity: { trusted_header: { subject: "x-user" } } } });
    expect(await whyRefused(gateway)).toBe("CREDENTIAL_MISSING");
    expect(await whyRefused(gateway, { "x-user": "alice" })).toBe("OK");
  },
  async "identity.trusted_header.roles"(open) {
    const files = { "tools/one.yaml": tool("one", { allowed_roles: ["ops"] }) };
    const trusted = { subject: "x-user", roles: "x-roles" };
    const { url } = await open({ files, settings: { identity: { trusted_header: trusted } } });
    expect((await listed(url, { "x-user": "alice", "x-roles": "ops" })).length).toBe(1);
    expect((await listed(url, { "x-user": "alice" })).length).toBe(0);
  },
  "identity.anonymous_roles": {
    values: [
      { api_keys: true, anonymous_roles: [] },
      { api_keys: true, anonymous_roles: ["operator"] },
    ],
    section: "identity",
    see: ({ client }) => client.service.unregister({ name: "none", allowMissing: true }).then(() => "OK", reasonOf),
    seen: ["PERMISSION_DENIED", "OK"],
  },
  "tools.folder": {
    values: ["elsewhere", "nowhere"],
    see: namesOf,
    seen: [["other"], []],
  },
  "tools.include": {
    values: [["*.json"], ["y*.yaml"]],
    see: namesOf,
    seen: [["json"], ["yaml"]],
  },
  async "tools.settle"(open) {
    const { client, folder } = await open({ files: toolFiles(), settings: setting("tools.settle", "1s") });
    await writeFile(join(folder, "tools", "new.yaml"), tool("new"));
    const tookMs = await retryUntil(
      () => client.call("new"),
      () => true,
    );
    expect(tookMs).toBeGreaterThan(800);
  },
  "tools.poll": onlyOneLooks({ poll: "auto", poll_interval: "1h" }, { poll: "always", poll_interval: "1h" }),
  "tools.poll_interval": onlyOneLooks(
    { poll: "always", poll_interval: "100ms" },
    { poll: "always", poll_interval: "1h" },
  ),
  "state.folder": {
    values: ["kept", "kept-elsewhere"],
    async see({ client, folder }) {
      await client.service.register({ declaration: { case: "declarationJson", value: tool("registered") } });
      const entries = await readdir(folder, { recursive: true });
      return entries.filter((entry) => /^(kept|state)[^/]*$/.test(entry));
    },
    seen: [["kept"], ["kept-elsewhere"]],
  },
  async "state.encryption_key"(open) {
    const [env, keyRef] = [{ STATE_KEY: "0f".repeat(32) }, "STATE_KEY"];
    await using fake = await startFakeHttp({ authorization: () => "Bearer kept" });
    const mcp = { url: fake.url, protocol: "legacy", auth: { oauth: {} } };
    const files = { "tools/shop.json": JSON.stringify({ name: "shop", type: "mcp", mcp }) };
    const plain = await open({ files });
    const sealed = await open({ files, env, settings: { state: { encryption_key: keyRef } } });
    for (const { folder } of [plain, sealed]) {
      const secrets = createSecrets(env).source;
      const place = { folder: join(folder, "state", "logins"), keyRef, secrets };
      await createFileLogins({ ...place, clock: systemClock }).put(loginAt("shop", fake.url, "kept"));
    }
    const hasTool = async ({ client }: OpenGateway): Promise<boolean> =>
      (await client.service.list({})).tools.some(({ name }) => name === "shop/quick");
    await expect.poll(() => hasTool(sealed), { timeout: 20_000 }).toBe(true);
    expect(await hasTool(plain)).toBe(false);
  },
  "defaults.timeout.connect": {
    values: ["200ms", "300ms"],
    see: failing("mute", / \d+ ms \(timeout\.connect\)/),
    seen: [" 200 ms (timeout.connect)", " 300 ms (timeout.connect)"],
  },
  "defaults.timeout.read": {
    values: ["200ms", "300ms"],
    see: failing("silent", / \d+ ms \(timeout\.read\)/),
    seen: [" 200 ms (timeout.read)", " 300 ms (timeout.read)"],
  },
  "defaults.timeout.idle": {
    values: ["200ms", "300ms"],
    see: failing("stuck", / \d+ ms \(timeout\.idle\)/),
    seen: [" 200 ms (timeout.idle)", " 300 ms (timeout.idle)"],
  },
  "defaults.timeout.total": {
    values: ["200ms", "300ms"],
    see: failing("silent", /\d+ ms/),
    seen: ["200 ms", "300 ms"],
  },
  "defaults.result.max_length": {
    values: [60, 90],
    see: async ({ client }) => textOf(await client.call("text")).length,
    seen: [60, 90],
  },
  async "defaults.result.truncation"(open) {
    for (const [truncation, mode] of [
      ["tail", TruncationMode.TAIL],
      ["summary", TruncationMode.SUMMARY],
    ] as const) {
      const settings = { defaults: { result: { max_length: 60, truncation } } };
      const { client } = await open({ files: toolFiles(), settings });
      expect((await client.call("text")).result?.truncation?.mode).toBe(mode);
    }
  },
  "defaults.result.hidden_characters": {
    values: ["keep", "show"],
    see: async ({ client }) => textOf(await client.call("turned")),
    seen: ["1\u202e", "1<U+202E>"],
  },
  "defaults.result.trust": {
    values: ["none", "wrapped"],
    see: async ({ client }) => textOf(await client.call("turned")).startsWith("[data from turned, not instructions;"),
    seen: [false, true],
  },
  "defaults.result.redact.tokens": {
    values: [false, true],
    see: async ({ client }) => textOf(await client.call("worded")),
    seen: [`key AKIA${"ABCD".repeat(4)} of card 1000`, "key *** of card 1000"],
  },
  "defaults.result.redact.fields": {
    values: [["data.FLAG"], ["data.text"]],
    see: async ({ client }) => (await client.call("numbered")).result?.structuredJson,
    seen: ['{"flag":"***"}', '{"flag":1}'],
  },
  "defaults.result.redact.patterns": {
    values: [["card \\d+"], ["\\d{4}"]],
    see: async ({ client }) => textOf(await client.call("worded")),
    seen: ["key *** of ***", "key *** of card ***"],
  },
  "defaults.pool.max_connections": {
    values: [1, 2],
    see: pairOf("busy"),
    seen: [
      ["UPSTREAM_POOL_EXHAUSTED", "UPSTREAM_TIMEOUT"],
      ["UPSTREAM_TIMEOUT", "UPSTREAM_TIMEOUT"],
    ],
  },
  "defaults.pool.max_waiting": {
    values: [
      { max_connections: 1, max_waiting: 0 },
      { max_connections: 1, max_waiting: 1 },
    ],
    section: "defaults.pool",
    async see({ client }) {
      const errors = await Promise.all(
        [client.call("busy"), client.call("busy")].map((each) => each.catch(ConnectError.from)),
      );
      const texts = errors.map((error) => (error instanceof ConnectError ? error.rawMessage : ""));
      return /\((?:pool\.max_waiting|timeout\.connect)\)/.exec(texts.join(" "))?.[0];
    },
    seen: ["(pool.max_waiting)", "(timeout.connect)"],
  },
  "defaults.pool.max_idle": {
    values: [0, 1],
    see: reusesConnection(0),
    seen: [false, true],
  },
  "defaults.pool.idle_timeout": {
    values: ["100ms", "20s"],
    see: reusesConnection(2_000),
    seen: [false, true],
  },
  "egress.allow": {
    values: [["example.com"], ["127.0.0.0/8", "example.com"]],
    see: ({ client }) => client.call("yaml").then(() => "reached", reasonOf),
    seen: ["UPSTREAM_UNREACHABLE", "reached"],
  },
  "egress.deny": {
    values: [[], ["127.0.0.1"]],
    see: ({ client }) => client.call("yaml").then(() => "reached", reasonOf),
    seen: ["reached", "UPSTREAM_UNREACHABLE"],
  },
  async "secrets.key_file"(open) {
    await seesSecret(open, { files: { "secrets.env": "PLACED=from-a-key-file" } }, { key_file: "secrets.env" });
  },
  async "secrets.folder"(open) {
    await seesSecret(open, { files: { "mounted/PLACED": "from-a-folder\n" } }, { folder: "mounted" });
  },
  async "secrets.exec.command"(open) {
    await seesSecret(open, {}, { exec: { command: ["echo", "printed"] } });
  },
  "secrets.exec.timeout": {
    section: "secrets.exec",
    values: ["100ms", "10s"].map((timeout) => ({ timeout, command: ["/bin/sh", "-c", "sleep 1; echo $0"] })),
    see: ({ client }) => client.call("secret").then(() => "given", reasonOf),
    seen: ["SECRET_MISSING", "given"],
  },
  "secrets.exec.cache": {
    section: "secrets.exec",
    // Its own process id, so that each run prints something else.
    values: ["1s", "1h"].map((cache) => ({ cache, command: ["/bin/sh", "-c", "echo run-$$"] })),
    async see({ client }) {
      const first = await sentSecret(client);
      await delay(1_500);
      return (await sentSecret(client)) === first;
    },
    seen: [false, true],
  },
  "registration.private_addresses": {
    values: ["none", "loopback", "all"],
    async see({ client }) {
      const register = (host: string): Promise<unknown> => {
        const value = tool("registered", { endpoint: `http://${host}/` });
        const declaration = { case: "declarationJson", value } as const;
        return client.service.register({ declaration, validateOnly: true }).then(() => "taken", reasonOf);
      };
      return Promise.all(["127.0.0.1", "10.0.0.5"].map(register));
    },
    seen: [
      ["DECLARATION_INVALID", "DECLARATION_INVALID"],
      ["taken", "DECLARATION_INVALID"],
      ["taken", "taken"],
    ],
  },
  "limits.request_bytes": {
    values: ["1KiB", "2KiB"],
    see: ({ client }) => client.call("yaml", { long: "x".repeat(1_500) }).catch(reasonOf),
    seen: ["REQUEST_TOO_LARGE", "ARGUMENTS_INVALID"],
  },
  "limits.response_bytes": {
    values: ["1KiB", "64KiB"],
    see: failing("endless", /limit of .*/),
    seen: ["limit of 1024 bytes", "limit of 65536 bytes"],
  },
  "rate_limit.requests": {
    values: [
      { requests: 1, per: "1h" },
      { requests: 2, per: "1h" },
    ],
    section: "rate_limit",
    see: refusedOfThree,
    seen: [2, 1],
  },
  "rate_limit.per": {
    values: [
      { requests: 1, per: "1h" },
      { requests: 1, per: "1ms" },
    ],
    section: "rate_limit",
    see: refusedOfThree,
    seen: [2, 0],
  },
  "rate_limit.burst": {
    values: [
      { requests: 9, per: "1h", burst: 1 },
      { requests: 9, per: "1h", burst: 2 },
    ],
    section: "rate_limit",
    see: refusedOfThree,
    seen: [2, 1],
  },
  "limits.deadline": {
    values: ["1s", "1500ms"],
    see: failing("patient", /\d+ ms/),
    seen: ["1000 ms", "1500 ms"],
  },
  "limits.concurrent_streams": {
    values: [3, 5],
    async see({ url }) {
      using session = rawSession(url);
      const [{ maxConcurrentStreams }] = await once(session, "remoteSettings");
      return maxConcurrentStreams;
    },
    seen: [3, 5],
  },
  async "keepalive.interval"(open) {
    const clock = createFakeClock();
    const { url, stop } = await open({ settings: setting("keepalive.interval", "3s"), clock });
    const session = rawSession(url);
    await once(session, "remoteSettings");
    const ping = once(session, "ping");
    await clock.advance(3_000);
    await ping;
    session.destroy();
    await whileTimePasses(clock, stop());
  },
  async "keepalive.timeout"(open) {
    const clock = createFakeClock();
    const { port, stop } = await open({ settings: { keepalive: { interval: "1s", timeout: "2s" } }, clock });
    using raw = await rawSocket(port);
    // The preface and empty settings, and then not a word.
    raw.socket.write(Buffer.from(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04${"\0".repeat(5)}`));
    await raw.received(/./s);
    await clock.advance(1_000);
    expect(raw.socket.closed).toBe(false);
    await clock.advance(2_000);
    await raw.closed;
    await whileTimePasses(clock, stop());
  },
  async "keepalive.max_connection_age"(open) {
    const clock = createFakeClock();
    const { url, stop } = await open({ settings: setting("keepalive.max_connection_age", "5s"), clock });
    using session = rawSession(url);
    await once(session, "remoteSettings");
    const goaway = once(session, "goaway");
    await clock.advance(6_000);
    await goaway;
    await whileTimePasses(clock, stop());
  },
  async "keepalive.max_connection_age_grace"(open) {
    const clock = createFakeClock();
    const settings = { keepalive: { max_connection_age: "5s", max_connection_age_grace: "10s", interval: "1h" } };
    const { url, stop } = await open({ settings, clock });
    using session = rawSession(url);
    const watch = session.request({ ":method": "POST", ":path": WATCH, "content-type": "application/grpc" });
    watch.on("error", () => undefined).resume();
    watch.end(Buffer.alloc(5));
    await once(watch, "response");
    const goaway = once(session, "goaway");
    await clock.advance(6_000);
    await goaway;
    await clock.advance(8_000);
    expect(watch.closed).toBe(false);
    const closed = once(watch, "close");
    // The grace may have begun as late as the time was moved to first.
    await clock.advance(3_000);
    await closed;
    await whileTimePasses(clock, stop());
  },
  async "shutdown.drain"(open) {
    const clock = createFakeClock();
    const files = { "tools/draining.yaml": tool("draining", { endpoint: at("silent/draining") }) };
    const { client, stop } = await open({ files, settings: setting("shutdown.drain", "3s"), clock });
    const call = client.call("draining").catch(reasonOf);
    await expect.poll(() => upstream.last("draining"), { timeout: 20_000 }).toBeDefined();
    const stopped = stop();
    await clock.advance(2_000);
    expect(await Promise.race([call, Promise.resolve("still running")])).toBe("still running");
    await clock.advance(1_000);
    expect(await call).toBe("GATEWAY_STOPPING");
    client[Symbol.dispose]();
    await whileTimePasses(clock, stopped);
  },
  "ledger.retention": {
    values: ["1s", "1h"],
    async see({ client }) {
      await keyed(client, "json", "k1");
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      return (await keyed(client, "json", "k1")).stats?.replayed;
    },
    seen: [false, true],
  },
  "ledger.max_entries": {
    values: [1, 2],
    async see({ client }) {
      await keyed(client, "writing", "k1");
      return keyed(client, "writing", "k2").then(() => "made", reasonOf);
    },
    seen: ["LEDGER_FULL", "made"],
  },
  "ledger.max_bytes": {
    values: ["1KiB", "1MiB"],
    async see({ client }) {
      for (let i = 0; i < 20; i++) await keyed(client, "json", `k${i}`);
      return keyed(client, "json", "k0").then((response) => response.stats?.replayed, reasonOf);
    },
    seen: ["CALL_ALREADY_MADE", true],
  },
  "results.model_window": {
    values: [1_000, 200_000],
    async see({ client }) {
      const { result } = await client.call("wordy");
      return (result?.notices ?? []).map(({ reason }) => reason);
    },
    seen: [["RESULT_BUDGET"], []],
  },
  "results.keep": {
    values: [false, true],
    see: async (gateway) => (await keptHandle(gateway)) !== "",
    seen: [false, true],
  },
  "results.ttl": {
    section: "results",
    values: [
      { keep: true, ttl: "1h" },
      { keep: true, ttl: "2h" },
    ],
    async see(gateway) {
      const { result } = await readKept(gateway, await keptHandle(gateway));
      return Math.round((Date.parse(result?.expireTime ?? "") - Date.now()) / 3_600_000);
    },
    seen: [1, 2],
  },
  "results.principal_bytes": {
    section: "results",
    values: [
      { keep: true, principal_bytes: "1KiB" },
      { keep: true, principal_bytes: "1MiB" },
    ],
    see: firstKeptLasts,
    seen: [false, true],
  },
  "results.max_bytes": {
    section: "results",
    values: [
      { keep: true, max_bytes: "1KiB" },
      { keep: true, max_bytes: "1MiB" },
    ],
    see: firstKeptLasts,
    seen: [false, true],
  },
  async "results.encryption_key"(open) {
    const files = toolFiles();
    const plain = await open({ files, settings: { results: { keep: true } } });
    const settings = { results: { keep: true, encryption_key: "RESULT_KEY" } };
    const sealed = await open({ files, settings, env: { RESULT_KEY: "0f".repeat(32) } });
    const onDisk = async (gateway: OpenGateway): Promise<string> => {
      const name = (await keptHandle(gateway)).slice("result://".length);
      return readFile(join(gateway.folder, "state", "results", name), "latin1");
    };
    expect(await onDisk(plain)).toContain("xxxxxxxxxxxxxxxx");
    expect(await onDisk(sealed)).not.toContain("xxxxxxxxxxxxxxxx");
  },
  "resume.window": {
    values: ["0s", "7s"],
    see: async ({ client }) => (await beginStream(client, "silent")).started?.resumeWindow?.seconds,
    seen: [undefined, 7n],
  },
  "resume.calls": {
    values: [1, 2],
    async see({ client }) {
      await beginStream(client, "silent");
      return (await beginStream(client, "silent")).started?.resumeWindow !== undefined;
    },
    seen: [false, true],
  },
  "resume.call_memory": {
    values: ["1KiB", "1GiB"],
    async see({ client, folder }) {
      await wholeStream(client, "flowing");
      return readdir(join(folder, "state", "streams")).then(
        (files) => files.length,
        () => 0,
      );
    },
    seen: [1, 0],
  },
  async "resume.call_disk"(open) {
    const seen = ["1KiB", "1MiB"].map(async (value) => {
      const settings = { resume: { call_memory: "1KiB", call_disk: value } };
      const { client } = await open({ files: toolFiles(), settings });
      const callId = await wholeStream(client, "flowing");
      return wholeStream(client, { resume: { callId, afterSequence: 0n } }).then(() => "resumed", reasonOf);
    });
    expect(await Promise.all(seen)).toEqual(["RESUME_EXPIRED", "resumed"]);
  },
  "registration.roles": {
    values: [["operator"], ["others"]],
    see: registerTwo,
    seen: [
      ["taken", "taken"],
      ["PERMISSION_DENIED", "PERMISSION_DENIED"],
    ],
  },
  "registration.host_roles": {
    values: [["operator"], ["others"]],
    see: registerTwo,
    seen: [
      ["taken", "taken"],
      ["PERMISSION_DENIED", "taken"],
    ],
  },
  async "registration.code_roles"(open) {
    const register = async (roles: readonly string[]): Promise<unknown> => {
      const { client } = await open({ settings: { registration: { scripts: "allow", code_roles: roles } } });
      const declaration = { case: "declarationJson", value: script("echo", { command: "echo" }) } as const;
      return client.service.register({ declaration }).then(() => "taken", reasonOf);
    };
    expect([await register(["operator"]), await register(["others"])]).toEqual(["taken", "PERMISSION_DENIED"]);
  },
  "registration.secrets": {
    values: [[], ["OLD_*"], ["OLD_TOKEN"], ["OLD"]],
    async see({ client }) {
      const value = tool("registered", { auth: { header_name: "X-Key", secret_ref: "OLD_TOKEN" } });
      const declaration = { case: "declarationJson", value } as const;
      return client.service.register({ declaration }).then(() => "taken", reasonOf);
    },
    seen: ["DECLARATION_INVALID", "taken", "taken", "DECLARATION_INVALID"],
  },
  "registration.scripts": {
    values: ["refuse", "allow"],
    async see({ client }) {
      const declaration = { case: "declarationJson", value: script("echo", { command: "echo" }) } as const;
      return client.service.register({ declaration }).then(() => "taken", reasonOf);
    },
    seen: ["DECLARATION_INVALID", "taken"],
  },
  "scripts.shell": {
    values: ["refuse", "allow"],
    async see({ client, folder }) {
      await writeFile(
        join(folder, "tools", "shell.yaml"),
        script("shell", { command: "echo $((6 * 7))", shell: true }),
      );
      const { service } = client;
      await retryUntil(
        () => service.list({ pageSize: 100 }),
        ({ tools, problems }) => problems.length > 0 || tools.some(({ name }) => name === "shell"),
      );
      return client.call("shell").then(textOf, reasonOf);
    },
    seen: ["TOOL_NOT_FOUND", "42\n"],
  },
  "servers.program_starts": startsInTurn(
    "program_starts",
    (mark) => ({ command: "sh", args: ["-c", `echo >'${mark}'; exec cat >/dev/null`] }),
    existsSync,
  ),
  "servers.remote_starts": startsInTurn(
    "remote_starts",
    (mark) => ({ url: at(`silent/${basename(mark)}`) }),
    (mark) => upstream.last(basename(mark)) !== undefined,
  ),
  "defaults.allowed_roles": {
    values: [["operator"], ["others"]],
    see: async (gateway) => (await namesOf(gateway)).length > 0,
    seen: [true, false],
  },
  "defaults.allowed_subjects": {
    values: [["anonymous"], ["others"]],
    see: async (gateway) => (await namesOf(gateway)).length > 0,
    seen: [true, false],
  },
  async expose(open) {
    const gateway = await open({ files: { "tools/one.yaml": tool("one"), "tools/two.yaml": tool("two") } });
    expect(await namesOf(gateway)).toEqual(["one", "two"]);
    const toolsets = { some: { tools: ["two"] } };
    const { applied } = await gateway.reconfigure({ expose: "toolsets", toolsets });
    expect(applied.toSorted()).toEqual(["expose", "toolsets.some"]);
    await expect.poll(() => namesOf(gateway), { timeout: 20_000 }).toEqual(["two"]);
    expect(await gateway.client.call("one").catch(reasonOf)).toBe("TOOL_NOT_FOUND");
  },
  async denied_calls(open) {
    const files = { "tools/hidden.yaml": tool("hidden", { allowed_roles: ["others"] }) };
    const gateway = await open({ files });
    expect(await gateway.client.call("hidden").catch(reasonOf)).toBe("TOOL_NOT_FOUND");
    expect((await gateway.reconfigure({ denied_calls: "permission_denied" })).applied).toEqual(["denied_calls"]);
    expect(await gateway.client.call("hidden").catch(reasonOf)).toBe("PERMISSION_DENIED");
    expect(await gateway.client.call("missing").catch(reasonOf)).toBe("TOOL_NOT_FOUND");
  },
  reflection: {
    values: [true, false],
    see: async ({ url }) => (await statusOf(url + REFLECTION, {})) === 404,
    seen: [false, true],
  },
  "cors.allowed_origins": {
    values: [[FIRST], [SECOND]],
    see: ({ url }) => statusOf(url + LIST, { origin: FIRST, "content-type": "application/json" }),
    seen: [200, 403],
  },
  async "faults.seed"(open) {
    const faults = (seed: number) => ({
      faults: { seed, rules: [{ tools: ["json"], share: 0.5, outcome: "unreachable" }] },
    });
    const outcomes = async (seed: number, seedLater = seed): Promise<string> => {
      const { client, reconfigure } = await open({ files: toolFiles(), settings: faults(seed), injectFaults: true });
      await reconfigure(faults(seedLater));
      let seen = "";
      for (let i = 0; i < 20; i++) seen += await client.call("json").then(() => ".", reasonOf);
      return seen;
    };
    expect(await outcomes(1)).not.toBe(await outcomes(2));
    expect(await outcomes(1, 2)).toBe(await outcomes(2));
  },
  async "faults.rules"(open) {
    const settings = setting("faults.rules", [{ tools: ["json"], outcome: "unreachable" }]);
    const willing = await open({ files: toolFiles(), settings, injectFaults: true });
    expect(await willing.client.call("json").catch(reasonOf)).toBe("UPSTREAM_UNREACHABLE");
    expect(await willing.client.call("yaml").then(() => "OK", reasonOf)).toBe("OK");
    expect((await willing.reconfigure({})).applied).toContain("faults.rules");
    expect(await willing.client.call("json").then(() => "OK", reasonOf)).toBe("OK");
    const unwilling = await open({ files: toolFiles(), settings });
    expect(await unwilling.client.call("json").then(() => "OK", reasonOf)).toBe("OK");
  },
  ...RECORD_EFFECTS,
  ...TELEMETRY_EFFECTS,
  // The logger is made from the key by the command line.
  async "log.level"(open) {
    const { port, folder, stop } = await open({ files: { "tools/broken.yaml": "name: [" } });
    await stop();
    const config = join(folder, "gateway.yaml");
    const written = async (level: string): Promise<ReadonlySet<string>> => {
      await writeFile(config, JSON.stringify({ listen: `127.0.0.1:${port}`, log: { level } }));
      await using child = spawnScript(["src/main.ts", "serve", "--config", config], {});
      await retryUntil(
        () => fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined),
        (response) => response?.status === 200,
        60_000,
      );
      await child.stop("SIGTERM");
      return new Set([...child.output().matchAll(/"level":"(\w+)"/g)].map(([, word = ""]) => word));
    };
    expect(await written("info")).toEqual(new Set(["error", "info"]));
    expect(await written("error")).toEqual(new Set(["error"]));
  },
};

test.for(Object.entries(EFFECTS))("`%s` of gateway.yaml has an effect", { timeout: 240_000 }, async ([key, effect]) => {
  await using used = new AsyncDisposableStack();
  const open: Open = async (options) => {
    const folder = options?.folder ?? used.use(await temporaryFolder()).path;
    const opening = openGateway({ ...options, folder });
    const clock = options?.clock;
    return used.use(await (clock === undefined ? opening : whileTimePasses(clock, opening)));
  };
  if (typeof effect === "function") {
    await effect(open);
    return;
  }
  const see = async (value: unknown): Promise<unknown> =>
    effect.see(await open({ files: toolFiles(), settings: setting(effect.section ?? key, value) }));
  expect(await Promise.all(effect.values.map(see))).toEqual(effect.seen);
});

const DIFFERENCES = Object.entries(EFFECTS).flatMap(([key, effect]) =>
  typeof effect === "function" ? [] : [{ key, ...effect }],
);

test.for(DIFFERENCES)(
  "`$key` changed while the gateway runs is in force, or named and left as it was [S2-124]",
  {
    timeout: 240_000,
  },
  async ({ key, section = key, values, see, seen }) => {
    await using folder = await temporaryFolder();
    const settings = (value: unknown) => setting(section, value);
    await using gateway = await openGateway({ folder: folder.path, files: toolFiles(), settings: settings(values[0]) });
    // The steps of a tool are made for its first call, so there has to be one.
    const { tools } = await gateway.client.service.list({ pageSize: 100 });
    await Promise.all(
      tools.map(({ name }) =>
        gateway.client.service.call({ invocation: { name, validateOnly: true } }).catch(reasonOf),
      ),
    );
    const { applied, needRestart } = await gateway.reconfigure(settings(values.at(-1)));
    expect([...applied, ...needRestart]).toContain(key);
    if (applied.includes(key)) await expect.poll(() => see(gateway), { timeout: 60_000 }).toEqual(seen.at(-1));
    else expect(await see(gateway)).toEqual(seen[0]);
  },
);

test("every key of gateway.yaml has a test of its effect", () => {
  const policies = Object.keys(POLICY_SETTINGS).map((key) => `defaults.${key}`);
  expect([...Object.keys(EFFECTS), ...policies].toSorted()).toEqual(Object.keys(SETTINGS).toSorted());
});
