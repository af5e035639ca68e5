import type { Server as HttpServer } from "node:http";
import type { Http2Server } from "node:http2";

/** Ports by name, as a server process reports them. */
export type Ports = Readonly<Record<string, number>>;

/** Tells the parent where the server listens, and ends the process when the parent is gone. */
export function reportReady(ports: Ports): void {
  process.on("disconnect", () => process.exit(0));
  process.send?.(ports);
}

/** Listens on a free loopback port. */
export function listenAnywhere(server: HttpServer | Http2Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      if (address === null || typeof address === "string") reject(new Error("no TCP address"));
      else resolve(address.port);
    });
  });
}
