import { type Dispatcher, Pool } from "undici";
import { EnvelopeReader, encodeRequest, envelope, messagesOf, methodPath } from "../wire.ts";
import type { LoadClient } from "./client.ts";

interface Request1 {
  readonly path: string;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
}

interface Http1Target {
  readonly port: number;
  readonly unary: Request1;
  readonly stream: Request1;
  /** Cuts a piece of a stream's body into messages; one reader a stream. */
  readonly reader: () => (chunk: Buffer) => readonly Uint8Array[];
  readonly inFlight: number;
}

/** Connect (JSON) over HTTP/1.1. */
export function createConnectHttp1Client(target: {
  readonly port: number;
  readonly tool: string;
  readonly validateOnly: boolean;
  readonly inFlight: number;
}): LoadClient {
  const { port, inFlight } = target;
  const version = { "connect-protocol-version": "1" };
  return createHttp1Client({
    port,
    inFlight,
    unary: {
      path: methodPath("Call"),
      method: "POST",
      headers: { "content-type": "application/json", ...version },
      body: encodeRequest(false, "json", target.tool, target.validateOnly),
    },
    stream: {
      path: methodPath("CallStream"),
      method: "POST",
      headers: { "content-type": "application/connect+json", ...version },
      body: envelope(encodeRequest(true, "json", target.tool, target.validateOnly)),
    },
    reader: () => {
      const envelopes = new EnvelopeReader();
      return (chunk) => messagesOf(envelopes.push(chunk));
    },
  });
}

/** A plain GET of the upstream, as a program without a gateway would make it. */
export function createDirectClient(target: {
  readonly port: number;
  readonly path: string;
  readonly inFlight: number;
}): LoadClient {
  const get: Request1 = { path: target.path, method: "GET", headers: {}, body: null };
  return createHttp1Client({
    port: target.port,
    inFlight: target.inFlight,
    unary: get,
    stream: get,
    // Server-sent events end with an empty line.
    reader: () => (chunk) =>
      chunk
        .toString("latin1")
        .split("\n\n")
        .slice(0, -1)
        .map((event) => Buffer.from(event)),
  });
}

function createHttp1Client({ port, unary, stream, reader, inFlight }: Http1Target): LoadClient {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: inFlight, pipelining: 1 });
  return {
    async call() {
      const { statusCode, body } = await pool.request(unary);
      const bytes = new Uint8Array(await body.arrayBuffer());
      if (statusCode !== 200)
        throw new Error(`HTTP ${statusCode}: ${Buffer.from(bytes).toString("utf8").slice(0, 300)}`);
      return bytes;
    },
    async stream(onMessage, signal) {
      try {
        await readStream(await pool.request({ ...stream, signal }), reader(), onMessage);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
    async [Symbol.asyncDispose]() {
      await pool.destroy();
    },
  };
}

async function readStream(
  { statusCode, body }: Dispatcher.ResponseData,
  messages: (chunk: Buffer) => readonly Uint8Array[],
  onMessage: (bytes: Uint8Array) => void,
): Promise<void> {
  if (statusCode !== 200) throw new Error(`HTTP ${statusCode}: ${(await body.text()).slice(0, 300)}`);
  for await (const chunk of body as AsyncIterable<Buffer>) {
    for (const message of messages(chunk)) onMessage(message);
  }
}
