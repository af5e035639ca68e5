import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";

/** One GB, of which a slow reader takes almost nothing. */
const FLOOD_BYTES = 1_000_000_000;
/** Pieces of that GB: text that compression makes little of, and text that it makes hundreds of times smaller. */
const FLOOD_PIECES = {
  dense: Buffer.from(`云${randomBytes(12_288).toString("base64")}\n`),
  sparse: Buffer.from(`${"云".repeat(5)}${"-".repeat(16_384)}\n`),
};

/** What a flood is made of. */
export type FloodText = keyof typeof FLOOD_PIECES;

/** A request as the upstream saw it. */
export interface SeenRequest {
  readonly path: string;
  /** When its connection was closed, on the clock of `performance.now()`. */
  readonly closed: Promise<number>;
  /** Bytes given to the operating system or waiting for it, headers included. */
  bytesWritten(): number;
}

/** An upstream on loopback that tells when a request came and when its connection went. */
export interface RecordingUpstream extends AsyncDisposable {
  readonly port: number;
  /** The next request that comes, or the oldest not asked for yet. */
  nextRequest(): Promise<SeenRequest>;
}

/**
 * `/hang…` takes the request and never answers, `/drip…` sends one server-sent event and then nothing,
 * `/flood/dense` and `/flood/sparse` send up to 1 GB of text as fast as it is taken, anything else answers `{"ok":true}`.
 */
export async function startRecordingUpstream(): Promise<RecordingUpstream> {
  const seen: SeenRequest[] = [];
  const waiting: ((request: SeenRequest) => void)[] = [];
  const server = createServer((request, response) => {
    const { socket } = request;
    const before = socket.bytesWritten;
    const entry: SeenRequest = {
      path: request.url ?? "",
      closed: new Promise((resolve) => socket.once("close", () => resolve(performance.now()))),
      bytesWritten: () => socket.bytesWritten - before,
    };
    const waiter = waiting.shift();
    if (waiter === undefined) seen.push(entry);
    else waiter(entry);
    answer(entry.path, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no TCP address");
  return {
    port: address.port,
    nextRequest: () => {
      const entry = seen.shift();
      return entry === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(entry);
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function answer(path: string, response: ServerResponse): void {
  if (path.startsWith("/hang")) return;
  if (path.startsWith("/drip")) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: first\n\n");
  } else if (path.startsWith("/flood")) {
    response.writeHead(200, { "content-type": "text/plain; charset=utf-8" });
    flood(response, FLOOD_PIECES[path.endsWith("sparse") ? "sparse" : "dense"]);
  } else {
    response.writeHead(200, { "content-type": "application/json" });
    response.end('{"ok":true}');
  }
}

function flood(response: ServerResponse, piece: Buffer): void {
  let left = FLOOD_BYTES;
  const more = (): void => {
    while (left > 0 && !response.destroyed) {
      left -= piece.length;
      if (!response.write(piece)) return;
    }
    response.end();
  };
  response.on("drain", more);
  more();
}
