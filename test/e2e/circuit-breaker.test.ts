import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { OperatorService } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { ToolState } from "../../gen/toolgate/v1/tool_pb.ts";
import { toolgate } from "./cli-process.ts";
import { reasonOf } from "./gateway-client.ts";
import { type OneTool, type Respond, sendJson, startOneTool } from "./one-tool.ts";

const down: Respond = (_request, response) => sendJson(response, 503, {});

/** `ok`, or the reason of the failure or the error. */
async function outcomeOf({ gateway }: OneTool, args: Readonly<Record<string, unknown>> = {}): Promise<string> {
  return gateway.client.call("one", args).then(
    ({ result }) => result?.failure?.reason ?? "ok",
    (error: unknown) => reasonOf(error) ?? String(error),
  );
}

/** Makes so many calls at once and counts how they end; `ended` is told of each end. */
async function together(
  setting: OneTool,
  count: number,
  ended: () => void = () => undefined,
): Promise<ReadonlyMap<string, number>> {
  const outcomes = await Promise.all(Array.from({ length: count }, () => outcomeOf(setting).finally(ended)));
  const counts = new Map<string, number>();
  for (const outcome of outcomes) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  return counts;
}

async function inTurn(setting: OneTool, count: number): Promise<readonly string[]> {
  const outcomes: string[] = [];
  for (let i = 0; i < count; i++) outcomes.push(await outcomeOf(setting));
  return outcomes;
}

async function stateOf({ gateway }: OneTool): Promise<ToolState | undefined> {
  return (await gateway.client.service.get({ name: "one" })).tool?.state;
}

test("after five faults in a row calls end at once, and after its time one tries again [S2-63, S2-64, S2-119]", async () => {
  let broken = true;
  const tool = { circuit_breaker: { failure_threshold: 5, reset_timeout: "2s" } };
  await using setting = await startOneTool(tool, (request, response, nth) =>
    broken ? down(request, response, nth) : sendJson(response, 200, {}),
  );
  expect(await inTurn(setting, 7)).toEqual([
    ...Array.from({ length: 5 }, () => "UPSTREAM_STATUS"),
    "CIRCUIT_OPEN",
    "CIRCUIT_OPEN",
  ]);
  expect(setting.requests).toHaveLength(5);
  expect(await stateOf(setting)).toBe(ToolState.UNAVAILABLE);
  broken = false;
  await expect.poll(() => stateOf(setting), { timeout: 20_000 }).toBe(ToolState.DEGRADED);
  expect(await outcomeOf(setting)).toBe("ok");
  expect(await stateOf(setting)).toBe(ToolState.READY);
});

test("callers' mistakes and a tool's own no open no circuit; faults of the upstream do [R-D02, A-D05]", async () => {
  const mistakes = [400, 401, 403, 404, 409, 422, 429, 200, 200, 200];
  const tool = {
    params: [{ name: "n", type: "integer", default: 1 }],
    result: { success_field: "code", success_value: 0 },
  };
  await using setting = await startOneTool(tool, (_request, response, nth) =>
    sendJson(response, mistakes[nth - 1] ?? 503, { code: 5001 }),
  );
  expect(await inTurn(setting, 10)).not.toContain("CIRCUIT_OPEN");
  for (let i = 0; i < 10; i++) expect(await outcomeOf(setting, { n: "x" })).toBe("ARGUMENTS_INVALID");
  expect(await stateOf(setting)).toBe(ToolState.READY);
  expect(await inTurn(setting, 6)).toEqual([...Array.from({ length: 5 }, () => "UPSTREAM_STATUS"), "CIRCUIT_OPEN"]);
  const { message } = (await setting.gateway.client.call("one").catch((error: Error) => error)) as Error;
  expect(message).toMatch(
    /its circuit is open after 5 faults .*HTTP 503 \(it can be reached\); the next call after \d+ s/,
  );
});

