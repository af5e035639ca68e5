import type { AdapterSettings } from "../../core/adapter.ts";
import type { JsonObject } from "../../core/json.ts";
import type { DeclaredTool } from "../../core/tool.ts";
import type { BodyTemplate } from "./body-template.ts";
import type { HttpMethod } from "./config-schema.ts";
import type { TextTemplate } from "./text-template.ts";
import type { Endpoint, QueryPair } from "./url-template.ts";

/** A header that takes arguments. */
export interface HeaderTemplate {
  /** As declared. */
  readonly name: string;
  readonly parts: TextTemplate;
}

/** Where the secret goes. */
export interface HeaderAuth {
  readonly headerName: string;
  readonly secretRef: string;
  /** Stands right before the secret; its space is in it. */
  readonly prefix: string;
}

/** Where arguments go that no template names. */
export type RestPlacement = "query" | "body" | "nowhere";

/** An HTTP tool, compiled: a call only fills it in. */
export interface HttpConfig {
  readonly tool: DeclaredTool;
  readonly settings: AdapterSettings;
  readonly method: HttpMethod;
  readonly endpoint: Endpoint;
  /** The `query` block. */
  readonly query: readonly QueryPair[];
  /** Names of all query parameters the declaration sets, decoded. */
  readonly queryNames: ReadonlySet<string>;
  /** Headers that every request has, name and value in turn. */
  readonly fixedHeaders: readonly string[];
  /** Headers that take arguments. */
  readonly headers: readonly HeaderTemplate[];
  /** The declaration sets the content type. */
  readonly hasContentType: boolean;
  readonly body: BodyTemplate | undefined;
  readonly auth: HeaderAuth | undefined;
  readonly rest: RestPlacement;
  /** Some declared parameter goes there. */
  readonly hasRest: boolean;
  /** Parameters that some template names. */
  readonly named: ReadonlySet<string>;
  /** Parameters whose schema allows null. */
  readonly keepsNull: ReadonlySet<string>;
  /** The call changes nothing, by its hints or by its method. */
  readonly readOnly: boolean;
  /** The keys as they were declared, for explanations. */
  readonly declared: JsonObject;
}
