import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TruncationMode } from "../../gen/toolgate/v1/call_pb.ts";
import { type CallStreamResponse, ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { type Tool, ToolState } from "../../gen/toolgate/v1/tool_pb.ts";
import { copyExamples, type ExamplesCopy, type ExamplesProcess, startExamples } from "./examples-process.ts";
import { createGatewayClient, type GatewayClient, reasonOf, retryUntil, textOf, valueOf } from "./gateway-client.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";
import { WIRE_CLIENTS } from "./wire-clients.ts";

const running = new AsyncDisposableStack();
let copy: ExamplesCopy;
let examples: ExamplesProcess;
let gateway: GatewayClient;

beforeAll(async () => {
  copy = running.use(await copyExamples());
  examples = running.use(await startExamples(copy));
  gateway = running.use(createGatewayClient(examples.port));
}, START_TIMEOUT_MS);

afterAll(async () => {
  await running.disposeAsync();
});

async function refusal(name: string, args: Readonly<Record<string, unknown>>): Promise<unknown> {
  return gateway.call(name, args).then(
    (response) => response,
    (error: unknown) => error,
  );
}

async function read(stream: AsyncIterable<CallStreamResponse>): Promise<{ text: string; events: string[] }> {
  let text = "";
  const events: string[] = [];
  for await (const { event } of stream) {
    events.push(event.case ?? "");
    if (event.case === "output" && event.value.delta.case === "text") text += event.value.delta.value;
  }
  return { text, events };
}

function declare(name: string, path: string, more = ""): string {
  return (
    `name: ${name}\ndescription: 重新加载的测试工具 for the test of reloading\ntype: http\nmethod: GET\n` +
    `endpoint: http://127.0.0.1:${copy.upstreamPort}/${path}\n${more}`
  );
}

const toolFile = (name: string): string => join(copy.folder, "tools", name);

test("every example is listed, and the one whose key is missing is unavailable with the reason [S2-26, S2-85]", async () => {
  const { tools, problems } = await gateway.service.list({});
  expect(problems).toEqual([]);
  expect(tools.map((tool) => tool.name)).toEqual([
    "create_refund",
    "delivery_note",
    "flaky_service",
    "import_progress",
    "log_tail",
    "order_search",
    "order_status",
    "slow_report",
    "stock_table",
    "weather",
    "work_days",
  ]);
  const unready = tools.filter((tool: Tool) => tool.state !== ToolState.READY);
  expect(unready.map(({ name, state }) => [name, state])).toEqual([["weather", ToolState.UNAVAILABLE]]);
  expect(unready[0]?.stateReason).toContain("WEATHER_API_KEY");
  expect(tools.find((tool) => tool.name === "order_status")?.description).toContain(
    "根据订单号查询订单当前状态和运单号",
  );
});

test.each([
  ["order_status", { order_id: "SO20241001" }, { status: "已发货", tracker: "SF1234567890" }],
  ["order_search", { customer: "C2002" }, [{ id: "SO20241003", status: "已签收", tracker: "SF9876543210" }]],
  ["create_refund", { order_id: "SO20241001", amount_cents: 100 }, { refund_id: "RFdb7634fb9c", status: "已受理" }],
  ["flaky_service", { mode: "ok" }, { mode: "ok" }],
  ["slow_report", { month: "2024-10", seconds: 0 }, { report: "2024-10", seconds: 0, revenue_cents: 1_234_500 }],
])("%s(%j) gives the business fields alone [S2-83, S2-89, S2-91]", async (name, args, expected) => {
  const response = await gateway.call(name, args);
  expect(response.result?.failure).toBeUndefined();
  expect(valueOf(response)).toEqual(expected);
});

test("the history of an order is there where it is asked for [S2-24, S2-25]", async () => {
  const response = await gateway.call("order_status", { order_id: "SO20241001", include_history: true });
  expect(valueOf(response)).toMatchObject({ status: "已发货", history: [{ status: "已付款" }, {}, {}] });
});

test("the delivery note is plain text [S2-06]", async () => {
  expect(textOf(await gateway.call("delivery_note", { order_id: "SO20241001" }))).toContain("运单号 SF1234567890");
});

test("the stock table is cut to its beginning and its end and says so [S2-112, S2-115]", async () => {
  const response = await gateway.call("stock_table");
  expect(response.result?.truncation?.mode).toBe(TruncationMode.HEAD_TAIL);
  expect(Number(response.result?.truncation?.originalLength)).toBeGreaterThan(90_000);
  const text = textOf(response);
  expect(Array.from(text).length).toBeLessThanOrEqual(1200);
  expect(text).toContain("SKU-1");
  expect(text).toContain("SKU-2000");
});

test("an unknown order is the tool's own failure, in its own words [S2-90]", async () => {
  const response = await gateway.call("order_status", { order_id: "SO1" });
  expect(response.result?.failure).toMatchObject({ reason: "TOOL_FAILED" });
  expect(response.result?.failure?.message).toContain("订单不存在");
});

test("an overloaded upstream and half an answer are failures with a reason of their own", async () => {
  const overloaded = await gateway.call("flaky_service", { mode: "overloaded" });
  expect(overloaded.result?.failure).toMatchObject({ reason: "UPSTREAM_STATUS", upstreamCode: 503, retryable: true });
  const broken = await gateway.call("flaky_service", { mode: "broken" });
  expect(broken.result?.failure).toMatchObject({ reason: "UPSTREAM_BAD_RESPONSE" });
});

test("parameter, credential and network problems are told apart before a model is attached [S2-30, S2-88, S2-94]", async () => {
  expect(reasonOf(await refusal("order_status", {}))).toBe("ARGUMENTS_INVALID");
  expect(String(await refusal("order_status", {}))).toContain("order_id");
  expect(reasonOf(await refusal("weather", { location: "London" }))).toBe("SECRET_MISSING");
  expect(reasonOf(await refusal("flaky_service", { mode: "reset" }))).toBe("UPSTREAM_UNREACHABLE");
  expect(reasonOf(await refusal("order_state", {}))).toBe("TOOL_NOT_FOUND");
});

test("grpc-js reads the log tail line by line and the end last [S2-68, S2-71]", async () => {
  using client = WIRE_CLIENTS["grpc-js over gRPC"](examples.port);
  const { text, events } = await read(
    client.callStream({
      name: "log_tail",
      arguments: { case: "argumentsJson", value: '{"service":"orders","lines":3}' },
    }),
  );
  expect(text.match(/orders #\d/g)).toEqual(["orders #1", "orders #2", "orders #3"]);
  expect(events.filter((event) => event === "output").length).toBeGreaterThanOrEqual(3);
  expect(events[0]).toBe("started");
  expect(events.at(-1)).toBe("completed");
});

test("a browser's client reads the progress feed over fetch [S2-68]", async () => {
  const transport = createConnectTransport({ baseUrl: `http://127.0.0.1:${examples.port}` });
  const client = createClient(ToolGatewayService, transport);
  const { text, events } = await read(
    client.callStream({
      invocation: {
        name: "import_progress",
        arguments: { case: "argumentsJson", value: '{"import_id":"IM-7","steps":3}' },
      },
    }),
  );
  expect(text).toContain('"step":3');
  expect(events.at(-1)).toBe("completed");
});

test("a file dropped into the folder is a tool a moment later, and gone when it is removed [S1-03, S2-14, S2-20, S2-33]", async () => {
  await writeFile(toolFile("dropped.yaml"), declare("dropped", "stock?rows=1"));
  await retryUntil(
    () => gateway.call("dropped"),
    () => true,
  );
  await rm(toolFile("dropped.yaml"));
  await expect.poll(async () => reasonOf(await refusal("dropped", {}))).toBe("TOOL_NOT_FOUND");
});

test("each of 50 writes is callable within three seconds [S2-33]", { timeout: 180_000 }, async () => {
  const took: number[] = [];
  for (let version = 1; version <= 50; version++) {
    const text = declare("rewritten", `imports/v${version}/progress?steps=1`, "result: { format: text }\n");
    // Half of the writes replace the file, as editors do.
    const target = version % 2 === 0 ? toolFile("rewritten.yaml.tmp") : toolFile("rewritten.yaml");
    await writeFile(target, text);
    if (version % 2 === 0) await rename(target, toolFile("rewritten.yaml"));
    took.push(
      await retryUntil(
        () => gateway.call("rewritten"),
        (response) => textOf(response).includes(`"v${version}"`),
      ),
    );
  }
  took.sort((a, b) => a - b);
  console.log(`50 writes: callable after p50 ${took[25]?.toFixed(0)} ms, p100 ${took.at(-1)?.toFixed(0)} ms`);
  // One of ten may wait for a machine that is busy with other things.
  expect(took[44]).toBeLessThan(3_000);
});

test("a call in flight finishes on the version it began with [S2-19]", async () => {
  await writeFile(
    toolFile("running.yaml"),
    declare("running", "imports/old/progress?steps=12", "delivery: incremental\n"),
  );
  await retryUntil(
    () => gateway.service.get({ name: "running" }),
    () => true,
  );
  const stream = gateway.service.callStream({ invocation: { name: "running" } })[Symbol.asyncIterator]();
  expect((await stream.next()).value).toMatchObject({ event: { case: "started" } });
  const rest = read({ [Symbol.asyncIterator]: () => stream });
  await writeFile(
    toolFile("running.yaml"),
    declare("running", "imports/new/progress?steps=1", "delivery: incremental\n"),
  );
  await retryUntil(
    () => gateway.call("running"),
    (response) => textOf(response).includes('"new"'),
  );
  const { text, events } = await rest;
  expect(text).toContain('"import":"old","step":12');
  expect(text).not.toContain('"new"');
  expect(events.at(-1)).toBe("completed");
});
