import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type Server, type Socket } from "node:net";

/** A request as the upstream saw it. */
export interface SeenRequest {
  readonly method: string;
  /** Path and query as they came, not decoded. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  /** Port of the connection's other end: the same for requests of one connection. */
  readonly clientPort: number | undefined;
}

/** An upstream on loopback that keeps what it was asked. */
export interface EchoUpstream extends AsyncDisposable {
  readonly port: number;
  /** Takes connections and says nothing, not even a TLS greeting. */
  readonly mutePort: number;
  /** The last request whose path has this part. */
  last(part: string): SeenRequest | undefined;
}

/** What `/echo…` answers with, as business APIs do. */
const ENVELOPE = JSON.stringify({ code: 0, message: "ok", data: { flag: 1, text: "x".repeat(100) } });

/** 2 GB, as an upstream may announce them. */
const HUGE_BYTES = 2 * 2 ** 30;
const BLOCK = Buffer.alloc(64 * 1024, 32);

const ANSWERS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  echo: (response) => {
    response.setHeader("content-type", "application/json");
    response.end(ENVELOPE);
  },
  /** Leads to an echo of the same origin. */
  moved: (response) => void response.writeHead(302, { location: "/echo" }).end(),
  /** Takes the request and never answers. */
  silent: () => undefined,
  /** Headers, one byte, and then nothing. */
  stuck: (response) => void response.writeHead(200, { "content-type": "text/plain" }).write("a"),
  /** A byte now and then, for ever. */
  dripping: (response) => {
    response.writeHead(200, { "content-type": "text/plain" });
    const timer = setInterval(() => response.write("."), 250);
    response.once("close", () => clearInterval(timer));
  },
  announced: (response) => flood(response, { "content-length": HUGE_BYTES }),
  endless: (response) => flood(response, {}),
  failing: (response) => void response.writeHead(500, { "content-type": "application/json" }).end('{"message":"no"}'),
  broken: (response) => void response.writeHead(200, { "content-type": "application/json" }).end('{"half": '),
  reset: (response) => void response.socket?.resetAndDestroy(),
};

/** Starts it. The first part of a path chooses the answer: a key of ANSWERS. */
export async function startEchoUpstream(): Promise<EchoUpstream> {
  const seen: SeenRequest[] = [];
  const server = createServer((incoming, response) => {
    void readBody(incoming).then((body) => {
      const { method = "", url: target = "", headers } = incoming;
      seen.push({ method, target, headers, body, clientPort: incoming.socket.remotePort });
      ANSWERS[target.split(/[/?]/)[1] ?? ""]?.(response);
    });
  });
  const mute = createTcpServer();
  const sockets = new Set<Socket>();
  for (const listener of [server, mute]) listener.on("connection", (socket: Socket) => void sockets.add(socket));
  mute.on("connection", (socket) => socket.on("error", () => undefined));
  const port = await listen(server);
  const mutePort = await listen(mute);
  return {
    port,
    mutePort,
    last: (part) => seen.findLast(({ target }) => target.split(/[/?]/).includes(part)),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      const closed = [once(server, "close"), once(mute, "close")];
      server.close();
      mute.close();
      await Promise.all(closed);
    },
  };
}

function flood(response: ServerResponse, headers: Readonly<Record<string, number>>): void {
  response.writeHead(200, { "content-type": "application/json", ...headers });
  let left = HUGE_BYTES;
  const more = (): void => {
    while (left > 0 && !response.destroyed) {
      left -= BLOCK.length;
      if (!response.write(BLOCK)) return;
    }
    response.end();
  };
  response.on("drain", more);
  more();
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no TCP address");
  return address.port;
}
