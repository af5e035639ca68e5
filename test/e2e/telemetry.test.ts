import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseGatewayConfig } from "../../src/config/gateway-config.ts";
import type { LogFields, Logger } from "../../src/core/logger.ts";
import { silentLogger } from "../../src/core/logger.ts";
import { createGateway } from "../../src/gateway.ts";
import { openApiKeys } from "../../src/identity/key-administration.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { createGatewayClient, reasonOf, retryUntil, valueOf } from "./gateway-client.ts";
import { type OtlpReceiver, type SpanSeen, startOtlpReceiver } from "./otlp-receiver.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = { traceparent: `00-${TRACE}-b7ad6b7169203331-01`, tracestate: "vendor=1", baggage: "user=7" };

interface Traced extends AsyncDisposable {
  readonly gateway: OpenGateway;
  readonly receiver: OtlpReceiver;
  /** Headers of each request that came to the upstream. */
  readonly requests: Readonly<Record<string, string | string[] | undefined>>[];
  /** Stops the gateway, so that all is sent. */
  spans(): Promise<readonly SpanSeen[]>;
}

/** A gateway with tools of an upstream that answers as often with 503 as its path says. */
async function tracedGateway(settings: Readonly<Record<string, unknown>> = {}): Promise<Traced> {
  const running = new AsyncDisposableStack();
  const receiver = running.use(await startOtlpReceiver());
  const requests: Traced["requests"] = [];
  const server = createServer((request, response) => {
    requests.push(request.headers);
    const isBad = requests.length <= Number(/\d+/.exec(request.url ?? "")?.[0] ?? 0);
    setTimeout(() => response.writeHead(isBad ? 503 : 200, { "content-type": "application/json" }).end("{}"), 20);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  running.defer(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  const tool = (name: string, keys: object): string =>
    JSON.stringify({
      name,
      description: "用于检查追踪 a tool that is traced",
      type: "http",
      endpoint: `http://127.0.0.1:${port}/0`,
      ...keys,
    });
  const files = {
    "tools/plain.yaml": tool("plain", {}),
    "tools/again.yaml": tool("again", {
      endpoint: `http://127.0.0.1:${port}/1`,
      retry: { max_retries: 2, initial_backoff: "50ms" },
    }),
    "tools/narrow.yaml": tool("narrow", { concurrency_limit: 1 }),
    "tools/hidden.yaml": tool("hidden", { allowed_roles: ["nobody"] }),
    "tools/gone.yaml": tool("gone", { endpoint: "http://127.0.0.1:9/", circuit_breaker: { failure_threshold: 1 } }),
    "tools/program.yaml": JSON.stringify({
      name: "program",
      description: "用于检查追踪 a program that is traced",
      type: "script",
      command: process.execPath,
      args: ["-e", "console.log(JSON.stringify(process.env))"],
      result: { format: "json" },
    }),
  };
  const { path: folder } = running.use(await temporaryFolder());
  const telemetry = { endpoint: receiver.endpoint };
  const gateway = running.use(await openGateway({ folder, files, settings: { telemetry, ...settings } }));
  return {
    gateway,
    receiver,
    requests,
    async spans() {
      await gateway.stop();
      return receiver.spans;
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

const named = (spans: readonly SpanSeen[], name: string): readonly SpanSeen[] =>
  spans.filter((span) => span.name === name);

const ids = (header: unknown): readonly string[] => String(header).split("-").slice(1, 3);

test("a call goes on with its caller's trace, down to the upstream, with a span for it and for each attempt", async () => {
  await using it = await tracedGateway();
  const context = { sessionId: "s-1", toolCallId: "c-1" };
  await it.gateway.client.service.call({ invocation: { name: "plain", context } }, { headers: CALLER });
  const spans = await it.spans();
  const [call] = named(spans, "execute_tool plain");
  const [attempt] = named(spans, "attempt 1");
  expect(call).toMatchObject({ traceId: TRACE, parentId: "b7ad6b7169203331", kind: 2, status: 0 });
  expect(call?.attributes).toMatchObject({
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "plain",
    "gen_ai.tool.call.id": "c-1",
    "gen_ai.conversation.id": "s-1",
    "rpc.service": "toolgate.v1.ToolGatewayService",
    "rpc.method": "Call",
    "rpc.grpc.status_code": 0,
    "toolgate.outcome": "ok",
  });
  expect(attempt).toMatchObject({ traceId: TRACE, parentId: call?.spanId, kind: 3 });
  expect(attempt?.attributes).toMatchObject({ "http.response.status_code": 200, "toolgate.attempt": 1 });
  const [request] = it.requests;
  expect(ids(request?.["traceparent"])).toEqual([TRACE, attempt?.spanId]);
  expect(request).toMatchObject({ tracestate: "vendor=1", baggage: "user=7" });
});

test("what waits has a span: the back-off between attempts, and a turn in line", async () => {
  await using it = await tracedGateway();
  await it.gateway.client.call("again");
  await Promise.all([it.gateway.client.call("narrow"), it.gateway.client.call("narrow")]);
  const spans = await it.spans();
  const [again] = named(spans, "execute_tool again");
  const ofAgain = spans.filter(({ parentId }) => parentId === again?.spanId).map(({ name }) => name);
  expect(ofAgain.toSorted()).toEqual(["attempt 1", "attempt 2", "back-off"]);
  const [queue] = named(spans, 'queue tool "narrow"');
  expect(spans.find(({ spanId }) => spanId === queue?.parentId)?.name).toBe("attempt 1");
});

test("a call that fails says so in its span, with its reason", async () => {
  await using it = await tracedGateway();
  await it.gateway.client.call("gone").catch(() => undefined);
  const [call] = named(await it.spans(), "execute_tool gone");
  expect(call).toMatchObject({
    status: 2,
    attributes: { "error.type": "UPSTREAM_UNREACHABLE", "toolgate.outcome": "error" },
  });
});

test("a program is told of its trace by its environment", async () => {
  await using it = await tracedGateway();
  const answer = await it.gateway.client.service.call({ invocation: { name: "program" } }, { headers: CALLER });
  const env = valueOf(answer) as Readonly<Record<string, string>>;
  const [attempt] = named(await it.spans(), "attempt 1");
  expect(ids(env["TRACEPARENT"])).toEqual([TRACE, attempt?.spanId]);
  expect(env).toMatchObject({ TRACESTATE: "vendor=1", BAGGAGE: "user=7" });
});

test("without telemetry the caller's trace is passed on as it came", async () => {
  await using it = await tracedGateway({ telemetry: {} });
  await it.gateway.client.service.call({ invocation: { name: "plain" } }, { headers: CALLER });
  expect(it.requests[0]).toMatchObject(CALLER);
  expect(await it.spans()).toEqual([]);
});

test("`/metrics` counts calls, attempts, waits, sizes, states of tools and circuits, programs and lost records [S2-69]", async () => {
  await using it = await tracedGateway({ metrics: { prometheus: true } });
  const { client, url } = it.gateway;
  await client.call("again");
  await client.call("gone").catch(() => undefined);
  await client.call("gone").catch(() => undefined);
  await client.call("made-up-by-a-caller").catch(() => undefined);
  const text = await (await fetch(`${url}/metrics`)).text();
  for (const line of [
    /^toolgate_calls_total\{.*gen_ai_tool_name="again",toolgate_outcome="ok".*\} 1/m,
    /^toolgate_calls_total\{.*gen_ai_tool_name="gone",toolgate_outcome="error",error_type="CIRCUIT_OPEN".*\} 1/m,
    /^toolgate_calls_total\{.*gen_ai_tool_name="none",toolgate_outcome="error",error_type="TOOL_NOT_FOUND".*\} 1/m,
    /^toolgate_retries_total\{.*gen_ai_tool_name="again".*\} 1/m,
    /^toolgate_call_duration_seconds_bucket\{.*gen_ai_tool_name="again".*le="60".*\} 1/m,
    /^toolgate_call_first_output_seconds_count\{.*gen_ai_tool_name="again".*\} 1/m,
    /^toolgate_upstream_response_size_bytes_sum\{.*gen_ai_tool_name="again".*\} 4/m,
    /^toolgate_calls_running\{.*gen_ai_tool_name="again".*\} 0/m,
    /^toolgate_tools\{.*toolgate_state="ready".*\} 5/m,
    /^toolgate_circuits_open\{.*\} 1/m,
    /^toolgate_programs\{.*\} 0/m,
    /^toolgate_records_lost_total\{.*toolgate_log="gateway".*\} 0/m,
    /^process_memory_usage_bytes\{.*\} \d/m,
    /^process_cpu_time_seconds_total\{.*cpu_mode="user".*\} \d/m,
    /^toolgate_acts_total\{.*toolgate_action="gateway-start".*\} 1/m,
  ]) {
    expect(text).toMatch(line);
  }
  expect(text).not.toContain("made-up-by-a-caller");
  // What has a unit says it, and what counts says that, before nothing but the parts of a histogram.
  const types = [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name = "", type = ""]) => [name, type] as const);
  expect(types.filter(([name, type]) => type === "counter" && !name.endsWith("_total"))).toEqual([]);
  expect(types.filter(([name, type]) => type === "histogram" && !/_(?:seconds|bytes)$/.test(name))).toEqual([]);
});

test("who reads `/metrics` shows a credential with a role of `metrics.roles`", async () => {
  await using it = await tracedGateway({
    metrics: { prometheus: true, roles: ["watcher"] },
    identity: { api_keys: true },
  });
  const keys = openApiKeys(join(it.gateway.folder, "state"));
  const make = async (name: string, roles: readonly string[]): Promise<string> =>
    (await keys.create({ name, roles, createTimeMs: Date.now(), expireTimeMs: undefined })).key;
  const [watcher, other] = [await make("prometheus", ["watcher"]), await make("other", ["operator"])];
  const status = async (headers: Readonly<Record<string, string>>): Promise<number> =>
    (await fetch(`${it.gateway.url}/metrics`, { headers })).status;
  await retryUntil(
    () => status({ authorization: `Bearer ${watcher}` }),
    (code) => code === 200,
  );
  expect(await status({})).toBe(401);
  expect(await status({ authorization: `Bearer ${other}` })).toBe(403);
});

test("a collector that does not answer keeps no call and no stop, and the log says so once", async () => {
  await using running = new AsyncDisposableStack();
  const { path: folder } = running.use(await temporaryFolder());
  const lines: string[] = [];
  const note = (message: string, fields?: LogFields): void => void lines.push(`${message} ${String(fields?.["what"])}`);
  const logger: Logger = { ...silentLogger, warn: note, child: () => logger };
  const settings = { listen: "127.0.0.1:0", telemetry: { endpoint: "http://127.0.0.1:9", interval: "1s" } };
  const parsed = parseGatewayConfig(JSON.stringify(settings), { file: "gateway.yaml", folder });
  if (!parsed.ok) throw new Error("refused");
  const gateway = running.use(await createGateway({ config: parsed.config, secrets: createSecrets({}), logger }));
  const client = running.use(createGatewayClient(Number(new URL(gateway.url).port)));
  for (let i = 0; i < 3; i++) expect(await client.call("absent").catch(reasonOf)).toBe("TOOL_NOT_FOUND");
  await retryUntil(
    async () => lines,
    (all) => all.includes("telemetry-not-sent metrics"),
  );
  const beganMs = performance.now();
  await gateway.stop();
  expect(performance.now() - beganMs).toBeLessThan(10_000);
  expect(lines.filter((line) => line === "telemetry-not-sent metrics")).toHaveLength(1);
});

test("a malformed trace of a caller is nobody's parent and is not passed on", async () => {
  await using it = await tracedGateway();
  const headers = { traceparent: "00-zz", tracestate: "vendor=1", baggage: "user=7" };
  await it.gateway.client.service.call({ invocation: { name: "plain" } }, { headers });
  const [call] = named(await it.spans(), "execute_tool plain");
  expect(call?.parentId).toBe("");
  expect(it.requests[0]).not.toHaveProperty("tracestate");
  expect(it.requests[0]).toMatchObject({ baggage: "user=7" });
});
