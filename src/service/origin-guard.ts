import { cors } from "@connectrpc/connect";
import type { NodeRequest, NodeResponse, RequestHandler } from "./listener.ts";

/** How long a browser may remember a permission: the longest Chromium takes. Source: https://fetch.spec.whatwg.org/. */
const MAX_AGE_S = 7_200;

/** Headers of callers beside those of the protocols. */
const ALLOWED_HEADERS = [...cors.allowedHeaders, "authorization", "traceparent"].join(", ");
const ALLOWED_METHODS = cors.allowedMethods.join(", ");
const EXPOSED_HEADERS = [...cors.exposedHeaders, "grpc-status-details-bin"].join(", ");

/**
 * Lets pages of the listed origins call from a browser, and nobody else's: a page that made its own name point to this
 * machine (DNS rebinding) would otherwise call the tools of whoever looks at it. Callers that are no browsers send no
 * `Origin` and pass.
 *
 * @param allowed origins as browsers send them, such as `https://app.example.com`.
 */
export function guardOrigins(allowed: readonly string[], handler: RequestHandler): RequestHandler {
  const origins = new Set(allowed);
  return (request, response) => {
    const { origin } = request.headers;
    if (origin === undefined) {
      handler(request, response);
      return;
    }
    if (!origins.has(origin)) {
      answer(request, response, 403, "this origin may not call; an operator can add it to cors.allowed_origins\n");
      return;
    }
    response.setHeader("access-control-allow-origin", origin);
    response.setHeader("vary", "origin");
    if (isPreflight(request)) {
      response.setHeader("access-control-allow-methods", ALLOWED_METHODS);
      response.setHeader("access-control-allow-headers", ALLOWED_HEADERS);
      response.setHeader("access-control-max-age", MAX_AGE_S);
      answer(request, response, 204, "");
      return;
    }
    response.setHeader("access-control-expose-headers", EXPOSED_HEADERS);
    handler(request, response);
  };
}

function isPreflight({ method, headers }: NodeRequest): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

/** Answers without waiting for a body; what comes of one is let go, since an unread body would keep the connection. */
function answer(request: NodeRequest, response: NodeResponse, status: number, text: string): void {
  request.resume();
  response.statusCode = status;
  if (text !== "") response.setHeader("content-type", "text/plain; charset=utf-8");
  // One signature of two classes that TypeScript cannot call through their union.
  if ("stream" in response) response.end(text);
  else response.end(text);
}