test("timeouts open a circuit too, and the error says that the upstream took the connection [R-D02]", async () => {
  const tool = { timeout: { read: "50ms" }, circuit_breaker: { failure_threshold: 2 } };
  await using setting = await startOneTool(tool, () => undefined);
  expect(await inTurn(setting, 3)).toEqual(["UPSTREAM_TIMEOUT", "UPSTREAM_TIMEOUT", "CIRCUIT_OPEN"]);
});

test("a caller who gives calls no time takes the tool from nobody", async () => {
  await using setting = await startOneTool({}, (_request, response) =>
    setTimeout(() => sendJson(response, 200, {}), 300),
  );
  const { service } = setting.gateway.client;
  for (let i = 0; i < 8; i++) {
    await service.call({ invocation: { name: "one" } }, { timeoutMs: 30 }).catch(() => undefined);
  }
  expect(await outcomeOf(setting)).toBe("ok");
});

test("when a circuit lets calls through again, one does of a hundred [R-D03]", async () => {
  let mode: "down" | "slow" | "up" = "down";
  let answer = Promise.withResolvers<void>();
  const tool = { circuit_breaker: { failure_threshold: 5, reset_timeout: "1s" } };
  await using setting = await startOneTool(tool, (_request, response) => {
    if (mode === "down") sendJson(response, 503, {});
    else void answer.promise.then(() => sendJson(response, mode === "slow" ? 503 : 200, {}));
  });
  await inTurn(setting, 5);
  for (const [next, outcome] of [
    ["slow", "UPSTREAM_STATUS"],
    ["up", "ok"],
  ] as const) {
    mode = next;
    answer = Promise.withResolvers();
    await expect.poll(() => stateOf(setting), { timeout: 20_000 }).toBe(ToolState.DEGRADED);
    const before = setting.requests.length;
    let refused = 0;
    // The one that is let through lasts until all others have been refused.
    const counts = await together(setting, 100, () => {
      if (++refused === 99) answer.resolve();
    });
    expect(setting.requests.length - before).toBe(1);
    expect(counts).toEqual(
      new Map([
        ["CIRCUIT_OPEN", 99],
        [outcome, 1],
      ]),
    );
  }
  expect(await stateOf(setting)).toBe(ToolState.READY);
});

test("200 callers of a dead upstream with retries are no storm, and once the circuit is open they do not reach it [R-D01]", async () => {
  const tool = { retry: { max_retries: 3, initial_backoff: "100ms" } };
  await using setting = await startOneTool(tool, down);
  await together(setting, 200);
  const first = setting.requests.length;
  // All of them are on their way before the first answer comes; their retries are bounded by the budget.
  expect(first).toBeLessThanOrEqual(200 + 40);
  expect(await together(setting, 200)).toEqual(new Map([["CIRCUIT_OPEN", 200]]));
  expect(setting.requests.length).toBe(first);
});

test("calls that wait in line when the circuit opens do not reach the upstream [R-D01]", async () => {
  const answer = Promise.withResolvers<void>();
  const tool = { concurrency_limit: 2, circuit_breaker: { failure_threshold: 1, reset_timeout: "1h" } };
  await using setting = await startOneTool(tool, (request, response, nth) => {
    void answer.promise.then(() => down(request, response, nth));
  });
  const outcomes = together(setting, 20);
  const { service } = setting.gateway.client;
  await expect
    .poll(async () => (await service.get({ name: "one" })).tool?.stateReason, { timeout: 20_000 })
    .toContain("2 calls run and 18 wait");
  answer.resolve();
  expect(await outcomes).toEqual(
    new Map([
      ["UPSTREAM_STATUS", 2],
      ["CIRCUIT_OPEN", 18],
    ]),
  );
  expect(setting.requests).toHaveLength(2);
});

