import { type Exchange, type Route, sendJson } from "./exchange.ts";

const TABLE_ROWS = 2_000;

/** What goes wrong in real life: an upstream that fails in several ways, and an answer too large for a model. */
export const troubleRoutes: readonly Route[] = [
  { method: "GET", path: /^\/flaky$/, handle: flaky },
  { method: "GET", path: /^\/stock$/, handle: stockTable },
];

function flaky({ response, url }: Exchange): void {
  const mode = url.searchParams.get("mode") ?? "ok";
  if (mode === "reset") {
    response.destroy();
  } else if (mode === "overloaded") {
    response.setHeader("retry-after", "3");
    sendJson(response, 503, { error: "overloaded" });
  } else if (mode === "broken") {
    response.writeHead(200, { "content-type": "application/json" });
    response.end('{"half": ');
  } else {
    sendJson(response, 200, { mode: "ok" });
  }
}

function stockTable({ response, url }: Exchange): void {
  const rows = Math.min(Number(url.searchParams.get("rows") ?? TABLE_ROWS), 50_000);
  const items = Array.from({ length: rows }, (_, i) => ({
    sku: `SKU-${i + 1}`,
    warehouse: "上海",
    on_hand: (i * 7) % 100,
  }));
  sendJson(response, 200, { rows, items });
}
