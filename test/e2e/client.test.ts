import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createBrowserTransport } from "../../clients/typescript/src/browser.ts";
import {
  createToolgateClient,
  type ToolgateClient,
  ToolgateError,
  ToolState,
} from "../../clients/typescript/src/index.ts";
import { createNodeTransport, type NodeTransport } from "../../clients/typescript/src/node.ts";
import { copyExamples, type ExamplesCopy, type ExamplesProcess, startExamples } from "./examples-process.ts";
import { REPOSITORY, spawnScript } from "./spawned.ts";

let copy: ExamplesCopy;
let examples: ExamplesProcess;
let transport: NodeTransport;
let client: ToolgateClient;
let url: string;

beforeAll(async () => {
  copy = await copyExamples();
  examples = await startExamples(copy, { ORDER_API_TOKEN: "sk-xxx-yyy" });
  url = `http://127.0.0.1:${examples.port}`;
  transport = createNodeTransport({ baseUrl: url });
  client = createToolgateClient(transport);
});

afterAll(async () => {
  transport.close();
  await examples[Symbol.asyncDispose]();
  await copy[Symbol.asyncDispose]();
});

async function failure(promise: Promise<unknown>): Promise<ToolgateError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof ToolgateError) return error;
  throw new Error(`expected a ToolgateError, got ${String(error)}`);
}

test("the client calls a tool and reads its structured result", async () => {
  const outcome = await client.call("order_status", { order_id: "SO20241001" });
  expect(outcome.failure).toBeUndefined();
  expect(outcome.structured()).toMatchObject({ status: "已发货", tracker: "SF1234567890" });
  expect(outcome.attempts).toBe(1);
});

test("wrong arguments, a missing tool and a missing secret are told apart [S2-88]", async () => {
  expect(await failure(client.call("order_status", { order_id: 7 }))).toMatchObject({
    reason: "ARGUMENTS_INVALID",
    status: "INVALID_ARGUMENT",
    effect: "none",
    violations: [{ field: "/order_id" }],
  });
  expect(await failure(client.call("order_statu"))).toMatchObject({ reason: "TOOL_NOT_FOUND", status: "NOT_FOUND" });
  expect(await failure(client.call("weather", { location: "Leipzig" }))).toMatchObject({ reason: "SECRET_MISSING" });
});

test("a stream is read to its end, and leaving one ends it at the gateway", async () => {
  let text = "";
  for await (const event of client.callStream("log_tail", { service: "orders", lines: 3 })) {
    if (event.type === "output") text += event.text;
    if (event.type === "completed") expect(event.outcome.failure).toBeUndefined();
  }
  expect(text).toContain("#3");
  for await (const event of client.callStream("log_tail", { service: "orders" })) if (event.type === "output") break;
  expect((await client.get("log_tail")).state).toBe(ToolState.READY);
});

test("a call that takes longer than its limit says what is known of its effect", async () => {
  const error = await failure(client.call("slow_report", { month: "2024-10" }, { timeoutMs: 300 }));
  // The gateway's own answer, and not only a timer of the client: it has the id of the call.
  expect(error).toMatchObject({ reason: "CALL_DEADLINE_EXCEEDED", status: "DEADLINE_EXCEEDED" });
  expect(error.callId).toBeDefined();
});

test("list, get, register, explain and unregister work from the client", async () => {
  const names: string[] = [];
  for await (const tool of client.list({ names: ["order_*"], pageSize: 1 })) names.push(tool.name);
  expect(names).toEqual(["order_search", "order_status"]);
  const declaration =
    "name: from_client\ndescription: 由客户端注册的测试工具 registered by the client\ntype: http\nmethod: GET\n" +
    `endpoint: http://127.0.0.1:${copy.upstreamPort}/orders/SO20241001/status\n`;
  const registered = await client.register(declaration, { mustNotExist: true, leaseMs: 60_000 });
  expect(registered.tools.map((tool) => tool.name)).toEqual(["from_client"]);
  expect((await failure(client.register(declaration, { mustNotExist: true }))).reason).toBe("TOOL_EXISTS");
  expect((await client.explain("from_client")).steps.length).toBeGreaterThan(0);
  expect(await client.unregister("from_client")).toBeGreaterThan(registered.revision);
  expect((await failure(client.get("from_client"))).reason).toBe("TOOL_NOT_FOUND");
});

test("a watch tells the present tools, then a new one", async () => {
  const seen: string[] = [];
  for await (const event of client.watch({ names: ["order_*", "watched"] })) {
    if (event.type === "upserted") seen.push(event.tool.name);
    if (event.type === "synced" && !seen.includes("watched")) {
      await client.register(
        "name: watched\ndescription: 观察测试工具 a tool for the test of watching\ntype: http\nmethod: GET\n" +
          `endpoint: http://127.0.0.1:${copy.upstreamPort}/orders\n`,
      );
    }
    if (seen.includes("watched")) break;
  }
  expect(seen).toEqual(["order_search", "order_status", "watched"]);
  await client.unregister("watched");
});

test("the browser's transport reaches the same gateway over fetch", async () => {
  const browser = createToolgateClient(createBrowserTransport({ baseUrl: url }));
  expect((await browser.call("order_status", { order_id: "SO20241001" })).failure).toBeUndefined();
  expect((await failure(browser.call("order_status", {}))).reason).toBe("ARGUMENTS_INVALID");
  let events = 0;
  for await (const event of browser.callStream("log_tail", { service: "orders" })) {
    events += event.type === "output" ? 1 : 0;
    if (events === 2) break;
  }
  expect(events).toBe(2);
});

/** The TypeScript blocks of the client's README, each as a program of its own. */
async function readmePrograms(): Promise<string[]> {
  const readme = await readFile(join(REPOSITORY, "clients/typescript/README.md"), "utf8");
  const blocks = [...readme.matchAll(/^```ts\n([^]*?)^```$/gm)].map((match) => match[1] ?? "");
  const setup = (blocks[0] ?? "").split("\n\n").slice(0, 2).join("\n");
  const source = pathToFileURL(join(REPOSITORY, "clients/typescript/src")).href;
  return blocks.map((block) =>
    (block.includes("createToolgateClient(") ? block : `${setup}\n${block}`)
      .replaceAll('"@toolgate/client"', `"${source}/index.ts"`)
      .replaceAll(/"@toolgate\/client\/(node|browser)"/g, `"${source}/$1.ts"`)
      .replaceAll('"http://127.0.0.1:7433"', `"${url}"`)
      .replace('baseUrl: "/"', `baseUrl: "${url}"`),
  );
}

test("every example of the client's README runs as written", { timeout: 180_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-readme-"));
  const expected = [
    /SF1234567890[^]*SF1234567890/,
    /#3[^]*(none|committed)/,
    /false/,
    /SF1234567890/,
    /order_id/,
    /new or changed: order_status/,
    /^/,
  ];
  try {
    const programs = await readmePrograms();
    expect(programs).toHaveLength(expected.length);
    for (const [index, program] of programs.entries()) {
      const file = join(folder, `example-${index}.ts`);
      await writeFile(file, program);
      await using running = spawnScript([file], {});
      await running.waitFor(expected[index] ?? /^/);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("the example agent loop runs: an error is fed back and mended, output is streamed", async () => {
  await using running = spawnScript(["clients/typescript/examples/agent-loop.ts", url], {});
  await running.waitFor(/The order: .*SF1234567890/);
  const output = running.output();
  expect(output).toContain("11 functions for the model");
  expect(output).toMatch(/reads: .*order_id/);
  expect(output).toContain("orders #3");
});
