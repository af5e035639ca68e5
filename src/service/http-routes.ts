import type { CheckResult } from "../core/registry.ts";
import type { ServingState } from "./health.ts";
import type { NodeRequest, NodeResponse, RequestHandler } from "./listener.ts";

/**
 * Plain HTTP for probes: `/healthz` while the process lives, `/readyz` while it takes calls, with a line for each thing
 * that is not well and keeps nobody from calling. Anything else is 404, which gRPC clients read as UNIMPLEMENTED.
 */
export function createHttpRoutes(
  state: ServingState,
  selfChecks: () => readonly CheckResult[] = () => [],
  metrics?: (request: NodeRequest) => Promise<Answer>,
): RequestHandler {
  const notes = (): string =>
    selfChecks()
      .filter(({ status }) => status !== "ok")
      .map(({ subject, message }) => `\n${subject}: ${message}`)
      .join("");
  const routes: Readonly<Record<string, (request: NodeRequest) => Answer | Promise<Answer>>> = {
    ...(metrics === undefined ? {} : { "/metrics": metrics }),
    "/healthz": () => ({ status: 200, text: "ok" }),
    "/readyz": () => (state.serving ? { status: 200, text: `ready${notes()}` } : { status: 503, text: "not ready" }),
  };
  return (request, response) => {
    const [path = ""] = (request.url ?? "").split("?", 1);
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (route === undefined) send(request, response, { status: 404, text: "not found" });
    else if (request.method === "GET" || request.method === "HEAD") answer(request, response, route(request));
    else send(request, response, { status: 405, text: "use GET" });
  };
}

/** Sends it at once where it is there: probes must not wait behind anything. */
function answer(request: NodeRequest, response: NodeResponse, found: Answer | Promise<Answer>): void {
  if (!(found instanceof Promise)) send(request, response, found);
  else void found.then((late) => send(request, response, late));
}

/** What a route answers. */
export interface Answer {
  readonly status: number;
  readonly text: string;
  /** Default: plain text. */
  readonly type?: string;
}

function send(
  request: NodeRequest,
  response: NodeResponse,
  { status, text, type = "text/plain; charset=utf-8" }: Answer,
): void {
  const headers = { "content-type": type, "cache-control": "no-store" };
  // One signature of two classes that TypeScript cannot call through their union.
  if ("stream" in response) response.writeHead(status, headers);
  else response.writeHead(status, headers);
  const body = request.method === "HEAD" ? "" : `${text}\n`;
  if ("stream" in response) response.end(body);
  else response.end(body);
}
