import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createBrowserTransport } from "../../clients/typescript/src/browser.ts";
import { Effect } from "../../clients/typescript/src/gen/toolgate/v1/errors_pb.ts";
import {
  type ClientOptions,
  createToolgateClient,
  type ToolgateClient,
  ToolgateError,
} from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { ERROR_CATALOGUE } from "../../src/core/errors.ts";
import {
  deferred,
  type FakeGateway,
  type FakeServices,
  gatewayError,
  type StreamResponse,
  startFakeGateway,
} from "./fake-gateway.ts";

/** A client of a fake gateway; both end with the scope. */
interface Connected extends AsyncDisposable {
  readonly client: ToolgateClient;
  readonly gateway: FakeGateway;
}

async function connect(services: FakeServices, options: ClientOptions = {}): Promise<Connected> {
  const gateway = await startFakeGateway(services);
  const transport = createNodeTransport({ baseUrl: gateway.url });
  return {
    client: createToolgateClient(transport, options),
    gateway,
    async [Symbol.asyncDispose]() {
      transport.close();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

async function failure(promise: Promise<unknown>): Promise<ToolgateError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ToolgateError) return error;
    throw error;
  }
  throw new Error("expected a ToolgateError");
}

test("a call sends JSON text with all its digits and gives the result with its helpers", async () => {
  let sent: unknown;
  await using connected = await connect({
    gateway: {
      call: ({ invocation }) => {
        sent = invocation?.arguments.value;
        return {
          callId: "c1",
          result: {
            content: [{ part: { case: "text", value: "a" } }, { part: { case: "text", value: "b" } }],
            structuredJson: '{"id":9007199254740993,"n":1.5}',
          },
          stats: { attempts: 1, effect: Effect.COMMITTED, total: { seconds: 1n, nanos: 500_000_000 } },
        };
      },
    },
  });
  const outcome = await connected.client.call("order_status", { id: 9_007_199_254_740_993n, skip: undefined });
  expect(sent).toBe('{"id":9007199254740993}');
  expect(outcome).toMatchObject({ callId: "c1", effect: "committed", attempts: 1, totalMs: 1500, failure: undefined });
  expect(outcome.text()).toBe("a\nb");
  expect(outcome.structured()).toEqual({ id: 9_007_199_254_740_993n, n: 1.5 });
  expect(outcome.modelText()).toBe('{"id":9007199254740993,"n":1.5}\na\nb');
});

test("a failure the tool reported is an outcome and not an error", async () => {
  await using connected = await connect({
    gateway: {
      call: () => ({ result: { failure: { reason: "TOOL_FAILED", message: "no such order", retryable: false } } }),
    },
  });
  const outcome = await connected.client.call("order_status");
  expect(outcome.failure?.reason).toBe("TOOL_FAILED");
  expect(outcome.modelText()).toBe("no such order");
  expect(outcome.structured()).toBeUndefined();
});

test("an error of the gateway comes with everything its details say", async () => {
  await using connected = await connect({
    gateway: {
      call: () => {
        throw gatewayError(Code.InvalidArgument, "ARGUMENTS_INVALID", "order_id is missing", {
          violations: [{ field: "/order_id", description: "expected string, got nothing", reason: "MISSING" }],
          metadata: { tool: "order_status" },
          retryAfterSeconds: 2n,
          effect: Effect.NONE,
          callId: "c9",
        });
      },
    },
  });
  const error = await failure(connected.client.call("order_status"));
  expect(error).toMatchObject({
    name: "ToolgateError",
    reason: "ARGUMENTS_INVALID",
    status: "INVALID_ARGUMENT",
    message: "order_id is missing",
    modelMessage: "for the model: order_id is missing",
    retryable: false,
    effect: "none",
    retryAfterMs: 2000,
    violations: [{ field: "/order_id", description: "expected string, got nothing", reason: "MISSING" }],
    metadata: { tool: "order_status" },
    callId: "c9",
  });
});

test("an error without the gateway's details keeps its status, and a call's effect counts as unknown", async () => {
  await using connected = await connect({
    gateway: {
      call: () => {
        throw new ConnectError("bad gateway", Code.Unavailable);
      },
      get: () => {
        throw new ConnectError("who are you", Code.Unauthenticated);
      },
    },
  });
  expect(await failure(connected.client.call("t"))).toMatchObject({
    reason: "RPC_FAILED",
    status: "UNAVAILABLE",
    message: "bad gateway",
    effect: "unknown",
  });
  expect(await failure(connected.client.get("t"))).toMatchObject({ status: "UNAUTHENTICATED", effect: "none" });
});

