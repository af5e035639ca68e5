import { ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { Effect, ToolErrorDetailSchema } from "../../gen/toolgate/v1/errors_pb.ts";
import { reasonOf } from "./gateway-client.ts";
import { sendJson, startOneTool } from "./one-tool.ts";

async function failing(work: Promise<unknown>): Promise<ConnectError> {
  const error = await work.catch((thrown: unknown) => ConnectError.from(thrown));
  return error instanceof ConnectError ? error : expect.unreachable("did not fail");
}

const QUICK = { max_retries: 3, backoff: "fixed", initial_backoff: "1ms" };

test("an upstream that recovers is tried until it does, and the answer says how often [S2-60]", async () => {
  await using setting = await startOneTool({ retry: QUICK }, (_request, response, nth) =>
    sendJson(response, nth < 3 ? 503 : 200, { nth }),
  );
  const { result, stats } = await setting.gateway.client.call("one");
  expect(result?.structuredJson).toBe('{"nth":3}');
  expect(stats?.attempts).toBe(3);
  expect(setting.requests).toHaveLength(3);
});

test("an upstream that stays down is tried as often as declared, and no more [S2-60]", async () => {
  await using setting = await startOneTool({ retry: QUICK }, (_request, response) => sendJson(response, 503, {}));
  const { result, stats } = await setting.gateway.client.call("one");
  expect(result?.failure).toMatchObject({
    reason: "UPSTREAM_STATUS",
    message: "one: the upstream answered HTTP 503 (after 4 attempts)",
  });
  expect(stats?.attempts).toBe(4);
  expect(setting.requests).toHaveLength(4);
});

test("a write whose answer was lost happened once, and the error says that its outcome is unknown [R-D05, S2-73]", async () => {
  let commits = 0;
  await using setting = await startOneTool({ method: "POST", retry: QUICK }, (request): void => {
    commits += 1;
    request.socket.destroy();
  });
  const error = await failing(setting.gateway.client.call("one"));
  expect(reasonOf(error)).toBe("UPSTREAM_ANSWER_LOST");
  expect(error.findDetails(ToolErrorDetailSchema)[0]).toMatchObject({ retryable: false, effect: Effect.UNKNOWN });
  expect(commits).toBe(1);
});

test("a write that breaks down with 503 happened at most once [R-D05]", async () => {
  await using setting = await startOneTool({ method: "POST", retry: QUICK }, (_request, response) =>
    sendJson(response, 503, {}),
  );
  const { stats } = await setting.gateway.client.call("one");
  expect(stats).toMatchObject({ attempts: 1, effect: Effect.UNKNOWN });
  expect(setting.requests).toHaveLength(1);
});

test("a tool that may run twice is tried again after its answer was lost [R-D05]", async () => {
  const tool = { method: "POST", hints: { idempotent: true }, retry: QUICK };
  await using setting = await startOneTool(tool, (request, response, nth) => {
    if (nth === 1) request.socket.destroy();
    else sendJson(response, 200, { nth });
  });
  const { stats } = await setting.gateway.client.call("one");
  expect(stats).toMatchObject({ attempts: 2, effect: Effect.COMMITTED });
});

test.for([
  ["the caller's request_id", "r-1"],
  ["the call's own id", undefined],
] as const)("every attempt of a call has the same key: %s [R-D05, S2-72, S2-73]", async ([, requestId]) => {
  const keys: (string | string[] | undefined)[] = [];
  const committed = new Set<unknown>();
  const tool = {
    method: "POST",
    idempotency_field: "request_id",
    headers: { "Idempotency-Key": "{request_id}" },
    retry: QUICK,
  };
  await using setting = await startOneTool(tool, (request, response, nth) => {
    const key = request.headers["idempotency-key"];
    keys.push(key);
    committed.add(key);
    if (nth === 1) request.socket.destroy();
    else sendJson(response, nth === 2 ? 503 : 200, {});
  });
  const invocation = { name: "one", ...(requestId === undefined ? {} : { requestId }) };
  const { stats, callId } = await setting.gateway.client.service.call({ invocation });
  expect(stats).toMatchObject({ attempts: 3, effect: Effect.COMMITTED });
  const key = requestId ?? callId;
  expect(keys).toEqual([key, key, key]);
  expect(committed.size).toBe(1);
});

test("a tool's own no is final [A-D05]", async () => {
  const tool = { retry: QUICK, result: { success_field: "code", success_value: 0 } };
  await using setting = await startOneTool(tool, (_request, response) => sendJson(response, 200, { code: 5001 }));
  const { result, stats } = await setting.gateway.client.call("one");
  expect(result?.failure?.reason).toBe("TOOL_FAILED");
  expect(stats?.attempts).toBe(1);
  expect(setting.requests).toHaveLength(1);
});

test.for([
  ["seconds", (): string => "2"],
  ["a date", (): string => new Date(Date.now() + 2_000).toUTCString()],
] as const)("Retry-After as %s is waited for [U-D09]", async ([, header]) => {
  await using setting = await startOneTool({ retry: QUICK }, (_request, response, nth) =>
    sendJson(response, nth === 1 ? 429 : 200, {}, nth === 1 ? { "retry-after": header() } : {}),
  );
  const { stats } = await setting.gateway.client.call("one");
  expect(stats?.attempts).toBe(2);
  const [first = 0, second = 0] = setting.requests;
  // A date has no parts of a second, so it may be up to one less.
  expect(second - first).toBeGreaterThan(990);
  expect(second - first).toBeLessThan(10_000);
});

test("a wait that goes beyond the deadline is not begun: the upstream's wish is told at once [U-D09, R-D06]", async () => {
  await using setting = await startOneTool({ retry: QUICK, timeout: { total: "5s" } }, (_request, response) =>
    sendJson(response, 429, {}, { "retry-after": "20" }),
  );
  const startedAt = performance.now();
  const { result } = await setting.gateway.client.call("one");
  expect(result?.failure?.message).toBe("one: the upstream asks to slow down (HTTP 429); retry after 20 s");
  expect(performance.now() - startedAt).toBeLessThan(4_000);
});

test("all attempts share one deadline: the last is cut to what is left, and none begins after it [R-D06]", async () => {
  const tool = { retry: { max_retries: 3, initial_backoff: "100ms" }, timeout: { read: "2s" } };
  const told: number[] = [];
  await using setting = await startOneTool(tool, ({ headers }) => {
    told.push(Number(headers["x-request-timeout-ms"]));
  });
  const { service } = setting.gateway.client;
  const startedAt = performance.now();
  const error = await failing(service.call({ invocation: { name: "one" } }, { timeoutMs: 3_000 }));
  expect(performance.now() - startedAt).toBeLessThan(4_500);
  // The gateway's own words, where they came before the caller's clock ran out.
  const info = error.findDetails(ErrorInfoSchema)[0];
  if (info !== undefined) expect(info).toMatchObject({ reason: "CALL_DEADLINE_EXCEEDED", metadata: { attempts: "2" } });
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(setting.requests).toHaveLength(2);
  for (const at of setting.requests) expect(at - startedAt).toBeLessThan(3_000);
  // The upstream hears what is left of the whole, not of the attempt's own limit.
  const [first = 0, second = 0] = told;
  expect(first).toBeGreaterThan(2_000);
  expect(first).toBeLessThanOrEqual(3_000);
  expect(second).toBeGreaterThan(0);
  expect(second).toBeLessThanOrEqual(1_000);
});

test("the tool's own deadline ends its attempts too, and the error tells how many were made [R-D06]", async () => {
  const tool = { retry: { max_retries: 9, initial_backoff: "1ms" }, timeout: { read: "300ms", total: "1s" } };
  await using setting = await startOneTool(tool, () => undefined);
  const error = await failing(setting.gateway.client.call("one"));
  const { metadata, reason } = error.findDetails(ErrorInfoSchema)[0] ?? {};
  expect(reason).toMatch(/^(CALL_DEADLINE_EXCEEDED|UPSTREAM_TIMEOUT)$/);
  expect(Number(metadata?.["attempts"])).toBe(setting.requests.length);
  expect(setting.requests.length).toBeGreaterThan(1);
});
