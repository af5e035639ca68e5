import type { Adapter } from "../core/adapter.ts";
import type { LoginStore } from "../core/logins.ts";
import type { TextCache } from "../core/store.ts";
import { createGrpcAdapter } from "./grpc/index.ts";
import { createHttpAdapter } from "./http/index.ts";
import { createMcpAdapter } from "./mcp/index.ts";
import { createScriptAdapter } from "./script/index.ts";

/** What adapters take from outside. */
export interface AdapterOptions {
  /** The gateway's: proxies for upstreams, and what programs inherit, are taken from it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absolute path of the folder that relative paths of declarations begin at. */
  readonly folder: string;
  /** Whether a declaration may have its command line run by a shell. */
  readonly shell: boolean;
  /** Where what was learnt of servers is kept over restarts. Default: nowhere. */
  readonly cache?: TextCache;
  /** Where people's logins at MCP servers are. Default: there are none. */
  readonly logins?: LoginStore;
  /** Most MCP servers that start at a time. Default: 16 programs, 64 over HTTP. */
  readonly starts?: { readonly programs: number; readonly remote: number };
}

/** THE list of adapters: a new kind is one line here. */
export function createAdapters(options: AdapterOptions): readonly Adapter[] {
  const { shell, ...surroundings } = options;
  const { environment, folder } = surroundings;
  return [
    createHttpAdapter({ environment }),
    createScriptAdapter({ environment, folder, shell }),
    createMcpAdapter(surroundings),
    createGrpcAdapter({ environment, folder }),
  ];
}
