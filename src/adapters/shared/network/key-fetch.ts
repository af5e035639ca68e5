import { lookup as systemLookup } from "node:dns";
import type { LookupFunction } from "node:net";
import type { Clock } from "../../../core/clock.ts";
import type { EgressRules } from "../../../core/egress.ts";
import type { FetchKeys } from "../../../core/identity.ts";
import { EgressGuard } from "./egress.ts";
import { type ChannelAnswer, HttpChannel } from "./http-channel.ts";
import type { ProxyEnvironment } from "./proxy.ts";

/** Longest time for a connection. */
const CONNECT_MS = 5_000;

/** Most bytes of an issuer's keys. */
const MAX_BYTES = 1024 * 1024;

/** What asking issuers for their keys takes. */
export interface KeyFetchOptions {
  readonly clock: Clock;
  /** Finds the addresses of a name. Default: the system's. */
  readonly lookup?: LookupFunction;
  /** Where proxies are taken from. */
  readonly environment: ProxyEnvironment;
  /** `egress` of gateway.yaml, as it is now. */
  egress(): EgressRules | undefined;
}

/** Asks issuers for their keys within the bounds of `egress`, over a connection that is closed afterwards. */
export function createKeyFetch({ clock, lookup = systemLookup, environment, egress }: KeyFetchOptions): FetchKeys {
  return async (address, { allowPrivate, signal }) => {
    const url = new URL(address);
    const guard = new EgressGuard({ allowPrivate, gateway: egress(), own: undefined, ownOpens: false });
    const options = { clock, lookup, environment, guard, origin: url.origin };
    await using channel = new HttpChannel({ ...options, maxConnections: 1, connectMs: CONNECT_MS });
    const headers = { accept: "application/json, application/jwk-set+json" };
    const answer = await channel.send({ method: "GET", target: url.pathname + url.search, headers, signal });
    return { status: answer.status, text: await textOf(answer) };
  };
}

async function textOf({ body }: ChannelAnswer): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > MAX_BYTES) throw new Error(`the answer has more than ${MAX_BYTES} bytes`);
  }
  return Buffer.concat(pieces).toString("utf8");
}
