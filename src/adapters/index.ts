import type { Adapter } from "../core/adapter.ts";
import { createHttpAdapter, type HttpAdapterOptions } from "./http/index.ts";

/** What adapters take from outside. */
export interface AdapterOptions {
  /** Where proxies for upstreams are taken from: `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Limits of the connections to an origin, where a declaration is silent. Default: the adapter's own. */
  readonly pool?: HttpAdapterOptions["pool"];
}

/** THE list of adapters: a new kind is one line here. */
export function createAdapters({ environment, pool = {} }: AdapterOptions): readonly Adapter[] {
  return [createHttpAdapter({ environment, pool })];
}
