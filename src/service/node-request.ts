import type { NodeRequest } from "./listener.ts";
import type { Connection } from "./peer.ts";

/** What a request came over. */
export function connectionOf(request: NodeRequest): Connection {
  const { socket } = request;
  return "stream" in request ? { socket, session: request.stream.session } : { socket };
}

/** Its headers. */
export function webHeaders(request: NodeRequest): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || name.startsWith(":")) continue;
    if (typeof value === "string") headers.append(name, value);
    else for (const one of value) headers.append(name, one);
  }
  return headers;
}
