import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Adapter, PoolSettings } from "../core/adapter.ts";
import type { JsonValue } from "../core/json.ts";
import type { DeclarationProblem } from "../core/registry.ts";
import type { ResultRules } from "../core/shaper.ts";
import type { ToolPolicy } from "../core/step.ts";
import type { DeclaredTool } from "../core/tool.ts";

/** A declaration that is whole and right: everything a tool needs, parsed. */
export interface Declaration {
  /** `file:order_status.yaml` or `api:NAME`. */
  readonly source: string;
  /** Where it says `name`: 1-based. */
  readonly namePlace: { readonly line: number; readonly column: number };
  readonly tool: DeclaredTool;
  readonly adapter: Adapter;
  /** The adapter's part, parsed by the adapter. */
  readonly config: unknown;
  /** What of it runs a program of the gateway's machine. */
  readonly runsProgram?: string;
  readonly rules: ResultRules;
  readonly policy: ToolPolicy;
  /** Values of the keys that belong to pipeline steps, by step name. */
  readonly stepConfigs: ReadonlyMap<string, JsonValue>;
  /** SHA-256 (hex) of what a model and a typed client depend on: name, description, schemas and hints. */
  readonly contractDigest: string;
  /** SHA-256 (hex) of everything above that has an effect, the gateway's defaults included: the etag. */
  readonly digest: string;
  /** Notes that did not stop it. */
  readonly notes: readonly DeclarationProblem[];
  /** Effective values with their origin, in the order `explain` shows them; made anew whenever they are read. */
  readonly explained: readonly { readonly key: string; readonly value: string; readonly origin: string }[];
}

/** Outcome of reading a declaration: all its problems, or a whole declaration. */
export type DeclarationOutcome =
  | { readonly ok: true; readonly declaration: Declaration }
  | { readonly ok: false; readonly name: string | undefined; readonly problems: readonly DeclarationProblem[] };

/** Values of `gateway.yaml` that stand in where a declaration is silent. Absent: the built-in default. */
export interface DeclarationDefaults {
  readonly connectMs?: number;
  readonly readMs?: number;
  readonly idleMs?: number;
  readonly totalMs?: number;
  readonly maxLength?: number;
  /** Most bytes of one conclusive answer. */
  readonly maxResponseBytes: number;
  /** Connections to one origin. */
  readonly pool?: PoolSettings;
  /** By dotted key. */
  readonly policies?: GatewayConfig["defaults"]["policies"];
  /** By name of the group and dotted key. */
  readonly groups?: GatewayConfig["groups"];
}
