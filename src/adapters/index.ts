import type { Adapter } from "../core/adapter.ts";
import { createHttpAdapter } from "./http/index.ts";
import { createScriptAdapter } from "./script/index.ts";

/** What adapters take from outside. */
export interface AdapterOptions {
  /** The gateway's: proxies for upstreams, and what programs inherit, are taken from it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absolute path of the folder that relative paths of declarations begin at. */
  readonly folder: string;
  /** Whether a declaration may have its command line run by a shell. */
  readonly shell: boolean;
}

/** THE list of adapters: a new kind is one line here. */
export function createAdapters({ environment, folder, shell }: AdapterOptions): readonly Adapter[] {
  return [createHttpAdapter({ environment }), createScriptAdapter({ environment, folder, shell })];
}
