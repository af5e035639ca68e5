import type { SourceDocument } from "../config/source-document.ts";
import type { Adapter } from "../core/adapter.ts";
import type { JsonObject } from "../core/json.ts";
import type { DeclaredTool } from "../core/tool.ts";
import type { Declaration, DeclarationDefaults } from "./declaration.ts";
import type { OriginParts } from "./explain-declaration.ts";
import type { SchemaProblem } from "./tool-schemas.ts";

/** What a server's declaration says, with what it is read with. */
export interface ServerParts {
  readonly document: SourceDocument;
  /** Those that fit the schema of declarations. */
  readonly keys: JsonObject;
  readonly tool: DeclaredTool;
  readonly adapter: Adapter;
  /** Identity of what is reached. */
  readonly upstream: string;
  readonly source: string;
  readonly defaults: DeclarationDefaults;
  readonly upstreamDigest: string;
  readonly schemaProblem: SchemaProblem;
  /** Names of the steps that have a key. */
  readonly stepKeys: readonly string[];
  /** Makes `Declaration.explained` of one of its tools, when somebody reads it. */
  explain(make: (place: OriginParts) => Declaration["explained"]): Declaration["explained"];
}

/** One entry of `tools.overrides`. */
export interface Override {
  /** A name or pattern. */
  readonly names: string;
  readonly keys: JsonObject;
  /** JSON pointer to it. */
  readonly pointer: string;
}
