import type { AdapterSettings } from "../../core/adapter.ts";
import type { JsonObject } from "../../core/json.ts";
import type { DeclaredTool } from "../../core/tool.ts";
import type { ClientCredentials } from "../shared/access-tokens.ts";
import type { BodyTemplate } from "../shared/body-template.ts";
import type { EgressChoice } from "../shared/network/egress.ts";
import type { SecretChoice } from "../shared/secret-choice.ts";
import type { TextTemplate } from "../shared/text-template.ts";
import type { HttpMethod, QueryStyle } from "./config-schema.ts";
import type { MultipartPart } from "./multipart-body.ts";
import type { PoolLimits } from "./pool-limits.ts";
import type { Endpoint, QueryPair } from "./url-template.ts";

/** A header that takes arguments. */
export interface HeaderTemplate {
  /** As declared. */
  readonly name: string;
  readonly parts: TextTemplate;
}

/** Where the secret goes. */
export type SecretAuth = SecretChoice &
  (
    | {
        readonly place: "header";
        readonly headerName: string;
        /** Stands right before the secret; its space is in it. */
        readonly prefix: string;
      }
    | { readonly place: "query"; readonly queryName: string }
    /** Into the request to `token_url`; what that gives goes into `Authorization`. */
    | { readonly place: "token"; readonly client: ClientCredentials }
  );

/** Names that stand in a signing template instead of parameters. */
export const SIGNED_NAMES = ["method", "path", "query", "body", "timestamp", "nonce", "key_id"] as const;

/** How requests are signed. */
export interface RequestSigning {
  /** As node:crypto names it. */
  readonly hash: "sha256" | "sha512";
  readonly secretRef: string;
  readonly headerName: string;
  /** Stands right before the signature; its space is in it. Its references are {@link SIGNED_NAMES}. */
  readonly prefix: TextTemplate;
  readonly encoding: "hex" | "base64";
  /** What is signed. Its references are {@link SIGNED_NAMES}. */
  readonly content: TextTemplate;
  readonly timestampHeader: string | undefined;
  readonly timestampFormat: "unix" | "unix_ms" | "iso8601";
  readonly nonceHeader: string | undefined;
  readonly keyId: string;
}

/** A body the declaration spells out. */
export type RequestBody =
  | { readonly kind: "json"; readonly template: BodyTemplate }
  | { readonly kind: "form"; readonly pairs: readonly QueryPair[] }
  | { readonly kind: "multipart"; readonly parts: readonly MultipartPart[] }
  /** `markup`: arguments are escaped as XML and HTML have it. */
  | { readonly kind: "text"; readonly parts: TextTemplate; readonly markup: boolean };

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
  /** Parameters that path and query name. */
  readonly inUrl: readonly string[];
  /** How lists are written in query and form. */
  readonly queryStyle: QueryStyle;
  /** Names of all query parameters the declaration sets, decoded. */
  readonly queryNames: ReadonlySet<string>;
  /** Headers that every request has, name and value in turn. */
  readonly fixedHeaders: readonly string[];
  /** Headers that take arguments. */
  readonly headers: readonly HeaderTemplate[];
  /** Some entry of `headers` sets the content type. */
  readonly hasContentType: boolean;
  readonly body: RequestBody | undefined;
  /** Of a body, where no entry of `headers` sets it. */
  readonly contentType: string;
  readonly auth: SecretAuth | undefined;
  readonly signing: RequestSigning | undefined;
  /** Header that takes the milliseconds that are left of the call. */
  readonly deadlineHeader: string | undefined;
  /** `same_origin`: a call that changes nothing follows redirects within its origin. */
  readonly redirects: "none" | "same_origin";
  /** Where connections may lead. */
  readonly egress: EgressChoice;
  /** Limits of the connections to the origin. */
  readonly pool: PoolLimits;
  readonly rest: RestPlacement;
  /** Some declared parameter goes there. */
  readonly hasRest: boolean;
  /** Parameters that some template names. */
  readonly named: ReadonlySet<string>;
  /** Parameters whose schema allows null. */
  readonly keepsNull: ReadonlySet<string>;
  /** The call changes nothing, by its hints or by its method. */
  readonly readOnly: boolean;
  /** Credentials that the declaration spells out; masked where a request is shown. */
  readonly literals: readonly string[];
  /** The keys as they were declared, for explanations. */
  readonly declared: JsonObject;
}
