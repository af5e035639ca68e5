import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A request for a token as it came. */
export interface TokenRequest {
  readonly authorization: string | undefined;
  readonly form: Readonly<Record<string, string>>;
}

/** What stands where for the metadata; `undefined`: 404. */
export type Metadata = (path: string, origin: string) => object | undefined;

/** An authorization server, and whatever else a test wants to read metadata from. */
export interface AuthorizationServer extends AsyncDisposable {
  readonly origin: string;
  readonly tokens: readonly TokenRequest[];
  /** Paths that were asked for, in order. */
  readonly paths: readonly string[];
}

/** Starts one that gives `token-1`, `token-2` … */
export async function startAuthorization(metadata: Metadata): Promise<AuthorizationServer> {
  const tokens: TokenRequest[] = [];
  const paths: string[] = [];
  const server = createServer((request, response) => void serve(request, response));
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "";
    paths.push(path);
    const form = Object.fromEntries(new URLSearchParams(await text(request)));
    if (request.method === "POST") tokens.push({ authorization: request.headers.authorization, form });
    const body =
      request.method === "POST"
        ? { access_token: `token-${tokens.length}`, token_type: "Bearer", expires_in: 3_600 }
        : metadata(path, origin);
    response.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(body ?? {}));
  }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    tokens,
    paths,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