test("every reason of the gateway's catalogue is known to the client's type", async () => {
  const source = await import("node:fs/promises").then((fs) =>
    fs.readFile(new URL("../../clients/typescript/src/errors.ts", import.meta.url), "utf8"),
  );
  const union = source.slice(
    source.indexOf("type GatewayReason ="),
    source.indexOf(";", source.indexOf("type GatewayReason =")),
  );
  const known = [...union.matchAll(/"([A-Z_]+)"/g)].map((match) => match[1]);
  expect(new Set(known)).toEqual(new Set(Object.keys(ERROR_CATALOGUE)));
});

test("a gateway that is not there is told apart from a lost answer", async () => {
  const transport = createNodeTransport({ baseUrl: "http://127.0.0.1:1" });
  const error = await failure(createToolgateClient(transport).call("t"));
  expect(error).toMatchObject({
    reason: "GATEWAY_UNREACHABLE",
    status: "UNAVAILABLE",
    effect: "none",
    retryable: true,
  });
  expect(error.message).toContain("ECONNREFUSED");

  const { promise: arrived, resolve: arrive } = deferred<void>();
  await using connected = await connect({
    gateway: {
      call: async (_request, context) => {
        arrive();
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
        return {};
      },
    },
  });
  const lost = failure(connected.client.call("t"));
  await arrived;
  connected.gateway.cut();
  expect(await lost).toMatchObject({ reason: "GATEWAY_CONNECTION_LOST", effect: "unknown", retryable: false });
});

test("a request has a deadline of its own, which the gateway hears as the call's limit", async () => {
  let limit: bigint | undefined;
  let rpcMs = 0;
  await using connected = await connect(
    {
      gateway: {
        call: ({ invocation }, context) => {
          limit = invocation?.timeout?.seconds;
          rpcMs = context.timeoutMs() ?? 0;
          return {};
        },
      },
    },
    { timeoutMs: 5000 },
  );
  await connected.client.call("t");
  expect(limit).toBe(5n);
  expect(rpcMs).toBeGreaterThan(5000);
  await connected.client.call("t", {}, { timeoutMs: 7000 });
  expect(limit).toBe(7n);
  await connected.client.call("t", {}, { timeoutMs: Number.POSITIVE_INFINITY });
  expect(limit).toBeUndefined();
  expect(rpcMs).toBe(0);
});

test("a gateway that keeps silent past the deadline gives CALL_DEADLINE_EXCEEDED with unknown effect", async () => {
  await using connected = await connect({
    gateway: {
      call: async (_request, context) => {
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
        throw new ConnectError("late", Code.DeadlineExceeded);
      },
    },
  });
  const error = await failure(connected.client.call("t", {}, { timeoutMs: 50 }));
  expect(error).toMatchObject({ reason: "CALL_DEADLINE_EXCEEDED", status: "DEADLINE_EXCEEDED", effect: "unknown" });
});

test("a timeout that is not above 0 is refused before anything is sent", async () => {
  const client = createToolgateClient(createNodeTransport({ baseUrl: "http://127.0.0.1:1" }));
  await expect(client.call("t", {}, { timeoutMs: 0 })).rejects.toThrow(RangeError);
  await expect(client.get("t", { timeoutMs: Number.NaN })).rejects.toThrow(RangeError);
});

test("the caller's signal ends a call here and at the gateway", async () => {
  const { promise: cancelled, resolve } = deferred<void>();
  const { promise: arrived, resolve: arrive } = deferred<void>();
  await using connected = await connect({
    gateway: {
      call: async (_request, context) => {
        arrive();
        await new Promise<void>((done) => context.signal.addEventListener("abort", () => done()));
        resolve();
        return {};
      },
    },
  });
  const controller = new AbortController();
  const ended = failure(connected.client.call("t", {}, { signal: controller.signal }));
  await arrived;
  controller.abort(new Error("the user left"));
  expect(await ended).toMatchObject({ reason: "CALL_CANCELLED", status: "CANCELLED", effect: "unknown" });
  await cancelled;
});

test("headers of the client and of the request reach the gateway, the request's first", async () => {
  const seen: (string | null)[] = [];
  await using connected = await connect(
    {
      gateway: {
        get: (_request, context) => {
          seen.push(context.requestHeader.get("authorization"), context.requestHeader.get("x-team"));
          return { tool: { name: "t" } };
        },
      },
    },
    { headers: { authorization: "Bearer a", "x-team": "blue" } },
  );
  await connected.client.get("t", { headers: { authorization: "Bearer b" } });
  expect(seen).toEqual(["Bearer b", "blue"]);
});

