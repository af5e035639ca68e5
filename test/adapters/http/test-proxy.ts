import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { createTlsServer } from "./tls-fixture.ts";

/** A recording proxy. */
export interface TestProxy extends AsyncDisposable {
  readonly port: number;
  /** Request lines, each with the credentials it came with. */
  readonly seen: readonly string[];
  readonly sockets: readonly Socket[];
}

/** A recording proxy that leads every host to one port of loopback. */
export async function startProxy(upstreamPort: number, secure = false): Promise<TestProxy> {
  const seen: string[] = [];
  const sockets: Socket[] = [];
  const track = (socket: Socket): void => void sockets.push(socket.on("error", () => undefined));
  const server = secure ? createTlsServer(() => undefined) : createServer(forward);
  function forward(incoming: IncomingMessage, response: ServerResponse): void {
    const { method, url = "", headers } = incoming;
    seen.push(`${method} ${url} ${headers["proxy-authorization"] ?? "-"}`);
    const { pathname, search } = new URL(url);
    const options = { host: "127.0.0.1", port: upstreamPort, method, path: pathname + search, headers };
    incoming.pipe(
      httpRequest(options, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      }),
    );
  }
  server.on("connection", track);
  server.on("connect", ({ method, url, headers }, socket: Socket) => {
    seen.push(`${method} ${url} ${headers["proxy-authorization"] ?? "-"}`);
    const onward = connect(upstreamPort, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n");
      socket.pipe(onward).pipe(socket);
    });
    track(onward);
    socket.on("close", () => onward.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
