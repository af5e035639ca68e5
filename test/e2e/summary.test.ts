import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TruncationMode } from "../../gen/toolgate/v1/call_pb.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { reasonOf, textOf } from "./gateway-client.ts";

const running = new AsyncDisposableStack();
let gateway: OpenGateway;

const ORDERS = Array.from({ length: 300 }, (_, i) => ({
  id: `O-${i}`,
  buyer: `buyer ${i % 40}`,
  total: (i * 37) % 900,
}));

async function startUpstream(): Promise<Server> {
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ code: 0, message: "ok", data: { orders: ORDERS } }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

beforeAll(async () => {
  const server = running.adopt(await startUpstream(), (upstream) => {
    upstream.closeAllConnections();
    upstream.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no TCP address");
  const tool = `name: orders
description: Lists the orders of the shop, newest last
type: http
endpoint: "http://127.0.0.1:${address.port}/orders"
params: [{ name: match, type: string }]
result: { max_length: 1200, truncation: summary }
`;
  const folder = running.use(await temporaryFolder());
  gateway = running.use(await openGateway({ folder: folder.path, files: { "tools/orders.yaml": tool } }));
}, 180_000);

afterAll(() => running.disposeAsync());

test("an over-long result becomes a summary within its limit that says so and how long it was [S2-114] [S2-115]", async () => {
  const { result } = await gateway.client.service.call({ invocation: { name: "orders" } });
  const whole = JSON.stringify({ code: 0, message: "ok", data: { orders: ORDERS } });
  expect(result?.truncation).toMatchObject({ mode: TruncationMode.SUMMARY, originalLength: BigInt(whole.length) });
  const text = result === undefined ? "" : textOf(await gateway.client.call("orders"));
  expect(text.length).toBeLessThanOrEqual(1_200);
  expect(text).toContain("$.data.orders: 300 rows, 3 fields");
  expect(text).toContain(`[summary of ${whole.length} characters of JSON`);
});

test("the question of a call steers what is kept, else its arguments do, and one too long is refused", async () => {
  const row = "O-173\tbuyer 13\t101";
  expect(textOf(await gateway.client.call("orders"))).not.toContain(row);
  expect(textOf(await gateway.client.call("orders", { match: "O-173" }))).toContain(row);
  const asked = await gateway.client.service.call({ invocation: { name: "orders", question: "who bought O-173?" } });
  expect(textOf(asked)).toContain(row);
  const long = { invocation: { name: "orders", question: "x".repeat(4_001) } };
  expect(await gateway.client.service.call(long).then(textOf, reasonOf)).toBe("REQUEST_INVALID");
});
