import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Server,
  ServerCredentials,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { order } from "../adapters/grpc/fixture.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { reasonOf, valueOf } from "./gateway-client.ts";
import { REPOSITORY } from "./spawned.ts";

const PARAMS = [{ name: "order_id", type: "string", required: true, description: "number of the order" }];

/** The orders of a grpc-js server, and what it saw. */
async function startOrders(): Promise<
  AsyncDisposable & { address: string; deadlines: number[]; slow: Promise<void>; cancelled: Promise<void> }
> {
  const deadlines: number[] = [];
  const slow = Promise.withResolvers<undefined>();
  const cancelled = Promise.withResolvers<undefined>();
  const get: handleUnaryCall<Buffer, Uint8Array> = (call, done) => {
    deadlines.push(Number(call.getDeadline()));
    const id = call.request.subarray(2).toString("utf8");
    if (id === "A1") done(null, order({ orderId: id, totalCents: "9007199254740993", state: "STATE_PAID" }));
    else if (id === "slow") {
      call.on("cancelled", () => cancelled.resolve(undefined));
      slow.resolve(undefined);
    } else done({ code: status.NOT_FOUND, details: `订单 ${id} 不存在` });
  };
  const watch: handleServerStreamingCall<Buffer, Uint8Array> = (call) => {
    for (let i = 1; i <= 3; i++) call.write(order({ orderId: `A${i}` }));
    call.end();
  };
  const server = new Server();
  const bytes = (value: Uint8Array): Buffer => Buffer.from(value);
  const method = (name: string, responseStream: boolean) => ({
    path: `/shop.v1.OrderService/${name}`,
    requestStream: false,
    responseStream,
    requestSerialize: bytes,
    requestDeserialize: bytes,
    responseSerialize: bytes,
    responseDeserialize: bytes,
  });
  const handlers: UntypedServiceImplementation = { GetOrder: get, WatchOrder: watch };
  server.addService({ GetOrder: method("GetOrder", false), WatchOrder: method("WatchOrder", true) }, handlers);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  return {
    address: `http://127.0.0.1:${port}`,
    deadlines,
    slow: slow.promise,
    cancelled: cancelled.promise,
    async [Symbol.asyncDispose]() {
      server.forceShutdown();
    },
  };
}

/** A gateway with tools of that server. */
async function startGateway(address: string): Promise<AsyncDisposable & { gateway: OpenGateway; folder: string }> {
  const running = new AsyncDisposableStack();
  const folder = running.use(await temporaryFolder());
  const declared = (name: string, method: string, more: object = {}): Record<string, string> => ({
    [`tools/${name}.json`]: JSON.stringify({
      name,
      description: "订单 orders of the shop, by their number",
      type: "grpc",
      grpc: { address, method: `shop.v1.OrderService/${method}`, descriptor: "orders.binpb" },
      params: PARAMS,
      ...more,
    }),
  });
  await mkdir(join(folder.path, "tools"));
  await copyFile(join(REPOSITORY, "test/adapters/grpc/orders.binpb"), join(folder.path, "tools/orders.binpb"));
  const gateway = running.use(
    await openGateway({
      folder: folder.path,
      files: {
        ...declared("order_lookup", "GetOrder", { hints: { read_only: true } }),
        ...declared("order_log", "WatchOrder", { delivery: "incremental" }),
        ...declared("order_upload", "UploadOrders"),
      },
    }),
  );
  return { gateway, folder: folder.path, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

test("methods of a gRPC server are tools: called, streamed, refused and timed as any other [S2-02]", async () => {
  await using orders = await startOrders();
  await using started = await startGateway(orders.address);
  const { client } = started.gateway;
  const begun = Date.now();
  const answer = await client.call("order_lookup", { order_id: "A1" });
  expect(valueOf(answer)).toMatchObject({ orderId: "A1", totalCents: "9007199254740993", state: "STATE_PAID" });
  // The tool's own limit, 60 s.
  expect(orders.deadlines.at(-1)).toBeLessThanOrEqual(Date.now() + 60_000);
  expect(orders.deadlines.at(-1)).toBeGreaterThan(begun);

  const none = await client.call("order_lookup", { order_id: "B2" });
  expect(none.result?.failure).toMatchObject({ reason: "UPSTREAM_STATUS", upstreamCode: 5 });
  expect(none.result?.failure?.message).toContain("订单 B2 不存在");

  let text = "";
  const invocation = { name: "order_log", arguments: { case: "argumentsJson", value: '{"order_id":"A1"}' } } as const;
  for await (const { event } of client.service.callStream({ invocation })) {
    if (event.case === "output" && event.value.delta.case === "text") text += event.value.delta.value;
  }
  expect(
    text
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { orderId: string }).orderId),
  ).toEqual(["A1", "A2", "A3"]);

  const controller = new AbortController();
  const slow = { name: "order_lookup", arguments: { case: "argumentsJson", value: '{"order_id":"slow"}' } } as const;
  const ended = client.service
    .call({ invocation: slow }, { signal: controller.signal, timeoutMs: 60_000 })
    .catch(() => "ended");
  await orders.slow;
  controller.abort();
  expect(await ended).toBe("ended");
  await orders.cancelled;

  const refused = await client.call("order_upload", { order_id: "A1" }).catch(reasonOf);
  expect(refused).toBe("UPSTREAM_UNREACHABLE");
});

test("a gateway is a gRPC server by whose reflection another tool is made", async () => {
  await using upstream = await startGateway("http://127.0.0.1:1");
  await using folder = await temporaryFolder();
  const declaration = {
    name: "tools_there",
    description: "Lists the tools of another gateway",
    type: "grpc",
    grpc: {
      address: `http://127.0.0.1:${upstream.gateway.port}`,
      method: "toolgate.v1.ToolGatewayService/List",
      reflection: true,
    },
    hints: { read_only: true },
    params: [{ name: "page_size", type: "integer" }],
  };
  await using gateway = await openGateway({
    folder: folder.path,
    files: { "tools/there.json": JSON.stringify(declaration) },
  });
  const answer = await gateway.client.call("tools_there", { page_size: 1 });
  expect(answer.result?.failure).toBeUndefined();
  expect(valueOf(answer)).toMatchObject({ tools: [{ name: expect.any(String) }] });
});
