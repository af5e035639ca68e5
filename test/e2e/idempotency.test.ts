import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { Effect, ToolErrorDetailSchema } from "../../gen/toolgate/v1/errors_pb.ts";
import { OperatorService } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { LedgerDatabase } from "../../src/stores/ledger-database.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { type GatewayClient, reasonOf, retryUntil, valueOf } from "./gateway-client.ts";

/** A shop that refunds: each request takes effect once more, unless its key is known. */
interface Shop extends AsyncDisposable {
  readonly port: number;
  /** Bodies of refunds, in order. */
  readonly refunds: readonly Readonly<Record<string, unknown>>[];
  /** What becomes of the next answers. */
  lose: boolean;
}

async function openShop(): Promise<Shop> {
  const refunds: Record<string, unknown>[] = [];
  const shop = { lose: false };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://shop");
    response.setHeader("content-type", "application/json");
    if (pathname === "/status") {
      const query = Object.fromEntries(searchParams);
      const refunded = refunds.filter(({ order }) => order === query["order"]).length;
      response.end(JSON.stringify({ refunded, query }));
      return;
    }
    let body = "";
    for await (const piece of request) body += String(piece);
    refunds.push(JSON.parse(body) as Record<string, unknown>);
    if (shop.lose) response.socket?.resetAndDestroy();
    else response.end(JSON.stringify({ refund: refunds.length }));
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return Object.assign(shop, {
    port: typeof address === "object" && address !== null ? address.port : 0,
    refunds,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  });
}

function toolFiles(port: number): Readonly<Record<string, string>> {
  const tool = (name: string, keys: object): string =>
    JSON.stringify({ name, description: "Refund an order of the shop", type: "http", ...keys }, null, 1);
  const params = [{ name: "order", type: "string", required: true }];
  const posted = { endpoint: `http://127.0.0.1:${port}/refund`, method: "POST", params };
  return {
    "tools/refund.yaml": tool("refund", posted),
    "tools/refund_keyed.yaml": tool("refund_keyed", { ...posted, idempotency_field: "request_id" }),
    "tools/refund_checked.yaml": tool("refund_checked", {
      ...posted,
      idempotency_field: "refund_key",
      reconcile: "refund_status",
    }),
    "tools/refund_mischecked.yaml": tool("refund_mischecked", { ...posted, reconcile: "refund" }),
    "tools/refund_hidden.yaml": tool("refund_hidden", { ...posted, reconcile: "auditors_status" }),
    "tools/auditors_status.yaml": tool("auditors_status", {
      endpoint: `http://127.0.0.1:${port}/status`,
      params,
      allowed_roles: ["auditor"],
    }),
    "tools/refund_status.yaml": tool("refund_status", {
      endpoint: `http://127.0.0.1:${port}/status`,
      params: [...params, { name: "refund_key", type: "string" }],
    }),
  };
}

let used: AsyncDisposableStack;
let shop: Shop;
let gateway: OpenGateway;

beforeEach(async () => {
  used = new AsyncDisposableStack();
  shop = used.use(await openShop());
  const folder = used.use(await temporaryFolder()).path;
  gateway = used.use(await openGateway({ folder, files: toolFiles(shop.port) }));
});

afterEach(() => used.disposeAsync());

function refund(name: string, requestId = "", { client }: { readonly client: GatewayClient } = gateway) {
  return client.service.call({
    invocation: { name, requestId, arguments: { case: "argumentsJson", value: '{"order":"A1"}' } },
  });
}

async function failureOf(call: Promise<unknown>): Promise<readonly [reason: string | undefined, effect: Effect]> {
  const error = await call.catch((caught: unknown) => caught);
  if (!(error instanceof ConnectError)) throw new Error("the call did not fail");
  return [reasonOf(error), error.findDetails(ToolErrorDetailSchema)[0]?.effect ?? Effect.UNSPECIFIED];
}

test("the key goes to the parameter that `idempotency_field` names: the caller's, else one of the gateway's [S2-72]", async () => {
  await refund("refund_keyed", "key-1");
  const { callId } = await refund("refund_keyed");
  await refund("refund_keyed");
  expect(shop.refunds.map(({ request_id: key }) => key)).toEqual([
    "key-1",
    callId,
    expect.stringMatching(/^[0-9a-f-]{36}$/),
  ]);
  expect(new Set(shop.refunds.map(({ request_id: key }) => key)).size).toBe(3);
});

test("callers do not see that parameter, and a model that sends it is refused", async () => {
  const { tool } = await gateway.client.service.get({ name: "refund_keyed" });
  expect(Object.keys(JSON.parse(tool?.inputSchemaJson ?? "").properties)).toEqual(["order"]);
  const call = gateway.client.call("refund_keyed", { order: "A1", request_id: "a model's" });
  expect(await failureOf(call)).toEqual(["ARGUMENTS_INVALID", Effect.NONE]);
  expect(shop.refunds).toEqual([]);
});

