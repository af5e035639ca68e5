import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/health/v1/health_pb.ts";
import { ServingState } from "../../src/service/health.ts";
import { failureOf } from "./clients.ts";
import { type Served, serve } from "./serve.ts";

const SERVICES = [
  "",
  "toolgate.v1.ToolGatewayService",
  "toolgate.v1.OperatorService",
  "toolgate.v1.ResultService",
  "grpc.health.v1.Health",
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
];

function health({ url }: Served) {
  return createClient(Health, createGrpcTransport({ baseUrl: url }));
}

test("Check tells of the whole gateway and of each service, and refuses an unknown one", async () => {
  await using served = await serve();
  const client = health(served);
  for (const service of SERVICES) expect((await client.check({ service })).status).toBe(Status.SERVING);
  served.door.setReady(false);
  for (const service of SERVICES) expect((await client.check({ service })).status).toBe(Status.NOT_SERVING);
  expect(await failureOf(client.check({ service: "x.Y" }))).toMatchObject({
    code: Code.NotFound,
    reason: "SERVICE_NOT_FOUND",
  });
});

test("List tells of all", async () => {
  await using served = await serve();
  const { statuses } = await health(served).list({});
  expect(Object.keys(statuses).toSorted()).toEqual(SERVICES.toSorted());
  expect(Object.values(statuses).map(({ status }) => status)).toEqual(SERVICES.map(() => Status.SERVING));
});

test("Watch gives the status at once, then each change, and NOT_SERVING before the gateway is gone", async () => {
  await using served = await serve();
  const seen = health(served).watch({ service: "toolgate.v1.ToolGatewayService" })[Symbol.asyncIterator]();
  const next = async () => (await seen.next()).value?.status;
  expect(await next()).toBe(Status.SERVING);
  served.door.setReady(false);
  expect(await next()).toBe(Status.NOT_SERVING);
  served.door.setReady(true);
  expect(await next()).toBe(Status.SERVING);
  const stopped = served.door.stop();
  expect(await next()).toBe(Status.NOT_SERVING);
  expect((await failureOf(seen.next())).reason).toBe("GATEWAY_STOPPING");
  await stopped;
});

test("Watch of an unknown service says so and stays", async () => {
  await using served = await serve();
  const controller = new AbortController();
  const seen = health(served).watch({ service: "x.Y" }, { signal: controller.signal })[Symbol.asyncIterator]();
  expect((await seen.next()).value?.status).toBe(Status.SERVICE_UNKNOWN);
  const next = failureOf(seen.next());
  served.door.setReady(false);
  controller.abort();
  expect((await next).code).toBe(Code.Canceled);
});

test("once stopped, nothing makes the gateway ready again", () => {
  const state = new ServingState();
  state.set(true);
  state.stop();
  state.set(true);
  expect(state.serving).toBe(false);
});
