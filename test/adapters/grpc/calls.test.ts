import { expect, test } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { call, invoke } from "../http/fixture.ts";
import { frame, message, openTool, order, type RawCall, refuse, reply, startRaw, type ToolOptions } from "./fixture.ts";

const EMPTY_ORDER = {
  orderId: "",
  totalCents: "0",
  state: "STATE_UNSPECIFIED",
  gift: false,
  items: [],
  counts: {},
  token: "",
};

const ORDER_PARAMS = {
  order_id: { type: "string" },
  total_cents: { type: "integer" },
  state: { type: "string" },
  items: { type: "array" },
  counts: { type: "object" },
  placed_at: { type: "string" },
  token: { type: "string" },
  customer: { type: "integer" },
  replaces: { type: "object" },
};

const PLACE: ToolOptions = {
  grpc: { method: "shop.v1.OrderService/PlaceOrder" },
  params: ORDER_PARAMS,
};

/** Calls a tool whose server gives back what it got. */
async function echoed(args: Parameters<typeof call>[1], options: ToolOptions = PLACE): ReturnType<typeof call> {
  await using server = await startRaw((got) => reply(got, [got.request]));
  await using tool = await openTool({ ...options, grpc: { address: server.address, ...options.grpc } });
  return await call(tool, args);
}

test("arguments become the request message and its answer the result, by the JSON of protobuf [S2-02]", async () => {
  const { result } = await echoed({
    order_id: "A1",
    total_cents: 9_007_199_254_740_993n,
    state: "STATE_PAID",
    items: ["pen"],
    counts: { pen: 2 },
    placed_at: "2026-01-02T03:04:05Z",
    token: "AQI=",
    customer: 7,
    replaces: { orderId: "A0", name: "Ada" },
  });
  expect(result?.value).toEqual({
    orderId: "A1",
    totalCents: "9007199254740993",
    state: "STATE_PAID",
    gift: false,
    items: ["pen"],
    counts: { pen: 2 },
    placedAt: "2026-01-02T03:04:05Z",
    token: "AQI=",
    customer: 7,
    replaces: { ...EMPTY_ORDER, orderId: "A0", name: "Ada" },
  });
  expect(result).toMatchObject({ upstreamCode: 0, effect: "committed", content: [] });
});

test("an empty argument list is an empty message, and fields without presence show their default", async () => {
  expect((await echoed({})).result?.value).toEqual(EMPTY_ORDER);
});

test.for([
  [{ state: "STATE_LOST" }, /STATE_LOST/],
  [{ total_cents: 1.5 }, /total_cents/],
  [{ placed_at: "yesterday" }, /Timestamp/],
  [{ token: "%" }, /token/],
  [{ replaces: { ordr_id: "A0" } }, /ordr_id/],
  [{ customer: 4_294_967_296 }, /customer/],
] as const)("arguments that are no message are refused before the server is reached: %j", async ([args, words]) => {
  await using server = await startRaw((got) => reply(got, [order()]));
  await using tool = await openTool({ ...PLACE, grpc: { ...PLACE.grpc, address: server.address } });
  const { error } = await call(tool, args);
  expect(error).toMatchObject({ reason: "ARGUMENTS_INVALID", effect: "none" });
  expect(error?.message).toMatch(words);
  expect((await call(tool, args, { validateOnly: true })).error?.reason).toBe("ARGUMENTS_INVALID");
  expect(server.calls).toHaveLength(0);
});

test("`grpc.request` says what the message is made of, with what is absent left out", async () => {
  const request = { order_id: "${id}", replaces: { order_id: "old-$id", items: ["$first"] }, total_cents: "$cents" };
  const options = {
    grpc: { ...PLACE.grpc, request },
    params: { id: { type: "string" }, first: { type: "string" }, cents: { type: "integer" } },
  };
  const { result } = await echoed({ id: "A1", first: "pen", cents: null }, options);
  expect(result?.value).toMatchObject({
    orderId: "A1",
    totalCents: "0",
    replaces: { orderId: "old-A1", items: ["pen"] },
  });
});

