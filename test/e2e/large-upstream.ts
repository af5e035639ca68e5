import { once } from "node:events";
import { createServer } from "node:http";

/** Sends one JSON document of about so many bytes as `/json/BYTES`, made while it is read. */
export interface LargeUpstream extends AsyncDisposable {
  readonly port: number;
  /** Bytes sent, and how each answer ended. */
  readonly sent: { bytes: number; readonly ends: ("whole" | "left")[] };
}

/** Starts the upstream. */
export async function startLargeUpstream(): Promise<LargeUpstream> {
  const sent: LargeUpstream["sent"] = { bytes: 0, ends: [] };
  const server = createServer((request, response) => {
    const total = Number(request.url?.split("/").at(-1));
    const row = (n: number): string =>
      `{"id":${n},"state":"${n % 997 === 0 ? "late" : "sent"}","note":"order number ${n}"}`;
    let n = 0;
    let bytes = 0;
    response.setHeader("content-type", "application/json");
    response.write('{"data":[');
    const fill = (): void => {
      while (bytes < total) {
        const rows: string[] = [];
        for (let i = 0; i < 1_000; i++) rows.push(row(n++));
        const text = `${n === 1_000 ? "" : ","}${rows.join(",")}`;
        bytes += text.length;
        sent.bytes += text.length;
        if (!response.write(text)) return;
      }
      response.end("]}");
    };
    response.on("drain", fill);
    response.on("close", () => sent.ends.push(response.writableFinished ? "whole" : "left"));
    fill();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    sent,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
