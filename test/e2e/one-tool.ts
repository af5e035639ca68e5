import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";

/** Answers a request, counted from 1. */
export type Respond = (request: IncomingMessage, response: ServerResponse, nth: number) => void;

/** A gateway in this process with the tool `one`, and the upstream behind it. */
export interface OneTool extends AsyncDisposable {
  readonly gateway: OpenGateway;
  /** When each request came, in milliseconds. */
  readonly requests: readonly number[];
  /** Writes the declaration anew, with these keys. */
  declare(keys: Readonly<Record<string, unknown>>): Promise<void>;
}

/** Starts both; `keys` are those of the declaration besides the usual ones. */
export async function startOneTool(keys: Readonly<Record<string, unknown>>, respond: Respond): Promise<OneTool> {
  const running = new AsyncDisposableStack();
  const requests: number[] = [];
  const server = createServer((request, response) => {
    requests.push(performance.now());
    respond(request, response, requests.length);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  running.defer(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  const folder = running.use(await temporaryFolder());
  const text = (own: Readonly<Record<string, unknown>>): string =>
    JSON.stringify({
      name: "one",
      description: "用于检查重试与熔断 shows what is tried again and what is left alone",
      type: "http",
      endpoint: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`,
      ...own,
    });
  const gateway = running.use(await openGateway({ folder: folder.path, files: { "tools/one.yaml": text(keys) } }));
  return {
    gateway,
    requests,
    declare: (own) => writeFile(join(folder.path, "tools/one.yaml"), text(own)),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Answers with JSON. */
export function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
}