test("`grpc.metadata` goes along with its secrets, which are shown nowhere [K-D01]", async () => {
  await using server = await startRaw((got) => reply(got, [order()]));
  await using tool = await openTool({
    grpc: { address: server.address, metadata: { "X-Tenant": "acme", authorization: "Bearer ${TOKEN}" } },
    environment: { TOKEN: "sk-live-0123456789abcdef" },
  });
  const outcome = await call(tool, { order_id: "A1" }, { explain: true });
  expect(server.calls[0]?.headers).toMatchObject({
    ":method": "POST",
    ":path": "/shop.v1.OrderService/GetOrder",
    "content-type": "application/grpc",
    te: "trailers",
    "x-tenant": "acme",
    authorization: "Bearer sk-live-0123456789abcdef",
  });
  expect(outcome.exchange).toMatchObject({
    method: "POST",
    url: `${server.address}/shop.v1.OrderService/GetOrder`,
    requestHeaders: [
      ["x-tenant", "acme"],
      ["authorization", "***"],
    ],
    requestBody: '{"order_id":"A1"}',
    status: undefined,
  });
  expect(JSON.stringify(outcome)).not.toContain("sk-live");
});

test("what is left of the call goes along as grpc-timeout, never more than that", async () => {
  await using server = await startRaw((got) => reply(got, [order()]));
  await using tool = await openTool({ grpc: { address: server.address } });
  await call(tool, {}, { deadlineMs: systemClock.now() + 90_000 });
  await call(tool);
  const [near, far] = server.calls.map(({ headers }) => headers["grpc-timeout"] ?? "");
  const [, count, unit] = /^(\d{1,8})([mSMH])$/.exec(near ?? "") ?? [];
  expect(unit).toBe("m");
  expect(Number(count)).toBeLessThanOrEqual(90_000);
  expect(Number(count)).toBeGreaterThan(0);
  expect(far).toBe("99999999H");
});

test("the caller's trace goes along", async () => {
  await using server = await startRaw((got) => reply(got, [order()]));
  await using tool = await openTool({ grpc: { address: server.address } });
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  await call(tool, {}, { traceparent });
  await call(tool, {}, { traceparent: "nonsense" });
  expect(server.calls.map(({ headers }) => headers["traceparent"])).toEqual([traceparent, undefined]);
});

test("a stream that is wanted whole is a list of its messages", async () => {
  await using server = await startRaw((got) => reply(got, [order({ orderId: "A1" }), order({ orderId: "A2" })]));
  await using tool = await openTool({ grpc: { address: server.address, method: "shop.v1.OrderService/WatchOrder" } });
  const { result, deltas } = await call(tool);
  expect(result?.value).toMatchObject([{ orderId: "A1" }, { orderId: "A2" }]);
  expect(deltas).toEqual([]);
});

test("a stream that is wanted as it comes gives a line for each message, text as it is", async () => {
  await using server = await startRaw((got) =>
    reply(
      got,
      got.headers[":path"]?.endsWith("ReadLog") === true
        ? [
            message("google.protobuf.StringValue", "first" as never),
            message("google.protobuf.StringValue", "zweite ✓" as never),
          ]
        : [order({ orderId: "A1", totalCents: "9007199254740993" })],
    ),
  );
  const tool = (method: string): ToolOptions => ({
    grpc: { address: server.address, method: `shop.v1.OrderService/${method}` },
    delivery: "incremental",
  });
  await using log = await openTool(tool("ReadLog"));
  const read = await call(log);
  expect(read.deltas).toEqual(["first\n", "zweite ✓\n"]);
  expect(read.result).toEqual({ upstreamCode: 0, effect: "committed", content: [] });
  await using watch = await openTool(tool("WatchOrder"));
  expect((await call(watch)).deltas).toEqual([
    `${JSON.stringify({ ...EMPTY_ORDER, orderId: "A1", totalCents: "9007199254740993" })}\n`,
  ]);
});

test("a stream that fails in its middle gives what came and then the failure", async () => {
  await using server = await startRaw((got) => reply(got, [order()], { "grpc-status": "13", "grpc-message": "broke" }));
  const method = "shop.v1.OrderService/WatchOrder";
  await using tool = await openTool({ grpc: { address: server.address, method }, delivery: "incremental" });
  const { deltas, result } = await call(tool);
  expect(deltas).toHaveLength(1);
  expect(result?.failure).toMatchObject({ reason: "UPSTREAM_STATUS", upstreamCode: 13, upstreamFault: true });
});

