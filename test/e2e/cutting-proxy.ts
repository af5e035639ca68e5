import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A TCP proxy before a gateway that cuts connections. */
export interface CuttingProxy extends AsyncDisposable {
  readonly port: number;
  /** Connections cut so far. */
  readonly cuts: number;
}

/**
 * Passes bytes on to a port of 127.0.0.1 and back, and cuts each connection after so many bytes of answers: `next`
 * tells how many for each connection in turn; infinite: it is not cut.
 */
export async function startCuttingProxy(port: number, next: () => number): Promise<CuttingProxy> {
  let cuts = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const gateway = connect(port, "127.0.0.1");
    let left = next();
    for (const socket of [client, gateway]) {
      sockets.add(socket);
      // A reset is one way of being closed.
      socket.on("error", () => undefined);
      socket.once("close", () => {
        sockets.delete(socket);
        client.destroy();
        gateway.destroy();
      });
    }
    client.pipe(gateway);
    gateway.on("data", (bytes: Buffer) => {
      const passed = bytes.subarray(0, left);
      left -= passed.length;
      client.write(passed);
      if (left > 0) return;
      cuts += 1;
      // What was written goes out before the end.
      client.end(() => client.destroy());
      gateway.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    get cuts() {
      return cuts;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
