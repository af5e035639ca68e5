import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Route } from "./exchange.ts";
import { sendJson } from "./exchange.ts";
import { orderRoutes } from "./orders.ts";
import { streamRoutes } from "./streams.ts";
import { troubleRoutes } from "./troubles.ts";
import { weatherRoutes } from "./weather.ts";

const ROUTES: readonly Route[] = [...orderRoutes, ...weatherRoutes, ...streamRoutes, ...troubleRoutes];

const MAX_CONNECTIONS = 256;

/** Where the demo upstream listens. */
export interface DemoUpstreamOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly host: string;
}

/** A running demo upstream. */
export interface DemoUpstream extends AsyncDisposable {
  readonly port: number;
  /** Ends all requests at once and frees the port. May be called twice. */
  close(): Promise<void>;
}

/**
 * Starts the HTTP service that the example tools call. It keeps no state and writes nothing.
 *
 * @throws the listen error (`EADDRINUSE`) where the port is taken.
 */
export async function createDemoUpstream(options: DemoUpstreamOptions): Promise<DemoUpstream> {
  const stop = new AbortController();
  const server = createServer((request, response) => {
    void answer(request, response, stop.signal);
  });
  server.maxConnections = MAX_CONNECTIONS;
  await listen(server, options);
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the demo upstream listens on no TCP port");
  const close = async (): Promise<void> => {
    if (stop.signal.aborted) return;
    stop.abort();
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  };
  return { port: address.port, close, [Symbol.asyncDispose]: close };
}

function listen(server: Server, { port, host }: DemoUpstreamOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.removeListener("error", reject);
      resolve();
    });
  });
}

/** Never rejects: a fault becomes a 500, or a cut connection where the answer has begun. */
async function answer(request: IncomingMessage, response: ServerResponse, stop: AbortSignal): Promise<void> {
  const gone = new AbortController();
  const leave = (): void => gone.abort();
  response.once("close", leave);
  stop.addEventListener("abort", leave);
  try {
    await dispatch(request, response, gone.signal);
  } catch {
    // What a handler throws once the client is gone, or a fault of its own: there is nobody else to tell.
    if (response.headersSent) response.destroy();
    else sendJson(response, 500, { error: "internal error" });
  } finally {
    stop.removeEventListener("abort", leave);
  }
}

async function dispatch(request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
  const url = new URL(request.url ?? "/", "http://demo.invalid");
  for (const route of ROUTES) {
    const match = route.path.exec(url.pathname);
    if (match === null || route.method !== request.method) continue;
    const path = match.slice(1).map((part) => decodeURIComponent(part));
    await route.handle({ request, response, url, path, signal });
    return;
  }
  sendJson(response, 404, { error: `no ${request.method ?? ""} ${url.pathname}` });
}
