import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Adapter, PoolSettings, UpstreamTool } from "../core/adapter.ts";
import type { EgressRules } from "../core/egress.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import type { DeclarationProblem } from "../core/registry.ts";
import type { ResultRules } from "../core/shaper.ts";
import type { ToolPolicy } from "../core/step.ts";
import type { DeclaredTool } from "../core/tool.ts";
import type { Toolsets } from "../core/toolsets.ts";

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
  /** Variables of the gateway's environment that its program asks for. Absent: none. */
  readonly inheritedEnv?: readonly string[];
  /** What it reaches beside `policy.upstream`, in the same form. Absent: nothing. */
  readonly alsoReaches?: readonly string[];
  /** Toolsets it is in, in code-unit order. Absent: none. */
  readonly toolsets?: readonly string[];
  /** Whether callers can see and call it: not where only tools of toolsets are and it is in none. Default true. */
  readonly exposed?: boolean;
  /** References of all secrets it can use. Absent: none. */
  readonly secretRefs?: readonly string[];
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
  /** Of a declaration that names a server: what it makes of the tools behind it. It is no tool itself then. */
  readonly server?: DeclaredServer | undefined;
  /** Of a tool that a server brought: how it is reached there. */
  readonly remote?: RemoteTool;
}

/** What the declaration of a server makes of the tools behind it. */
export interface DeclaredServer {
  /** SHA-256 (hex) of what its upstream depends on: where it is the same, the upstream stays. */
  readonly upstreamDigest: string;
  /** What becomes of a tool that the server offers, whatever the server says of it. Never throws. */
  adapt(offered: UpstreamTool): AdaptedTool;
  /** Notes on what the declaration says of tools that the server does not offer. */
  idle(offered: ReadonlySet<string>): readonly DeclarationProblem[];
}

/** What became of a tool that a server offers. */
export type AdaptedTool =
  | {
      readonly kind: "tool";
      /** As if it had been declared: it has the server's name, `/` and its own as name. */
      readonly declaration: Declaration & { readonly remote: RemoteTool };
      /** What an operator should know; one line each. */
      readonly notes: readonly string[];
    }
  /** The operator does not want it. */
  | { readonly kind: "left-out" }
  /**
   * It cannot be served as it is. `reason`: why, and the mend, in one line. `offeredSo`: for what the server says of it,
   * so that nothing that was declared is broken.
   */
  | { readonly kind: "held-back"; readonly reason: string; readonly offeredSo: boolean };

/** A tool behind a server. */
export interface RemoteTool {
  /** Name of the server's declaration. */
  readonly server: string;
  /** The server's own name of the tool. */
  readonly name: string;
  /** Whether it is listed and can be called. */
  readonly visible: boolean;
  /** SHA-256 (hex) of what the server says of it: name, description and schemas. */
  readonly offeredDigest: string;
  /**
   * The arguments as the server gets them.
   *
   * @throws GatewayError ARGUMENTS_INVALID for a parameter that callers cannot send.
   */
  toServer(args: JsonObject): JsonObject;
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
  readonly truncation?: ResultRules["truncation"];
  readonly hiddenCharacters?: ResultRules["hiddenCharacters"];
  readonly trust?: ResultRules["trust"];
  /** What is masked in results of all tools. */
  readonly redact?: ResultRules["redact"];
  /** Most bytes of one conclusive answer. */
  readonly maxResponseBytes: number;
  /** Connections to one origin. */
  readonly pool?: PoolSettings;
  /** Where connections may lead. */
  readonly egress?: EgressRules;
  /** By dotted key. */
  readonly policies?: GatewayConfig["defaults"]["policies"];
  /** By name of the group and dotted key. */
  readonly groups?: GatewayConfig["groups"];
  readonly toolsets?: Toolsets;
  /** Whether a tool that is in none of them is not there for callers. */
  readonly needsToolset?: boolean;
}
