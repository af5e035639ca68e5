import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { type Exchange, type Route, sendJson } from "./exchange.ts";

const LOG_LINE_MS = 200;
const PROGRESS_MS = 150;

/** What never ends, or takes its time: a log tail as server-sent events, progress as NDJSON, a slow report. */
export const streamRoutes: readonly Route[] = [
  { method: "GET", path: /^\/logs\/([^/]+)\/tail$/, handle: tailLog },
  { method: "GET", path: /^\/imports\/([^/]+)\/progress$/, handle: importProgress },
  { method: "GET", path: /^\/reports\/([^/]+)$/, handle: slowReport },
];

const LOG_LINES = [
  "GET /orders 200 4ms",
  "GET /orders/SO20241001/status 200 7ms",
  "POST /refunds 200 21ms",
  "cache 命中",
];

/** Five lines a second; endless, unless `lines` says how many. */
async function tailLog({ response, url, path, signal }: Exchange): Promise<void> {
  const wanted = url.searchParams.get("lines");
  const lines = wanted === null ? Number.POSITIVE_INFINITY : Number(wanted);
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" });
  for (let i = 0; i < lines; i++) {
    if (i > 0) await delay(LOG_LINE_MS, undefined, { signal });
    const line = `${path[0] ?? ""} #${i + 1} ${LOG_LINES[i % LOG_LINES.length] ?? ""}`;
    await write(response, `id: ${i + 1}\ndata: ${line}\n\n`, signal);
  }
  response.end();
}

async function importProgress({ response, url, path, signal }: Exchange): Promise<void> {
  const steps = Number(url.searchParams.get("steps") ?? "8");
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  for (let step = 1; step <= steps; step++) {
    if (step > 1) await delay(PROGRESS_MS, undefined, { signal });
    await write(response, `${JSON.stringify({ import: path[0], step, of: steps })}\n`, signal);
  }
  response.end();
}

async function slowReport({ response, url, path, signal }: Exchange): Promise<void> {
  const seconds = Number(url.searchParams.get("seconds") ?? "30");
  await delay(seconds * 1000, undefined, { signal });
  sendJson(response, 200, { report: path[0], seconds, revenue_cents: 1_234_500 });
}

/** Waits while the reader is behind. */
async function write(response: ServerResponse, text: string, signal: AbortSignal): Promise<void> {
  if (!response.write(text)) await once(response, "drain", { signal });
}
