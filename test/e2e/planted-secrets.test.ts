import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OperatorService } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { parseGatewayConfig } from "../../src/config/gateway-config.ts";
import { createGateway, createPinoLogger, createSecrets } from "../../src/index.ts";
import { toolgate } from "./cli-process.ts";
import { temporaryFolder } from "./effects-gateway.ts";
import { createGatewayClient, type GatewayClient, retryUntil } from "./gateway-client.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";

/** The part of a planted secret that no encoding of text changes; each has its own. */
const core = (n: number): string => `pLant${String(n).padStart(2, "0")}Zq7Wk4Xv9Rb2Mn`;

/** Characters around it that encodings do change. */
const secretOf = (n: number): string => `${core(n)}+/="&'<~ ${n}`;

/** How an upstream may give a value back. */
type Place = (response: ServerResponse, secret: string, request: IncomingMessage) => void;

const json = (value: unknown): string => JSON.stringify(value);
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const hex = (text: string): string => Buffer.from(text).toString("hex");

function send(type: string, body: (secret: string) => string | Buffer, status = 200, headers = {}): Place {
  return (response, secret) => {
    response.writeHead(status, { "content-type": type, ...headers }).end(body(secret));
  };
}

/** Bytes one by one, with the head at once. */
function dripped(type: string, body: (secret: string) => string): Place {
  return (response, secret) => {
    response.writeHead(200, { "content-type": type });
    const bytes = Buffer.from(body(secret));
    let at = 0;
    const more = (): void => {
      if (at === bytes.length) response.end();
      else response.write(bytes.subarray(at, ++at), () => setImmediate(more));
    };
    more();
  };
}

const incremental = { delivery: "incremental" };
const asText = { result: { format: "text" } };

