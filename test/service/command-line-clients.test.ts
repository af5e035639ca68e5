import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import { completed, deaf, textResult, waiting } from "./fake-registry.ts";
import { PATIENT, type Served, serve } from "./serve.ts";

const BUF = fileURLToPath(new URL("../../node_modules/.bin/buf", import.meta.url));
const SERVICE = "toolgate.v1.ToolGatewayService";

interface Output {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function run(command: string, ...args: string[]): Promise<Output> {
  return new Promise((resolve) => {
    execFile(command, args, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err });
    });
  });
}

/** A front door that keeps what its callers sent, with tools to talk to. */
async function serveTools(): Promise<Served & { readonly tenants: (string | null)[] }> {
  const tenants: (string | null)[] = [];
  const served = await serve({
    authenticate: async (headers) => {
      if (headers.get("x-tenant") !== null) tenants.push(headers.get("x-tenant"), headers.get("x-trace-bin"));
      return { id: "", roles: [] };
    },
  });
  served.registry.add({ name: "tail", delivery: "incremental" }, async function* () {
    yield { type: "delta", index: 0, text: "一" };
    yield { type: "delta", index: 0, text: "二" };
    yield completed({ ...textResult(""), content: [] });
  });
  served.registry.add({ name: "strict" }, async function* () {
    yield { type: "log", level: "info", message: "before" };
    throw new GatewayError("ARGUMENTS_INVALID", "订单失败: 🚚");
  });
  served.registry.add({ name: "deaf" }, deaf);
  return { ...served, tenants };
}

const PROTOCOLS = ["connect", "grpc", "grpcweb"].flatMap((protocol) =>
  ["grpc-v1", "grpc-v1alpha"].map((reflection) => [protocol, reflection] as const),
);

/** Arguments of `buf curl` for a method, without a schema. */
function bufCurl(served: Served, [protocol, reflection]: readonly [string, string], method: string, tool: string) {
  return [
    "curl",
    "--http2-prior-knowledge",
    `--protocol=${protocol}`,
    `--reflect-protocol=${reflection}`,
    "--data",
    JSON.stringify({ invocation: { name: tool, argumentsJson: '{"城":"柏林"}' } }),
    `${served.url}/${SERVICE}/${method}`,
  ];
}

describe.each(PROTOCOLS)("buf curl over %s, by %s", (...how) => {
  test("calls with metadata, reads a stream and sees errors with their details", async () => {
    await using served = await serveTools();
    const [unary, stream, failure] = await Promise.all([
      run(BUF, ...bufCurl(served, how, "Call", "echo"), "-H", "x-tenant: blue", "-H", "x-trace-bin: AP+A"),
      run(BUF, ...bufCurl(served, how, "CallStream", "tail")),
      run(BUF, ...bufCurl(served, how, "Call", "strict")),
    ]);
    expect(JSON.parse(unary.out)).toMatchObject({ result: { structuredJson: '{"城":"柏林"}' } });
    expect(served.tenants).toContain("blue");
    expect(served.tenants).toContain("AP+A");
    expect(stream.out).toMatch(/"started"[^]*"一"[^]*"二"[^]*"completed"/);
    expect(failure.code).not.toBe(0);
    expect(failure.err).toContain("订单失败: 🚚");
    expect(failure.err).toContain("invalid_argument");
    expect(failure.err).toContain("google.rpc.ErrorInfo");
  });

  test("that is stopped in a stream ends its call", async () => {
    await using served = await serveTools();
    const aborted = Promise.withResolvers<unknown>();
    const started = Promise.withResolvers<void>();
    served.registry.add({ name: "wait" }, waiting(aborted.resolve, started.resolve));
    // A group of its own: what npm installs as buf only starts the program.
    const child = spawn(BUF, bufCurl(served, how, "CallStream", "wait"), { stdio: "ignore", detached: true });
    const exited = once(child, "exit");
    await started.promise;
    process.kill(-(child.pid ?? Number.NaN), "SIGINT");
    expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
    await exited;
    await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
  });
});

const HAS_CURL = spawnSync("curl", ["--version"]).status === 0;

/** `curl` with a JSON body, as anybody would write it. */
function curl(served: Served, method: string, tool: string, ...more: string[]): Promise<Output> {
  const body = JSON.stringify({ invocation: { name: tool } });
  return run(
    "curl",
    "-sS",
    "-H",
    "content-type: application/json",
    "-d",
    body,
    ...more,
    `${served.url}/${SERVICE}/${method}`,
  );
}

test.skipIf(!HAS_CURL).each(["--http1.1", "--http2-prior-knowledge", "--http2"])(
  "curl with JSON calls with metadata, sees errors and its deadline (%s)",
  async (version) => {
    await using served = await serveTools();
    const ok = await curl(served, "Call", "echo", version, "-H", "x-tenant: blue", "-H", "x-trace-bin: AP+A");
    expect(JSON.parse(ok.out)).toMatchObject({ result: { structuredJson: "{}" } });
    expect(served.tenants).toEqual(["blue", "AP+A"]);
    const failure = await curl(served, "Call", "strict", version, "-w", "%{http_code}");
    expect(failure.out).toMatch(
      /"code":"invalid_argument","message":"订单失败: 🚚","details":\[\{"type":"google.rpc.ErrorInfo".*400$/,
    );
    const late = await curl(served, "Call", "deaf", version, "-H", "connect-timeout-ms: 200");
    expect(JSON.parse(late.out)).toMatchObject({
      code: "deadline_exceeded",
      message: "the caller's RPC deadline of 200 ms passed",
    });
    const list = await run(
      "curl",
      "-sS",
      version,
      `${served.url}/${SERVICE}/List?encoding=json&message=%7B%7D&connect=v1`,
    );
    expect(JSON.parse(list.out)).toMatchObject({ tools: expect.any(Array) });
    await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
  },
);

test.skipIf(!HAS_CURL)("curl that is stopped ends its call", async () => {
  await using served = await serveTools();
  const aborted = Promise.withResolvers<unknown>();
  served.registry.add({ name: "wait" }, waiting(aborted.resolve));
  await curl(served, "Call", "wait", "--max-time", "0.5");
  expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
});
