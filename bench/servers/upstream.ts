import { createServer, type ServerResponse } from "node:http";
import { FIRST_PAUSE_MS } from "../echo.ts";
import { listenAnywhere, reportReady } from "./ready.ts";

// What the HTTP tools call: as little work as a server can do.
const ANSWER = Buffer.from(
  JSON.stringify({ code: 0, message: "ok", data: { status: "已发货", tracker: "SF1234567890", note: "x".repeat(80) } }),
);
const EVENT = `data: ${"x".repeat(1024)}\n\n`;

const server = createServer((request, response) => {
  if (request.url?.startsWith("/first") === true) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(EVENT);
    setTimeout(() => response.end(), FIRST_PAUSE_MS);
  } else if (request.url?.startsWith("/feed") === true) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    feed(response);
  } else {
    response.writeHead(200, { "content-type": "application/json", "content-length": ANSWER.length });
    response.end(ANSWER);
  }
});

/** Events as fast as the reader takes them. */
function feed(response: ServerResponse): void {
  const more = (): void => {
    while (!response.destroyed && response.write(EVENT));
  };
  response.on("drain", more);
  more();
}

reportReady({ h1: await listenAnywhere(server) });