/** Every place, with what its declaration says besides. */
const PLACES: Readonly<Record<string, readonly [Place, Readonly<Record<string, unknown>>?]>> = {
  value: [send("application/json", (s) => json({ a: { b: [s] } }))],
  key: [send("application/json", (s) => json({ [s]: 1 }))],
  ascii_json: [send("application/json", (s) => json({ a: s }).replace("é", "\\u00e9"))],
  html_json: [send("application/json", (s) => json({ a: s }).replace("<", "\\u003c").replace("&", "\\u0026"))],
  json_in_json: [send("application/json", (s) => json({ a: json({ b: s }) }))],
  all_headers: [
    (response, _secret, { headers }) => void response.setHeader("content-type", "application/json").end(json(headers)),
  ],
  text: [send("text/plain; charset=utf-8", (s) => `the key is ${s}.`)],
  latin1: [send("text/plain; charset=latin1", (s) => Buffer.from(s, "latin1"))],
  html: [
    send(
      "text/html",
      (s) => `<p>${s.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;").replace(/'/g, "&#39;")}</p>`,
    ),
  ],
  query: [send("text/plain", (s) => `https://example.com/?k=${encodeURIComponent(s)}`)],
  mixed_percent: [
    send("text/plain", (s) =>
      [...Buffer.from(s)].map((b, i) => `%${b.toString(16)[i % 2 === 0 ? "toUpperCase" : "toLowerCase"]()}`).join(""),
    ),
  ],
  twice_percent: [send("text/plain", (s) => encodeURIComponent(encodeURIComponent(s)))],
  form: [send("application/x-www-form-urlencoded", (s) => new URLSearchParams({ k: s }).toString())],
  upper: [send("text/plain; charset=utf-8", (s) => s.toUpperCase())],
  lower: [send("text/plain; charset=utf-8", (s) => s.toLowerCase())],
  base64: [send("text/plain", base64)],
  base64url: [send("text/plain", (s) => Buffer.from(s).toString("base64url"))],
  basic: [send("text/plain", (s) => `Basic ${base64(`u:${s}`)} ${base64(`us:${s}`)} ${base64(`use:${s}`)}`)],
  hex: [send("text/plain", hex)],
  upper_hex: [send("text/plain", (s) => hex(s).toUpperCase())],
  octets: [send("application/octet-stream", (s) => Buffer.from(`\u0000\u0001${s}\u0000`))],
  gzip: [send("application/json", (s) => gzipSync(json({ s })), 200, { "content-encoding": "gzip" })],
  bad_gzip: [send("application/json", (s) => Buffer.from(s), 200, { "content-encoding": "gzip" })],
  csv: [send("text/csv; charset=utf-8", (s) => `a,b\n1,"${s.replace(/"/g, '""')}"\n`)],
  bad_json: [send("application/json", (s) => `{"a": ${s}`)],
  bad_json_early: [send("application/json", (s) => `${s} is no JSON`), { result: { format: "json" } }],
  header: [send("application/json", () => "{}", 200, { "x-debug": "" })],
  type: [(response, s) => void response.writeHead(200, { "content-type": `text/plain; charset=${s}` }).end("x")],
  encoding: [(response, s) => void response.writeHead(200, { "content-encoding": s }).end("x")],
  status_text: [(response, s) => void response.writeHead(503, s, { "content-type": "text/plain" }).end("busy")],
  error_text: [send("text/plain; charset=utf-8", (s) => `cannot use ${s}`, 500)],
  error_page: [send("text/html", (s) => `<html><title>Bad ${s}</title>${s}</html>`, 502)],
  error_json: [send("application/json", (s) => json({ error: { message: `bad key ${s}` } }), 400)],
  error_cut: [send("text/plain", (s) => `${"x ".repeat(244)}${s}`, 500)],
  error_word: [
    send("application/json", (s) => json({ code: 1, message: `${"y ".repeat(243)}${s}` })),
    { result: { success_field: "code", success_value: 0 } },
  ],
  refused: [send("application/json", (s) => json({ message: s }), 401)],
  success_value: [
    send("application/json", (s) => json({ code: s })),
    { result: { success_field: "code", success_value: 0 } },
  ],
  missing_field: [send("application/json", (s) => json({ [s]: 1 })), { result: { data_field: "data.x" } }],
  elsewhere: [
    (response, s) => void response.writeHead(307, { location: `http://127.0.0.1:9/${encodeURIComponent(s)}` }).end(),
  ],
  same_place: [
    (response, s, { url }) =>
      void (url?.includes("?") === true
        ? send("application/json", () => json({ url }), 200)(response, s, {} as never)
        : response.writeHead(302, { location: `/same_place?k=${encodeURIComponent(s)}` }).end()),
  ],
  cookie: [
    (response, s) =>
      void response
        .writeHead(200, { "set-cookie": `k=${encodeURIComponent(s)}`, "content-type": "application/json" })
        .end("{}"),
  ],
  cut: [
    send("text/plain; charset=utf-8", (s) => `${"z".repeat(90)}${s}${"z".repeat(200)}`),
    { result: { max_length: 110 } },
  ],
  summary: [
    send("application/json", (s) => json(Array.from({ length: 300 }, (_, i) => ({ i, s })))),
    { result: { max_length: 900, truncation: "summary" } },
  ],
  template: [
    send("application/json", (s) => json({ a: s.slice(0, 9), b: s.slice(9) })),
    { result: { template: "{a}{b}" } },
  ],
  reset: [
    (response, s) => void response.writeHead(200, { "content-length": "9999" }).write(s, () => response.destroy()),
  ],
  stream: [dripped("text/plain; charset=utf-8", (s) => `a ${s} b\n`), { ...incremental, ...asText }],
  stream_base64: [dripped("text/plain", (s) => `a ${base64(s)}\n`), { ...incremental, ...asText }],
  stream_end: [dripped("text/plain; charset=utf-8", (s) => `a ${s}`), { ...incremental, ...asText }],
  events: [
    dripped("text/event-stream", (s) => [...s].map((c) => `data: ${c}\n\n`).join("")),
    { ...incremental, ...asText },
  ],
  events_json: [dripped("text/event-stream", (s) => `data: ${json({ s })}\n\n`), incremental],
};
const NAMES = Object.keys(PLACES);
/** Places that have no room for anything but letters and digits. */
const NARROW = ["type", "encoding", "status_text"];

const SCRIPT = 'printf "%s out\\n" "$KEY"; printf "%s err\\n" "$KEY" >&2; env; exit $CODE';

