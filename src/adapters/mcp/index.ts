import { lookup as systemLookup } from "node:dns";
import type { Adapter, ExplainedSetting } from "../../core/adapter.ts";
import { formatDuration } from "../../core/durations.ts";
import { isJsonObject, type JsonObject, type JsonValue, ownValue, stringifyJson } from "../../core/json.ts";
import type { LoginStore } from "../../core/logins.ts";
import type { TextCache } from "../../core/store.ts";
import { Launcher } from "../shared/launcher/launcher.ts";
import type { ChannelNetwork } from "../shared/network/http-channel.ts";
import { MCP_CONFIG_SCHEMA } from "./config-schema.ts";
import { configureMcp, type McpSurroundings } from "./configure.ts";
import { createIdleCores } from "./idle-cores.ts";
import type { McpConfig } from "./mcp-config.ts";
import { McpUpstream } from "./mcp-upstream.ts";
import { StartQueue } from "./start-queue.ts";

/** What MCP servers take from outside. */
export interface McpOptions extends McpSurroundings {
  /** Where tool lists and verdicts are kept over restarts. Default: nowhere. */
  readonly cache?: TextCache;
  /** Where people's logins at servers are. Default: there are none. */
  readonly logins?: LoginStore;
  /** Finds the addresses of a name. Default: the system's. */
  readonly lookup?: ChannelNetwork["lookup"];
  /** Most servers that start at a time. Default: 16 programs, 64 over HTTP. */
  readonly starts?: { readonly programs: number; readonly remote: number };
}

const STARTS = { programs: 16, remote: 64 } as const;

/** Nobody ever logs in. */
const NOBODY: LoginStore = {
  read: () => Promise.resolve(undefined),
  put: () => Promise.resolve(),
  update: () => Promise.resolve(undefined),
  remove: () => Promise.resolve(undefined),
  watch: () => ({ [Symbol.dispose]: () => undefined }),
};

const FORGETFUL: TextCache = { read: () => Promise.resolve(undefined), write: () => Promise.resolve() };

/** The adapter for MCP servers. Those that are programs share one launcher process. */
export function createMcpAdapter(options: McpOptions): Adapter<McpConfig> {
  const { environment, cache = FORGETFUL, logins = NOBODY, lookup = systemLookup, starts: most = STARTS } = options;
  const launcher = new Launcher(environment);
  const starts = { program: startLine(most.programs), remote: startLine(most.remote) };
  const shared = { launcher, cache, logins, network: { lookup, environment }, starts };
  return {
    kind: "mcp",
    offers: true,
    configSchema: MCP_CONFIG_SCHEMA,
    configure: (keys, tool, settings) => configureMcp(keys, tool, settings, options),
    explain: explainMcp,
    programs: () => launcher.size,
    open: (config, deps) => Promise.resolve(new McpUpstream(config, deps, shared)),
  };
}

function startLine(atOnce: number): StartQueue {
  return new StartQueue({ atOnce, idleCores: createIdleCores() });
}

/** Values are shown as declared; those of headers and variables that are no references are hidden. */
function explainMcp(config: McpConfig): readonly ExplainedSetting[] {
  const { declared, target, restart } = config;
  const settings: ExplainedSetting[] = [];
  for (const [key, value] of Object.entries(declared)) {
    if ((key === "env" || key === "headers") && isJsonObject(value)) settings.push(...entries(`mcp.${key}`, value));
    else if (key !== "cwd" && key !== "restart") settings.push({ key: `mcp.${key}`, value: shown(value) });
  }
  if (target.kind === "program") settings.push({ key: "mcp.cwd", value: target.cwd });
  const effective = {
    protocol: config.protocol,
    start: config.start,
    start_timeout: formatDuration(config.startTimeoutMs),
    "restart.first": formatDuration(restart.firstMs),
    "restart.max": formatDuration(restart.maxMs),
    "restart.attempts": String(restart.attempts),
  };
  for (const [key, value] of Object.entries(effective)) {
    if (!Object.hasOwn(declared, key)) settings.push({ key: `mcp.${key}`, value });
  }
  return settings;
}

function entries(key: string, values: JsonObject): ExplainedSetting[] {
  return Object.entries(values).map(([name, value]) => ({ key: `${key}.${name}`, value: reference(value) }));
}

/** By reference, with the text around it hidden. */
function reference(value: JsonValue): string {
  if (isJsonObject(value)) return shown(ownValue(value, "secret_ref") ?? "");
  const named = typeof value === "string" ? [...value.matchAll(/\$\{([A-Za-z_]\w*)\}/g)].map(([, name]) => name) : [];
  return named.length === 0 ? "***" : named.join(", ");
}

function shown(value: JsonValue): string {
  return typeof value === "string" ? value : stringifyJson(value);
}