test("a stream is read as fast as its reader takes it", async () => {
  let written = 0;
  await using server = await startRaw(({ stream }) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" });
    const piece = frame(order({ items: ["x".repeat(16_384)] }));
    const write = (): void => {
      do written += piece.length;
      while (stream.write(piece) && written < 64 * 1024 * 1024);
    };
    stream.on("drain", write);
    write();
  });
  const method = "shop.v1.OrderService/WatchOrder";
  await using tool = await openTool({ grpc: { address: server.address, method }, delivery: "incremental" });
  const events = invoke(tool)[Symbol.asyncIterator]();
  await events.next();
  // A second call over the same connection is not held up by the one that nobody reads.
  for (let i = 0; i < 3; i++) {
    const other = invoke(tool)[Symbol.asyncIterator]();
    expect((await other.next()).value).toMatchObject({ type: "upstream-delta" });
    await other.return?.();
  }
  expect(written).toBeLessThan(16 * 1024 * 1024);
  await events.return?.();
});

test("an answer over the limit ends early and says the limit", async () => {
  await using server = await startRaw((got) =>
    reply(got, [order({ items: ["x".repeat(2_000)] }), order({ items: ["x".repeat(900)] })]),
  );
  await using one = await openTool({ grpc: { address: server.address }, maxResponseBytes: 1_000 });
  expect((await call(one)).error).toMatchObject({ reason: "RESULT_TOO_LARGE", effect: "unknown" });
  const method = "shop.v1.OrderService/WatchOrder";
  await using many = await openTool({
    grpc: { address: server.address, method },
    maxResponseBytes: 2_500,
    hints: { readOnly: true },
  });
  const { error } = await call(many);
  expect(error).toMatchObject({ reason: "RESULT_TOO_LARGE", effect: "none" });
  expect(error?.message).toContain("2500 bytes");
});

test.for([
  ["no message", (got: RawCall) => reply(got, [])],
  ["two messages", (got: RawCall) => reply(got, [order(), order()])],
  ["something else", (got: RawCall) => reply(got, [Buffer.from([0xff, 0xff, 0xff])])],
] as const)("an answer of %s where one message is due is a failure", async ([, answer]) => {
  await using server = await startRaw(answer);
  await using tool = await openTool({ grpc: { address: server.address } });
  expect((await call(tool)).result?.failure).toMatchObject({ reason: "UPSTREAM_BAD_RESPONSE", retryable: false });
});

test("a compressed answer, which nobody asked for, is a failure", async () => {
  await using server = await startRaw(({ stream }) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" });
    stream.end(Buffer.from([1, 0, 0, 0, 1, 0]));
  });
  await using tool = await openTool({ grpc: { address: server.address } });
  expect((await call(tool)).result?.failure?.message).toContain("is compressed");
});

test("a cancelled call resets its stream", async () => {
  await using server = await startRaw(() => undefined);
  await using tool = await openTool({ grpc: { address: server.address } });
  const controller = new AbortController();
  const ended = call(tool, {}, { signal: controller.signal });
  const { stream } = await server.nextCall();
  const reset = new Promise((resolve) => stream.once("close", () => resolve(stream.rstCode)));
  controller.abort(new GatewayError("CALL_CANCELLED", "stopped by the test"));
  expect((await ended).error).toMatchObject({ reason: "CALL_CANCELLED", effect: "unknown" });
  expect(await reset).toBe(8);
});

test("a server that only passes the call's own deadline on is no failure of the tool", async () => {
  await using server = await startRaw((got) => refuse(got, { "grpc-status": "4" }));
  await using tool = await openTool({ grpc: { address: server.address } });
  const controller = new AbortController();
  const ended = call(tool, {}, { signal: controller.signal, deadlineMs: systemClock.now() + 100 });
  await server.nextCall();
  controller.abort(new GatewayError("CALL_DEADLINE_EXCEEDED", "over"));
  expect((await ended).error?.reason).toBe("CALL_DEADLINE_EXCEEDED");
  const far = await call(tool, {}, { deadlineMs: systemClock.now() + 60_000 });
  expect(far.result?.failure).toMatchObject({ reason: "UPSTREAM_STATUS", upstreamCode: 4, transient: true });
});