/** A server that has its secret in everything it says. */
const SERVER = `
const s = process.env.KEY;
process.stderr.write("starting with " + s + "\\n");
console.log("noise " + s);
const out = (m) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...m }) + "\\n");
const text = (t) => ({ type: "text", text: t });
const results = {
  parts: { content: [text(s), { type: "image", mimeType: "image/png", data: Buffer.from("PNG" + s).toString("base64") },
    { type: "resource_link", uri: "x://" + encodeURIComponent(s), name: s, title: s, description: s, mimeType: s },
    { type: "resource", resource: { uri: "x://" + s, mimeType: "text/plain", text: s } },
    { type: "resource", resource: { uri: "x://b", mimeType: "application/json", blob: Buffer.from(JSON.stringify({ s })).toString("base64") } },
    { ...text("a"), annotations: { audience: [s], lastModified: s } }, { type: s, odd: s }] },
  structured: { content: [text(JSON.stringify({ [s]: s }))], structuredContent: { [s]: [s, { deep: "a" + s }] } },
  failing: { isError: true, content: [text("MCP error -32603: cannot use " + s)] },
  failing_json: { isError: true, content: [text(JSON.stringify({ error: s, more: s }))] },
};
const tools = [...Object.keys(results), "error", "dying", "named"].map((name) => ({ name, title: "T " + s, description: "Uses " + s,
  inputSchema: { type: "object", properties: { a: { type: "string", description: "like " + s, ...(name === "named" ? { enum: [s] } : {}) } } } }));
let buffer = "";
process.stdin.on("data", (d) => { buffer += d; for (let i; (i = buffer.indexOf("\\n")) >= 0; buffer = buffer.slice(i + 1)) answer(JSON.parse(buffer.slice(0, i))); });
function answer({ id, method, params }) {
  if (id === undefined) return;
  if (method === "initialize") return out({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {}, logging: {} }, serverInfo: { name: s, version: s }, instructions: s } });
  if (method === "tools/list") return out({ id, result: { tools } });
  if (method !== "tools/call") return out({ id, error: { code: -32601, message: "no " + s } });
  out({ method: "notifications/message", params: { level: "info", logger: s, data: { s } } });
  const progressToken = params._meta?.progressToken;
  if (progressToken !== undefined) out({ method: "notifications/progress", params: { progressToken, progress: 1, message: s } });
  if (params.name === "error") return out({ id, error: { code: -32000, message: "broke on " + s, data: { s, stack: s } } });
  if (params.name === "dying") { process.stderr.write("dies of " + s + "\\n", () => process.exit(3)); return; }
  out({ id, result: results[params.name] });
}
`;

const ENV: Record<string, string> = {};
const CORES: string[] = [];

function plant(name: string): void {
  const n = CORES.length;
  CORES.push(core(n));
  // A header holds no letters beyond ASCII.
  const whole = secretOf(n).replace("~", Object.hasOwn(PLACES, name) ? "~" : "é");
  ENV[`PLANT_${name.toUpperCase()}`] = NARROW.includes(name) ? core(n) : whole;
}

for (const name of [...NAMES, "script", "script_failing", "server"]) plant(name);

/** What a secret must not show up as, in lower case; of base64 the stretch that stays the same however it is aligned. */
function traces(text: string): string[] {
  const found: string[] = [];
  const low = text.toLowerCase();
  for (const each of CORES) {
    // Eight characters in a row are too many; the beginning of all of them is the same, so it is left aside.
    const own = each.slice(5, 13).toLowerCase();
    const encoded = [0, 1, 2].map((skip) => base64(`${"_".repeat(skip)}${each}`).slice(skip === 0 ? 0 : 4, -4));
    const percent = [...own].map((c) => `%${hex(c)}`).join("");
    for (const form of [own, hex(own), percent, ...encoded.map((e) => e.toLowerCase())])
      if (low.includes(form)) found.push(`${each} as ${form}`);
  }
  return found;
}

const running = new AsyncDisposableStack();
const lines: string[] = [];
/** Places that got their secret. */
const reached = new Set<string>();
let gateway: GatewayClient;
let port = 0;

function declaration(name: string): string {
  const [, keys = {}] = PLACES[name] ?? [];
  const auth = { header_name: "X-Key", secret_ref: `PLANT_${name.toUpperCase()}`, prefix: "" };
  return json({
    name,
    description: "echoes what it is given",
    type: "http",
    endpoint: `http://127.0.0.1:${upstreamPort}/${name}`,
    auth,
    ...keys,
  });
}

let upstreamPort = 0;