test("list reads page after page and asks for the next only when it is wanted", async () => {
  const asked: string[] = [];
  await using connected = await connect({
    gateway: {
      list: ({ pageToken, filter, omitSchemas }) => {
        asked.push(`${pageToken}|${filter?.names.join(",")}|${omitSchemas}`);
        return pageToken === ""
          ? { tools: [{ name: "a" }, { name: "b" }], nextPageToken: "2" }
          : { tools: [{ name: "c" }], nextPageToken: "" };
      },
    },
  });
  const names: string[] = [];
  for await (const tool of connected.client.list({ names: ["*"], omitSchemas: true })) names.push(tool.name);
  expect(names).toEqual(["a", "b", "c"]);
  expect(asked).toEqual(["|*|true", "2|*|true"]);
  for await (const tool of connected.client.list()) if (tool.name === "b") break;
  expect(asked).toHaveLength(3);
});

test("register and unregister pass their options on", async () => {
  const seen: unknown[] = [];
  await using connected = await connect({
    gateway: {
      register: (request) => {
        seen.push(
          request.declaration,
          request.lease?.seconds,
          request.mustNotExist,
          request.etag,
          request.validateOnly,
        );
        return { tools: [{ name: "t" }], revision: 7n, warnings: ["short description"] };
      },
      unregister: (request) => {
        seen.push(request.name, request.allowMissing, request.etag);
        return { revision: 8n };
      },
    },
  });
  const { client } = connected;
  const registered = await client.register("name: t", { leaseMs: 600_000, mustNotExist: true, validateOnly: true });
  expect(registered.warnings).toEqual(["short description"]);
  expect(await client.unregister("t", { allowMissing: true, etag: "e1" })).toBe(8n);
  expect(seen).toEqual([{ case: "declarationYaml", value: "name: t" }, 600n, true, "", true, "t", true, "e1"]);
});

test("the operator's requests reach the gateway", async () => {
  await using connected = await connect({
    operator: {
      explain: ({ name }) => ({ name, values: [{ key: "timeout.read", value: "30s", origin: "default" }] }),
      diagnose: () => ({ version: "0.1.0" }),
    },
  });
  expect((await connected.client.explain("t")).values[0]?.origin).toBe("default");
  expect((await connected.client.diagnose()).version).toBe("0.1.0");
});

for (const [title, open] of [
  ["the browser's transport over fetch", (url: string) => createBrowserTransport({ baseUrl: url })],
  ["Connect over HTTP/1.1 from Node", (url: string) => createNodeTransport({ baseUrl: url, protocol: "connect" })],
] as const) {
  test(`${title} calls, streams and gives the same errors`, async () => {
    await using gateway = await startFakeGateway(
      {
        gateway: {
          call: ({ invocation }) => {
            if (invocation?.name === "t") return { callId: "c1" };
            throw gatewayError(Code.NotFound, "TOOL_NOT_FOUND", "no tool", { metadata: { nearest: "t" } });
          },
          async *callStream(): AsyncGenerator<StreamResponse> {
            yield { sequence: 0n, event: { case: "started", value: { callId: "c2" } } };
            yield { sequence: 1n, event: { case: "completed", value: {} } };
          },
        },
      },
      "1.1",
    );
    const transport = open(gateway.url);
    const client = createToolgateClient(transport);
    expect((await client.call("t")).callId).toBe("c1");
    expect(await failure(client.call("x"))).toMatchObject({ reason: "TOOL_NOT_FOUND", metadata: { nearest: "t" } });
    const types: string[] = [];
    for await (const event of client.callStream("t")) types.push(event.type);
    expect(types).toEqual(["started", "completed"]);
    const gone = await startFakeGateway({});
    await gone[Symbol.asyncDispose]();
    const error = await failure(createToolgateClient(open(gone.url)).call("t"));
    expect(error).toMatchObject({ reason: "GATEWAY_UNREACHABLE", effect: "none" });
  });
}

test("a call says that it accepts input, reads what is asked, and answers it", async () => {
  const sent: unknown[] = [];
  await using connected = await connect({
    gateway: {
      call: ({ invocation }) => {
        sent.push([invocation?.acceptsInput, invocation?.continuation?.state, invocation?.continuation?.inputsJson]);
        const needsInput = { state: "h1", requestsJson: '{"q1":{"id":9007199254740993}}', expiresIn: { seconds: 2n } };
        return { callId: "c1", result: { needsInput } };
      },
    },
  });
  const { client } = connected;
  const { needsInput } = await client.call("ask", {}, { acceptsInput: true });
  expect(needsInput).toEqual({
    state: "h1",
    requests: { q1: { id: 9_007_199_254_740_993n } },
    expiresInMs: 2_000,
  });
  const inputs = {
    q1: { action: "accept", content: { id: 9_007_199_254_740_993n } },
    q2: { action: "cancel" },
  } as const;
  await client.call("ask", {}, { continuation: { state: "h1", inputs } });
  expect(sent).toEqual([
    [true, undefined, undefined],
    [false, "h1", '{"q1":{"action":"accept","content":{"id":9007199254740993}},"q2":{"action":"cancel"}}'],
  ]);
});
