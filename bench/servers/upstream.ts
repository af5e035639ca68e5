import { createServer, type ServerResponse } from "node:http";
import { FIRST_PAUSE_MS } from "../echo.ts";
import { listenAnywhere, reportReady } from "./ready.ts";

// What the HTTP tools call: as little work as a server can do.
const ANSWER = Buffer.from(
  JSON.stringify({ code: 0, message: "ok", data: { status: "已发货", tracker: "SF1234567890", note: "x".repeat(80) } }),
);
const EVENT = `data: ${"x".repeat(1024)}\n\n`;

/** How long a request takes at best where each one that runs beside it makes it slower. */
const CONGESTED_MS = 100;
/** So many at a time take twice that, twice as many five times. */
const CONGESTED_BY = 32;

let congested = 0;

const server = createServer((request, response) => {
  if (request.url?.startsWith("/first") === true) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(EVENT);
    setTimeout(() => response.end(), FIRST_PAUSE_MS);
  } else if (request.url?.startsWith("/feed") === true) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    feed(response);
  } else if (request.url?.startsWith("/congested") === true) {
    congested += 1;
    setTimeout(
      () => {
        congested -= 1;
        answer(response);
      },
      CONGESTED_MS * (1 + (congested / CONGESTED_BY) ** 2),
    );
  } else if (request.url?.startsWith("/stalled") !== true) answer(response);
});

function answer(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json", "content-length": ANSWER.length });
  response.end(ANSWER);
}

/** Events as fast as the reader takes them. */
function feed(response: ServerResponse): void {
  const more = (): void => {
    while (!response.destroyed && response.write(EVENT));
  };
  response.on("drain", more);
  more();
}

reportReady({ h1: await listenAnywhere(server) });
