import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { Effect, ToolErrorDetailSchema } from "../../gen/toolgate/v1/errors_pb.ts";
import { CheckStatus, OperatorService } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { ToolState } from "../../gen/toolgate/v1/tool_pb.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { reasonOf } from "./gateway-client.ts";

const PATIENT = { timeout: 20_000 };

/** `/held…` is answered when it is told to, `/endless…` drips server-sent events, anything else is answered at once. */
class Upstream implements AsyncDisposable {
  readonly #held: ServerResponse[] = [];
  readonly #server = createServer((request, response) => {
    const path = request.url ?? "";
    this.paths.push(path);
    if (path.startsWith("/held")) this.#held.push(response);
    else if (path.startsWith("/endless")) {
      response.writeHead(200, { "content-type": "text/event-stream" }).write("data: a\n\n");
    } else response.setHeader("content-type", "application/json").end("{}");
  });
  /** Of all requests, in the order they came. */
  readonly paths: string[] = [];

  static async start(): Promise<Upstream> {
    const upstream = new Upstream();
    upstream.#server.listen(0, "127.0.0.1");
    await once(upstream.#server, "listening");
    return upstream;
  }

  url(path: string): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/${path}`;
  }

  /** Answers what is held, and all that comes later. */
  release(): void {
    for (const response of this.#held.splice(0)) response.end("{}");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Resolves when so many requests came whose path begins with this. */
function seen({ paths }: Upstream, path: string, count: number): Promise<unknown> {
  return expect.poll(() => paths.filter((each) => each.startsWith(path)).length, PATIENT).toBe(count);
}

interface Setup extends AsyncDisposable {
  readonly upstream: Upstream;
  readonly gateway: OpenGateway;
}

type Keys = Readonly<Record<string, unknown>>;

/** A gateway with these tools; `path` is what its endpoint ends in. */
async function setUp(tools: Readonly<Record<string, Keys & { path: string }>>, settings: Keys = {}): Promise<Setup> {
  const used = new AsyncDisposableStack();
  const upstream = used.use(await Upstream.start());
  const folder = used.use(await temporaryFolder());
  const files = Object.entries(tools).map(([name, { path, ...keys }]) => {
    const standard = { name, description: "用于检查并发限制 shows how calls are limited", type: "http" };
    return [`tools/${name}.json`, JSON.stringify({ ...standard, endpoint: upstream.url(path), ...keys })];
  });
  const gateway = used.use(await openGateway({ folder: folder.path, files: Object.fromEntries(files), settings }));
  return { upstream, gateway, [Symbol.asyncDispose]: () => used.disposeAsync() };
}

/** What a caller learns of a call that failed. */
function refusal(error: unknown) {
  if (!(error instanceof ConnectError)) throw error;
  const [info] = error.findDetails(ErrorInfoSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  const [detail] = error.findDetails(ToolErrorDetailSchema);
  const retryMs = retry?.retryDelay === undefined ? undefined : Number(retry.retryDelay.seconds) * 1_000;
  return {
    reason: info?.reason,
    metadata: info?.metadata,
    retryMs,
    effect: detail?.effect,
    retryable: detail?.retryable,
  };
}

function operator({ url }: OpenGateway) {
  return createClient(OperatorService, createConnectTransport({ baseUrl: url, httpVersion: "1.1" }));
}

test("a tool whose upstream stands still, with its line full, holds up no other tool [S2-17] [S2-66]", async () => {
  await using setup = await setUp(
    {
      stalled: { path: "held", group: "shared", concurrency_limit: 5, queue: { max_length: 200, max_wait: "1h" } },
      other: { path: "quick", concurrency_limit: 5 },
      sibling: { path: "quick", group: "shared" },
    },
    { groups: { shared: { max_parallel_calls: 10 } } },
  );
  const { gateway, upstream } = setup;
  const stalled = Array.from({ length: 205 }, () => gateway.client.call("stalled"));
  const state = async () => {
    const { tool } = await gateway.client.service.get({ name: "stalled" });
    return [tool?.state, tool?.stateReason];
  };
  const waits = 'tool "stalled" is at its limit (`concurrency_limit`): 5 calls run and 200 wait';
  await expect.poll(state, PATIENT).toEqual([ToolState.DEGRADED, waits]);
  const full = refusal(await gateway.client.call("stalled").catch((error: unknown) => error));
  expect(full).toMatchObject({
    reason: "CONCURRENCY_LIMIT_REACHED",
    metadata: { limit: "queue", setting: "queue.max_length", of: 'tool "stalled"', position: "201" },
    effect: Effect.NONE,
    retryable: true,
  });
  expect(full.retryMs).toBeGreaterThanOrEqual(1_000);
  expect(full.retryMs).toBeLessThanOrEqual(60_000);
  for (const name of ["other", "sibling"]) {
    const calls = await Promise.all(Array.from({ length: 5 }, () => gateway.client.call(name)));
    expect(calls.map(({ stats }) => stats?.queued)).toEqual(Array(5).fill(undefined));
  }
  const { checks } = await operator(gateway).diagnose({});
  expect(checks.find(({ subject }) => subject === "tool stalled")).toMatchObject({
    status: CheckStatus.WARNING,
    message: `degraded: ${waits}`,
    mend: "Look why its calls take long, or raise `concurrency_limit`.",
  });
  expect(upstream.paths.filter((path) => path === "/held")).toHaveLength(5);
  const release = setInterval(() => upstream.release(), 5);
  await Promise.all(stalled).finally(() => clearInterval(release));
  expect(await state()).toEqual([ToolState.READY, ""]);
});

test("the wait for a turn shows in the stats of a call and as an event of a stream, with its place [S2-65, S2-67]", async () => {
  await using setup = await setUp({ one: { path: "held", concurrency_limit: 1 } });
  const { upstream, gateway } = setup;
  const first = gateway.client.call("one");
  await seen(upstream, "/held", 1);
  const events: unknown[] = [];
  const queued = Promise.withResolvers<void>();
  const streamed = (async () => {
    for await (const { event } of gateway.client.service.callStream({ invocation: { name: "one" } })) {
      if (event.case === "queued") queued.resolve();
      events.push(event.case === "queued" ? { limit: event.value.limit, position: event.value.position } : event.case);
      if (event.case === "completed") return event.value.stats;
    }
    return undefined;
  })();
  await queued.promise;
  upstream.release();
  expect((await first).stats?.queued).toBeUndefined();
  await seen(upstream, "/held", 2);
  upstream.release();
  const stats = await streamed;
  expect(events).toEqual(["started", { limit: 'tool "one"', position: 1 }, "completed"]);
  const waited = Number(stats?.queued?.seconds) * 1_000 + Number(stats?.queued?.nanos) / 1e6;
  expect(waited).toBeGreaterThan(0);
  expect(waited).toBeLessThan(Number(stats?.total?.seconds) * 1_000 + Number(stats?.total?.nanos) / 1e6);
});

test("three tools on one upstream share the limit of their group, and the rest has its turn in order [S2-120]", async () => {
  const tool = (n: number) => ({ path: `held${n}`, group: "aws" });
  await using setup = await setUp(
    { a: tool(1), b: tool(2), c: tool(3) },
    { groups: { aws: { max_parallel_calls: 2 } } },
  );
  const { upstream, gateway } = setup;
  const order = ["c", "a", "b", "b", "a", "c"];
  const calls: Promise<unknown>[] = [];
  const { client } = gateway;
  for (const [i, name] of order.entries()) {
    calls.push(client.call(name));
    // Calls of one connection may overtake each other on their way in.
    if (i < 2) await seen(upstream, "/held", i + 1);
    else
      await expect
        .poll(async () => (await client.service.get({ name })).tool?.stateReason, PATIENT)
        .toMatch(`${i - 1} wait`);
  }
  for (let answered = 0; answered < order.length; answered += 2) {
    await seen(upstream, "/held", Math.min(order.length, answered + 2));
    upstream.release();
  }
  await Promise.all(calls);
  expect(upstream.paths).toEqual(["/held3", "/held1", "/held2", "/held2", "/held1", "/held3"]);
});

test("of several calls of one turn the one that times out fails alone, and the model can call again [S2-117]", async () => {
  await using setup = await setUp({
    slow: { path: "held", hints: { read_only: true }, timeout: { read: "300ms" } },
    quick: { path: "quick" },
    other: { path: "quick" },
  });
  const { client } = setup.gateway;
  const context = { sessionId: "s1", turnId: "t1" };
  const outcomes = await Promise.allSettled(
    ["quick", "slow", "other", "quick"].map((name) => client.service.call({ invocation: { name, context } })),
  );
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
  const [, failed] = outcomes;
  expect(refusal(failed?.status === "rejected" ? failed.reason : undefined)).toMatchObject({
    reason: "UPSTREAM_TIMEOUT",
    metadata: { tool: "slow", limit: "read" },
    effect: Effect.NONE,
    retryable: true,
  });
  expect((await client.call("quick")).result?.failure).toBeUndefined();
});

test("a call whose time is over before its turn was not sent, and says where the time went", async () => {
  await using setup = await setUp({ one: { path: "held", concurrency_limit: 1, method: "POST" } });
  const { upstream, gateway } = setup;
  const first = gateway.client.call("one");
  await seen(upstream, "/held", 1);
  const timeout = { seconds: 0n, nanos: 50_000_000 };
  const late = gateway.client.service.call({ invocation: { name: "one", timeout } });
  expect(refusal(await late.catch((error: unknown) => error))).toMatchObject({
    reason: "CALL_DEADLINE_EXCEEDED",
    metadata: { limit: "invocation", phase: "queue", deadline_ms: "50", tool: "one" },
    effect: Effect.NONE,
    retryable: true,
  });
  upstream.release();
  await first;
  expect(upstream.paths).toHaveLength(1);
});

test.each([
  ["is silent", "held", { read: "200ms" }, "read"],
  ["is stuck", "endless", { idle: "200ms" }, "idle"],
])("the place of a call whose upstream %s is free when its limit ends it [U-D11]", async (_, path, timeout, limit) => {
  await using setup = await setUp({ one: { path, concurrency_limit: 1, delivery: "incremental", timeout } });
  const { upstream, gateway } = setup;
  for (let i = 1; i <= 3; i++) {
    const error = refusal(await gateway.client.call("one").catch((caught: unknown) => caught));
    expect(error).toMatchObject({ reason: "UPSTREAM_TIMEOUT", metadata: { limit } });
    expect(upstream.paths).toHaveLength(i);
  }
});

test("the place of a stream whose reader cancels is free at once [G-D02]", async () => {
  await using setup = await setUp({ one: { path: "endless", concurrency_limit: 1, delivery: "incremental" } });
  const { upstream, gateway } = setup;
  for (let i = 1; i <= 3; i++) {
    const leave = new AbortController();
    const events = gateway.client.service.callStream({ invocation: { name: "one" } }, { signal: leave.signal });
    const read = async (): Promise<void> => {
      for await (const { event } of events) if (event.case === "output") leave.abort();
    };
    expect(reasonOf(await read().catch((error: unknown) => error))).toBeUndefined();
    expect(upstream.paths).toHaveLength(i);
  }
});

test("explain shows the limits in force, where they came from and what the group shares", async () => {
  await using setup = await setUp(
    { one: { path: "quick", group: "aws", queue: { max_wait: "5s" } }, two: { path: "quick" } },
    {
      groups: { aws: { max_parallel_calls: 20, concurrency_limit: 8, shared_rate_limit: { requests: 100 } } },
      defaults: { rate_limit: { requests: 9, per: "1m" } },
    },
  );
  const { gateway } = setup;
  const { values, steps } = await operator(gateway).explain({ name: "one" });
  const limits = values.filter(({ key }) => /^(groups|concurrency|queue|rate_limit)/.test(key));
  expect(Object.fromEntries(limits.map(({ key, value, origin }) => [key, `${value} from ${origin}`]))).toEqual({
    "groups.aws.max_parallel_calls": "20 from gateway.yaml:1",
    "groups.aws.shared_rate_limit.requests": "100 from gateway.yaml:1",
    "groups.aws.shared_rate_limit.per": "1s from default",
    "groups.aws.shared_rate_limit.burst": "100 from default",
    concurrency_limit: "8 from gateway.yaml:1",
    "concurrency.adaptive": "false from default",
    "queue.max_length": "1000 from default",
    "queue.max_wait": "5s from file:one.json:1",
    "rate_limit.requests": "9 from gateway.yaml:1",
    "rate_limit.per": "1m from gateway.yaml:1",
    "rate_limit.burst": "9 from default",
  });
  const waiting = ["circuit-breaker", "concurrency", "dispatch"];
  expect(steps).toEqual(["audit", "validate-arguments", "rate-limit", "deadline", ...waiting]);
  const other = await operator(gateway).explain({ name: "two" });
  expect(other.values.map(({ key }) => key).filter((key) => /^(groups|queue)/.test(key))).toEqual([]);
});
