import { lookup as systemLookup } from "node:dns";
import type { Adapter, ExplainedSetting } from "../../core/adapter.ts";
import { isJsonObject, type JsonValue, stringifyJson } from "../../core/json.ts";
import type { ChannelNetwork } from "./channel.ts";
import { Channels } from "./channels.ts";
import { GRPC_CONFIG_SCHEMA } from "./config-schema.ts";
import { configureGrpc } from "./configure.ts";
import { DescriptorFiles } from "./descriptor-files.ts";
import type { GrpcConfig } from "./grpc-config.ts";
import { GrpcUpstream } from "./grpc-upstream.ts";

/** What gRPC tools take from outside. */
export interface GrpcOptions {
  /** The gateway's environment: proxies are taken from it. */
  readonly environment: ChannelNetwork["environment"];
  /** Absolute path of the folder that relative paths begin at. */
  readonly folder: string;
  /** Finds the addresses of a name. Default: the system's. */
  readonly lookup?: ChannelNetwork["lookup"];
}

/** The adapter for methods of gRPC servers. */
export function createGrpcAdapter({ environment, folder, lookup = systemLookup }: GrpcOptions): Adapter<GrpcConfig> {
  const channels = new Channels({ environment, lookup });
  const files = new DescriptorFiles();
  return {
    kind: "grpc",
    configSchema: GRPC_CONFIG_SCHEMA,
    configure: (keys, tool, settings) => configureGrpc(keys, tool, settings, folder),
    explain: explainGrpc,
    open: async (config, deps) => {
      const { idleMs } = config.settings.pool;
      const lease = channels.open({ target: config.target, clock: deps.clock, idleMs });
      const upstream = new GrpcUpstream(config, { deps, lease, files });
      await upstream.prepare();
      return upstream;
    },
  };
}

/** Values are shown as declared, those of metadata by their references alone. */
function explainGrpc({ declared, request }: GrpcConfig): readonly ExplainedSetting[] {
  const settings: ExplainedSetting[] = [];
  for (const [key, value] of Object.entries(declared)) {
    if (!isJsonObject(value) || key === "request") settings.push({ key: `grpc.${key}`, value: shown(value) });
    else
      for (const [name, each] of Object.entries(value))
        settings.push({ key: `grpc.${key}.${name}`, value: key === "metadata" ? reference(each) : shown(each) });
  }
  if (request === undefined) settings.push({ key: "grpc.request", value: "each argument is the field of its name" });
  return settings;
}

function reference(value: JsonValue): string {
  if (isJsonObject(value)) return shown(value["secret_ref"] ?? "");
  const named = typeof value === "string" ? [...value.matchAll(/\$\{([A-Za-z_]\w*)\}/g)].map(([, name]) => name) : [];
  return named.length === 0 ? "***" : named.join(", ");
}

function shown(value: JsonValue): string {
  return typeof value === "string" ? value : stringifyJson(value);
}
