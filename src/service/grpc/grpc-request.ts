import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { HeaderReader, Peer } from "../../core/identity.ts";
import { peerOf, type ShownCertificates } from "../peer.ts";
import type { RpcInit } from "../rpc.ts";
import { rpcTimeout } from "../rpc-timeout.ts";

/** Source: gRPC over HTTP/2 protocol, "Content-Type". */
const CONTENT_TYPE = /^application\/grpc(?:\+proto)?$/i;

const GONE: Peer = { address: "", port: 0, encrypted: false };

/** A gRPC request whose headers are there. */
export class GrpcRequest implements RpcInit {
  readonly method: string;
  readonly headers: HeaderReader;
  readonly timeoutMs: number | undefined;
  readonly binary = true;
  readonly #stream: ServerHttp2Stream;
  readonly #shown: ShownCertificates;

  constructor(stream: ServerHttp2Stream, plain: PlainGrpc, method: string, shown: ShownCertificates) {
    this.method = method;
    this.headers = plain.headers;
    this.timeoutMs = plain.timeoutMs;
    this.#stream = stream;
    this.#shown = shown;
  }

  peer(): Peer {
    const { session } = this.#stream;
    return session === undefined ? GONE : peerOf({ socket: session.socket, session }, this.#shown);
  }

  bodyArrived(): boolean {
    return this.#stream.readableEnded;
  }

  /** Gives up without a status, which clients show as RESOURCE_EXHAUSTED. Source: gRPC over HTTP/2 protocol, "Errors". */
  reset(): void {
    if (!this.#stream.destroyed) this.#stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }
}

/** What headers of plain gRPC say. */
export interface PlainGrpc {
  readonly headers: HeaderReader;
  readonly timeoutMs: number | undefined;
  /** Whether the caller takes answers compressed by gzip. */
  readonly gzip: boolean;
}

/**
 * Reads the headers of a request. `undefined`: its messages are compressed or JSON, its caller is a page in a browser,
 * or it is malformed; what that means is Connect's to know.
 */
export function plainGrpc(fields: IncomingHttpHeaders): PlainGrpc | undefined {
  const { [":method"]: method, "content-type": type = "", "grpc-encoding": encoding = "identity" } = fields;
  if (method !== "POST" || !CONTENT_TYPE.test(type) || encoding !== "identity") return undefined;
  if (fields.origin !== undefined || fields.expect !== undefined) return undefined;
  const headers = new FieldReader(fields);
  const timeout = rpcTimeout(headers);
  if (timeout !== undefined && timeout.timeoutMs === undefined) return undefined;
  const accepted = headers.get("grpc-accept-encoding") ?? "";
  return {
    headers,
    timeoutMs: timeout?.timeoutMs,
    gzip: accepted.split(",").some((name) => name.trim() === "gzip"),
  };
}

class FieldReader implements HeaderReader {
  readonly #fields: IncomingHttpHeaders;

  constructor(fields: IncomingHttpHeaders) {
    this.#fields = fields;
  }

  get(name: string): string | null {
    // Node's object of them has no prototype.
    const value = name.startsWith(":") ? undefined : this.#fields[name.toLowerCase()];
    return value === undefined ? null : String(value);
  }
}