test("an upstream that slows down from a moment to forever gets fewer requests, not more [S2-118]", async () => {
  let slow = false;
  const tool = { timeout: { read: "300ms" }, retry: { max_retries: 3, backoff: "exponential", max_backoff: "30s" } };
  await using setting = await startOneTool(tool, (_request, response) => {
    if (!slow) setTimeout(() => sendJson(response, 200, {}), 20);
  });
  const over = new AbortController();
  const callers = Array.from({ length: 10 }, async () => {
    while (!over.signal.aborted) {
      await outcomeOf(setting);
      await delay(20);
    }
  });
  const beganMs = performance.now();
  await expect.poll(() => setting.requests.length).toBeGreaterThan(100);
  const before = setting.requests.length;
  const quickMs = performance.now() - beganMs;
  slow = true;
  await delay(Math.max(quickMs, 1_000));
  const during = setting.requests.length - before;
  over.abort();
  await Promise.all(callers);
  // In as long a time: those under way, and what came in until five had spent their limit.
  expect(during).toBeLessThan(before / 2);
});

test("watchers are told of each change of state, and explain shows it while it lasts", async () => {
  let broken = true;
  const tool = { circuit_breaker: { failure_threshold: 1, reset_timeout: "200ms" } };
  await using setting = await startOneTool(tool, (_request, response) => sendJson(response, broken ? 503 : 200, {}));
  const { service } = setting.gateway.client;
  const ended = new AbortController();
  const seen: (ToolState | undefined)[] = [];
  const watching = (async () => {
    for await (const { event } of service.watch({}, { signal: ended.signal })) {
      if (event.case === "upserted") seen.push(event.value.state);
    }
  })().catch(() => undefined);
  await expect.poll(() => seen).toEqual([ToolState.READY]);
  await outcomeOf(setting);
  const transport = createConnectTransport({ baseUrl: setting.gateway.url, httpVersion: "1.1" });
  const { values } = await createClient(OperatorService, transport).explain({ name: "one" });
  expect(values.find(({ key }) => key === "state")?.value).toMatch(
    /^(unavailable|degraded): circuit (half )?open after 1 fault /,
  );
  await expect.poll(() => seen).toEqual([ToolState.READY, ToolState.UNAVAILABLE, ToolState.DEGRADED]);
  broken = false;
  await outcomeOf(setting);
  await expect.poll(() => seen.at(-1)).toBe(ToolState.READY);
  ended.abort();
  await watching;
});

test("an open circuit outlives a reload that does not touch it, and not one of its settings", async () => {
  const breaker = { failure_threshold: 1, reset_timeout: "1h" };
  await using setting = await startOneTool({ circuit_breaker: breaker }, down);
  await inTurn(setting, 1);
  const etag = async (): Promise<string | undefined> =>
    (await setting.gateway.client.service.get({ name: "one" })).tool?.etag;
  const reload = async (keys: Readonly<Record<string, unknown>>): Promise<void> => {
    const old = await etag();
    await setting.declare(keys);
    await expect.poll(etag, { timeout: 20_000 }).not.toBe(old);
  };
  await reload({ circuit_breaker: breaker, title: "another title" });
  expect(await outcomeOf(setting)).toBe("CIRCUIT_OPEN");
  expect(setting.requests).toHaveLength(1);
  await reload({ circuit_breaker: { ...breaker, reset_timeout: "2h" } });
  expect(await stateOf(setting)).toBe(ToolState.READY);
  expect(await outcomeOf(setting)).toBe("UPSTREAM_STATUS");
});

/** How long the command line stays after its output. */
async function lingersMs(port: number): Promise<number> {
  const env = { TOOLGATE_ADDRESS: `127.0.0.1:${port}` };
  const { stderr, lingeredMs } = await toolgate(["tool", "call", "one"], { env });
  expect(stderr).toContain("CIRCUIT_OPEN");
  return lingeredMs;
}

test("gateways that were stopped leave no timer of their circuits behind, and the command line ends by itself [R-D04]", {
  timeout: 180_000,
}, async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  for (let i = 0; i < 20; i++) {
    await using setting = await startOneTool({ circuit_breaker: { failure_threshold: 1, reset_timeout: "1h" } }, down);
    await inTurn(setting, 1);
    expect(await stateOf(setting)).toBe(ToolState.UNAVAILABLE);
    if (i > 0) continue;
    expect(await lingersMs(setting.gateway.port)).toBeLessThan(10_000);
  }
  await expect.poll(timers).toBeLessThanOrEqual(before);
});
