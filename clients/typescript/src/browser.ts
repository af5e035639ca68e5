import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { type Bearer, withBearer } from "./bearer.ts";

/** How to reach a gateway over fetch. */
export interface BrowserTransportOptions {
  /** Such as `https://tools.example.com`, or `/` for the page's own origin. */
  readonly baseUrl: string;
  /** Instead of the global fetch; the place for `credentials` and the like. */
  readonly fetch?: typeof globalThis.fetch;
  /** Sent with each request: a token, or what gives the one of now. A page can be read by who visits it. */
  readonly bearer?: Bearer;
  /** Run around each request, first outermost. */
  readonly interceptors?: readonly Interceptor[];
}

/**
 * Makes a Connect transport over fetch, for browsers and everything else that has one. It needs no HTTP/2. The browser
 * itself sends a refused HTTP/2 stream again.
 */
export function createBrowserTransport(options: BrowserTransportOptions): Transport {
  return createConnectTransport({
    baseUrl: options.baseUrl,
    useBinaryFormat: true,
    interceptors: [...withBearer(options.bearer), ...(options.interceptors ?? [])],
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
  });
}
