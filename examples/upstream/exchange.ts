import type { IncomingMessage, ServerResponse } from "node:http";

/** Most bytes of a request body the demo upstream reads. */
const MAX_BODY_BYTES = 65_536;

/** One request on its way through a route. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  /** What the groups of the route's path matched, percent-decoded. */
  readonly path: readonly string[];
  /** Aborts when the client goes away or the upstream closes. */
  readonly signal: AbortSignal;
}

/** Answers one kind of request; may throw, which becomes a 500. */
export type Handler = (exchange: Exchange) => void | Promise<void>;

/** A method and a path with the handler for them. */
export interface Route {
  readonly method: "GET" | "POST";
  readonly path: RegExp;
  readonly handle: Handler;
}

/** The envelope of the demo's business APIs: `code` 0 is success, anything else a business error. */
export interface Envelope {
  readonly code: number;
  readonly message: string;
  readonly data: unknown;
}

/** Sends a whole JSON answer. */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { "content-type": "application/json; charset=utf-8", "content-length": bytes.length });
  response.end(bytes);
}

/** Sends a business answer, which is HTTP 200 also where the business said no. */
export function sendEnvelope(response: ServerResponse, envelope: Envelope): void {
  sendJson(response, 200, envelope);
}

/** Sends a whole text answer. */
export function sendText(response: ServerResponse, text: string): void {
  const bytes = Buffer.from(text);
  response.writeHead(200, { "content-type": "text/plain; charset=utf-8", "content-length": bytes.length });
  response.end(bytes);
}

/** Reads a JSON object from the body; `undefined` where there is none, or where it is larger than 64 KiB. */
export async function readJsonObject(request: IncomingMessage): Promise<Readonly<Record<string, unknown>> | undefined> {
  const pieces: Buffer[] = [];
  let size = 0;
  const body: AsyncIterable<Buffer> = request.iterator({ destroyOnReturn: false });
  for await (const bytes of body) {
    size += bytes.length;
    if (size > MAX_BODY_BYTES) return undefined;
    pieces.push(bytes);
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(pieces).toString("utf8"));
    return isRecord(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
