import type { Adapter } from "../core/adapter.ts";
import { createHttpAdapter } from "./http/index.ts";

/** What adapters take from outside. */
export interface AdapterOptions {
  /** Where proxies for upstreams are taken from: `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** THE list of adapters: a new kind is one line here. */
export function createAdapters({ environment }: AdapterOptions): readonly Adapter[] {
  return [createHttpAdapter({ environment })];
}
