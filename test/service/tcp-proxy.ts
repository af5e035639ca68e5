import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Something between client and gateway, as a balancer or a cable. */
export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  /** Where the next connections go; those there are stay where they are. */
  target: number;
  /** From now on nothing passes in either direction, and nobody is told: as when a cable is cut. */
  freeze(): void;
}

/** Starts one on loopback before a port of loopback. */
export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(proxy.target, "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => undefined).once("close", () => sockets.delete(from));
      from.pipe(to);
      from.once("close", () => to.destroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const proxy: TcpProxy = {
    port: (server.address() as AddressInfo).port,
    target,
    freeze() {
      for (const socket of sockets) socket.unpipe().pause().removeAllListeners("close");
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
  return proxy;
}