beforeAll(async () => {
  const server = createServer((request, response) => {
    const name = request.url?.split(/[/?]/)[1] ?? "";
    const secret = ENV[`PLANT_${name.toUpperCase()}`] ?? "";
    if (request.headers["x-key"] === secret) reached.add(name);
    PLACES[name]?.[0](response, secret, request);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  running.defer(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const address = server.address();
  upstreamPort = typeof address === "object" && address !== null ? address.port : 0;
  const folder = running.use(await temporaryFolder()).path;
  const env = (name: string): object => ({ CODE: "0", KEY: { secret_ref: `PLANT_${name.toUpperCase()}` } });
  const script = { type: "script", description: "prints its variables", command: "/bin/sh", args: ["-c", SCRIPT] };
  const files: Record<string, string> = {
    "server.mjs": SERVER,
    ...Object.fromEntries(NAMES.map((name) => [`tools/${name}.json`, declaration(name)])),
    "tools/script.json": json({ ...script, name: "script", env: env("script") }),
    "tools/script_stream.json": json({ ...script, name: "script_stream", env: env("script"), ...incremental }),
    "tools/script_failing.json": json({
      ...script,
      name: "script_failing",
      env: { ...env("script_failing"), CODE: "4" },
    }),
    "tools/server.json": json({
      name: "server",
      type: "mcp",
      mcp: { command: process.execPath, args: [join(folder, "server.mjs")], env: env("server") },
    }),
  };
  await mkdir(join(folder, "tools"));
  for (const [path, text] of Object.entries(files)) await writeFile(join(folder, path), text);
  const parsed = parseGatewayConfig(json({ listen: "127.0.0.1:0", log: { level: "debug" } }), {
    file: "gateway.yaml",
    folder,
  });
  if (!parsed.ok) throw new Error(json(parsed.problems));
  const secrets = createSecrets(ENV);
  const destination = { write: (line: string) => void lines.push(line) };
  const made = await createGateway({
    config: parsed.config,
    secrets,
    logger: createPinoLogger({ level: "debug", destination, redactor: secrets.redactor }),
    environment: { PATH: process.env["PATH"] },
  });
  running.use(made);
  port = Number(new URL(made.url).port);
  gateway = createGatewayClient(port);
  running.defer(() => gateway[Symbol.dispose]());
  await retryUntil(
    () => gateway.service.list({ pageSize: 1000 }),
    ({ tools }) => tools.some(({ name }) => name === "server/parts"),
    60_000,
  );
}, START_TIMEOUT_MS * 3);

afterAll(async () => {
  await running.disposeAsync();
});

/** All of a message or an error, bytes as text, with the bytes of details in it. */
function everything(value: unknown): string {
  if (value instanceof ConnectError)
    return [value.message, value.rawMessage, everything(value.details), everything([...value.metadata])].join("\n");
  const text = JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner === "bigint") return String(inner);
    return inner instanceof Uint8Array ? Buffer.from(inner).toString("utf8") : inner;
  });
  return text ?? "";
}

const TOOLS = [
  ...NAMES,
  "script",
  "script_stream",
  "script_failing",
  ...["parts", "structured", "failing", "failing_json", "error", "dying"].map((name) => `server/${name}`),
];

test("there are more than 50 secrets, and the upstreams do give them away", async () => {
  expect(CORES.length).toBeGreaterThan(50);
  expect(TOOLS.length).toBeGreaterThan(55);
  const answer = await fetch(`http://127.0.0.1:${upstreamPort}/basic`);
  expect(traces(await answer.text())).not.toEqual([]);
});

test.for(TOOLS)(
  "no caller of %s sees its secret, in one answer, in pieces or explained [K-D01, K-D04, K-D05]",
  async (name) => {
    const invocation = { name, explain: true };
    const whole = await gateway.service.call({ invocation }).catch(ConnectError.from);
    expect(traces(everything(whole))).toEqual([]);
    const pieces: unknown[] = [];
    let output = "";
    try {
      for await (const message of gateway.service.callStream({ invocation })) {
        pieces.push(message);
        const { event } = message;
        if (event.case === "output" && event.value.delta.case === "text") output += event.value.delta.value;
      }
    } catch (error) {
      pieces.push(everything(ConnectError.from(error)));
    }
    expect(traces(`${everything(pieces)}\n${output}`)).toEqual([]);
  },
);

test("nothing that is told of tools and of the gateway holds a secret, nor does the command line or the log [K-D01, K-D05, S2-47]", {
  timeout: START_TIMEOUT_MS,
}, async () => {
  const told: unknown[] = [await gateway.service.list({ pageSize: 1000 })];
  using watching = { [Symbol.dispose]: () => stop.abort() };
  const stop = new AbortController();
  for await (const event of gateway.service.watch({}, { signal: stop.signal })) {
    told.push(event);
    if (event.event.case === "synced") break;
  }
  void watching;
  const operator = createClient(OperatorService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }));
  for (const name of ["value", "server", "server/parts", "script"]) told.push(await operator.explain({ name }));
  told.push(await operator.diagnose({}));
  const text = everything(told);
  expect(text).toContain("Uses ***");
  expect(text).toContain("is left out: a name or a value in it holds a secret");
  expect(traces(text)).toEqual([]);
  const command = { env: { TOOLGATE_ADDRESS: `127.0.0.1:${port}` } };
  for (const args of [
    ["tool", "list"],
    ["tool", "get", "server/parts"],
    ["doctor"],
    ["tool", "call", "all_headers", "--explain"],
    ["tool", "call", "server/error"],
    ["tool", "call", "stream"],
  ]) {
    const { stdout, stderr } = await toolgate(args, command);
    expect(traces(stdout + stderr)).toEqual([]);
  }
  expect(NAMES.filter((name) => !reached.has(name))).toEqual([]);
  expect(lines.length).toBeGreaterThan(TOOLS.length);
  expect(traces(lines.join(""))).toEqual([]);
});