test("explain shows `idempotency_field` and `reconcile` with the lines they stand on", async () => {
  const transport = createConnectTransport({ baseUrl: gateway.url, httpVersion: "1.1" });
  const { values, steps } = await createClient(OperatorService, transport).explain({ name: "refund_checked" });
  const shown = values.filter(({ key }) => key === "idempotency_field" || key === "reconcile");
  expect(shown.map(({ key, value, origin }) => [key, value, origin])).toEqual([
    ["idempotency_field", "refund_key", "file:refund_checked.yaml:14"],
    ["reconcile", "refund_status", "file:refund_checked.yaml:15"],
  ]);
  expect(steps).toEqual(expect.arrayContaining(["idempotency_field", "ledger"]));
});

test("a write whose answer was lost is made once and said to be unknown; with a key it stays so [R-D05]", async () => {
  shop.lose = true;
  expect(await failureOf(refund("refund"))).toEqual(["UPSTREAM_ANSWER_LOST", Effect.UNKNOWN]);
  expect(await failureOf(refund("refund", "key-1"))).toEqual(["UPSTREAM_ANSWER_LOST", Effect.UNKNOWN]);
  expect(shop.refunds).toHaveLength(2);
  shop.lose = false;
  expect(await failureOf(refund("refund", "key-1"))).toEqual(["OUTCOME_UNKNOWN", Effect.UNKNOWN]);
  expect(shop.refunds).toHaveLength(2);
});

test("`reconcile` is asked what became of a call: with its arguments and its key", async () => {
  shop.lose = true;
  await failureOf(refund("refund_checked", "key-1"));
  const response = await refund("refund_checked", "key-1");
  expect(response.stats).toMatchObject({ effect: Effect.UNKNOWN, replayed: true });
  expect(response.result?.failure).toMatchObject({
    reason: "OUTCOME_UNKNOWN",
    message: expect.stringContaining('`refund_status` was asked: {"refunded":1'),
  });
  expect(valueOf(response)).toEqual({ refunded: 1, query: { order: "A1", refund_key: "key-1" } });
  expect(shop.refunds).toHaveLength(1);
});

test("a `reconcile` that the caller may not see is not asked, and no word says that there is one [X-D09]", async () => {
  shop.lose = true;
  await failureOf(refund("refund_hidden", "key-1"));
  await failureOf(refund("refund", "key-1"));
  const said = async (name: string): Promise<string> => {
    const error = await refund(name, "key-1").catch((thrown: unknown) => thrown);
    const { rawMessage } = ConnectError.from(error);
    const metadata = error instanceof ConnectError ? error.findDetails(ErrorInfoSchema)[0]?.metadata : {};
    return JSON.stringify([rawMessage, { ...metadata, earlier_call_id: "" }]).replaceAll(name, "TOOL");
  };
  expect(await said("refund_hidden")).toBe(await said("refund"));
});

test("a `reconcile` that may change something is not asked", async () => {
  shop.lose = true;
  await failureOf(refund("refund_mischecked", "key-1"));
  expect(await failureOf(refund("refund_mischecked", "key-1"))).toEqual(["OUTCOME_UNKNOWN", Effect.UNKNOWN]);
  expect(shop.refunds).toHaveLength(1);
});

test("an answer is given again after a restart, and after the tool has changed", async () => {
  const first = await refund("refund", "key-1");
  const file = join(gateway.folder, "tools/refund.yaml");
  const { tool } = await gateway.client.service.get({ name: "refund" });
  await writeFile(file, `${toolFiles(shop.port)["tools/refund.yaml"]?.slice(0, -1)}, "title": "Refund"}`);
  await retryUntil(
    () => gateway.client.service.get({ name: "refund" }),
    (now) => now.tool?.etag !== tool?.etag,
  );
  const changed = await refund("refund", "key-1");
  await gateway.stop();
  await using restarted = await openGateway({ folder: gateway.folder });
  const again = await refund("refund", "key-1", restarted);
  expect([first, changed, again].map(({ stats }) => stats?.replayed)).toEqual([false, true, true]);
  expect([changed, again].map(valueOf)).toEqual([{ refund: 1 }, { refund: 1 }]);
  expect(shop.refunds).toHaveLength(1);
});

test("without a ledger, calls with a key are refused and others go on", async () => {
  await gateway.stop();
  const limits = { retentionMs: 60_000, maxEntries: 10, maxBytes: 1_000 };
  using _other = new LedgerDatabase(join(gateway.folder, "state/ledger/calls.db"), limits, Date.now());
  await using second = await openGateway({ folder: gateway.folder });
  expect(await failureOf(refund("refund", "key-1", second))).toEqual(["LEDGER_UNAVAILABLE", Effect.NONE]);
  expect(shop.refunds).toEqual([]);
  expect(valueOf(await refund("refund", "", second))).toEqual({ refund: 1 });
});
