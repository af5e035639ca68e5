import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { raceSignal } from "../../core/signal.ts";

const HOST = "127.0.0.1";
const PATH = "/callback";

/** Longest time for the header of a request. */
const HEADERS_MS = 10_000;

/** Most browsers that wait to be looked at. */
const MAX_WAITING = 16;

/** A browser that was sent back. */
export interface Redirect {
  readonly params: URLSearchParams;
  /** Says to the person what came of it. Once. */
  answer(ok: boolean, text: string): void;
}

/** The port cannot be listened on. */
export class PortTaken extends Error {
  constructor(port: number, cause: unknown) {
    super(`port ${port} of ${HOST} cannot be listened on`, { cause });
    this.name = "PortTaken";
  }
}

/**
 * Listens on this machine for the browser that an authorization server sends back. Source: RFC 8252, section 7.3.
 * Whatever else knocks there is turned away.
 */
export class RedirectListener implements AsyncDisposable {
  /** Where browsers are sent back to. */
  readonly uri: string;
  readonly #server: Server;
  /** Browsers that nobody has looked at yet. */
  readonly #came: Redirect[] = [];
  #wake: () => void = () => undefined;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.uri = `http://${HOST}:${port}${PATH}`;
    server.on("request", (request: IncomingMessage, response: ServerResponse) => this.#serve(request, response));
  }

  /** Begins to listen; 0: on any port that is free. @throws PortTaken. */
  static async open(port: number): Promise<RedirectListener> {
    const server = createServer({ headersTimeout: HEADERS_MS, requestTimeout: HEADERS_MS });
    server.maxConnections = 16;
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error) => reject(new PortTaken(port, error)));
      server.listen(port, HOST, resolve);
    });
    const address = server.address();
    return new RedirectListener(server, typeof address === "object" && address !== null ? address.port : port);
  }

  /** The next redirect. @throws the signal's reason. */
  async next(signal: AbortSignal): Promise<Redirect> {
    for (;;) {
      const redirect = this.#came.shift();
      if (redirect !== undefined) return redirect;
      const come = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await raceSignal(come, signal);
    }
  }

  /** Takes the address that a browser ended at, where it runs on another machine. Whether it is one of a redirect. */
  take(address: string): boolean {
    const url = URL.parse(address.trim());
    if (url === null || `${url.origin}${url.pathname}` !== this.uri) return false;
    this.#add({ params: url.searchParams, answer: () => undefined });
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    // The last page may be on its way still.
    this.#server.closeIdleConnections();
    setImmediate(() => this.#server.closeAllConnections());
    await closed;
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const url = URL.parse(`http://${HOST}${request.url ?? ""}`);
    const known = this.uri === `http://${request.headers.host ?? ""}${url?.pathname ?? ""}`;
    if (url === null || !known || request.method !== "GET") {
      page(response, 404, "This is the address that a login at toolgate ends at.");
      return;
    }
    this.#add({ params: url.searchParams, answer: (ok, text) => page(response, ok ? 200 : 400, text) });
  }

  #add(redirect: Redirect): void {
    if (this.#came.length === MAX_WAITING) redirect.answer(false, "Too many logins end here at once.");
    else this.#came.push(redirect);
    this.#wake();
  }
}

/** Nothing of the request stands in it. */
function page(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    connection: "close",
  });
  response.end(`<!doctype html><title>toolgate</title><p>${text}</p>\n`);
}
