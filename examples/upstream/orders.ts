import { createHash } from "node:crypto";
import { type Exchange, type Route, readJsonObject, sendEnvelope, sendJson, sendText } from "./exchange.ts";

interface Order {
  readonly id: string;
  readonly customer: string;
  readonly status: string;
  readonly tracker: string;
  readonly paidCents: number;
  readonly history: readonly { readonly time: string; readonly status: string }[];
}

const ORDERS: readonly Order[] = [
  {
    id: "SO20241001",
    customer: "C1001",
    status: "已发货",
    tracker: "SF1234567890",
    paidCents: 25_900,
    history: [
      { time: "2024-10-01T09:12:00+08:00", status: "已付款" },
      { time: "2024-10-01T18:40:00+08:00", status: "已出库" },
      { time: "2024-10-02T08:05:00+08:00", status: "已发货" },
    ],
  },
  {
    id: "SO20241002",
    customer: "C1001",
    status: "待付款",
    tracker: "",
    paidCents: 0,
    history: [{ time: "2024-10-02T10:00:00+08:00", status: "待付款" }],
  },
  {
    id: "SO20241003",
    customer: "C2002",
    status: "已签收",
    tracker: "SF9876543210",
    paidCents: 8_800,
    history: [
      { time: "2024-09-28T11:30:00+08:00", status: "已付款" },
      { time: "2024-09-29T15:20:00+08:00", status: "已发货" },
      { time: "2024-10-01T12:02:00+08:00", status: "已签收" },
    ],
  },
];

/** Business codes beside 0. */
const ORDER_UNKNOWN = 5001;
const REFUND_REFUSED = 5002;

/** The order system: a status, a search, a delivery note as plain text, and refunds. It keeps nothing. */
export const orderRoutes: readonly Route[] = [
  { method: "GET", path: /^\/orders\/([^/]+)\/status$/, handle: orderStatus },
  { method: "GET", path: /^\/orders\/([^/]+)\/note$/, handle: deliveryNote },
  { method: "GET", path: /^\/orders$/, handle: searchOrders },
  { method: "POST", path: /^\/refunds$/, handle: createRefund },
];

function orderStatus({ request, response, url, path }: Exchange): void {
  if (!authorized(request.headers.authorization)) {
    sendJson(response, 401, { code: 401, message: "token missing or not accepted", data: null });
    return;
  }
  const order = findOrder(path[0]);
  if (order === undefined) {
    sendEnvelope(response, { code: ORDER_UNKNOWN, message: `订单不存在: ${path[0] ?? ""}`, data: null });
    return;
  }
  const status = { status: order.status, tracker: order.tracker };
  const data = url.searchParams.get("include_history") === "true" ? { ...status, history: order.history } : status;
  sendEnvelope(response, { code: 0, message: "ok", data });
}

/** The demo's own token, and any that looks like a key (`sk-…`). */
function authorized(header: string | undefined): boolean {
  return header === "demo-order-token" || header?.startsWith("sk-") === true;
}

function deliveryNote({ response, path }: Exchange): void {
  const order = findOrder(path[0]);
  if (order === undefined) {
    sendJson(response, 404, { error: "no such order" });
    return;
  }
  sendText(response, `送货单 ${order.id}\n状态 ${order.status}\n运单号 ${order.tracker || "无"}\n请当面验收。\n`);
}

/** Nested on purpose: what a model needs stands in `data.page.orders`. */
function searchOrders({ response, url }: Exchange): void {
  const customer = url.searchParams.get("customer");
  const limit = Number(url.searchParams.get("limit") ?? "10");
  const found = ORDERS.filter((order) => order.customer === customer).slice(0, limit);
  const orders = found.map(({ id, status, tracker }) => ({ id, status, tracker }));
  sendEnvelope(response, { code: 0, message: "ok", data: { page: { number: 1, size: limit, orders } } });
}

async function createRefund({ request, response }: Exchange): Promise<void> {
  const body = await readJsonObject(request);
  const orderId = body?.["order_id"];
  const amountCents = Number.isInteger(body?.["amount_cents"]) ? Number(body?.["amount_cents"]) : undefined;
  if (typeof orderId !== "string" || amountCents === undefined || typeof body?.["notify"] !== "boolean") {
    sendJson(response, 400, { code: 400, message: "order_id, amount_cents and notify are required", data: null });
    return;
  }
  const paidCents = findOrder(orderId)?.paidCents ?? 0;
  if (amountCents > paidCents) {
    sendEnvelope(response, { code: REFUND_REFUSED, message: `可退金额为 ${paidCents} 分`, data: null });
    return;
  }
  const refundId = `RF${createHash("sha256").update(`${orderId}:${amountCents}`).digest("hex").slice(0, 10)}`;
  sendEnvelope(response, { code: 0, message: "ok", data: { refund_id: refundId, status: "已受理" } });
}

function findOrder(id: string | undefined): Order | undefined {
  return ORDERS.find((order) => order.id === id);
}
