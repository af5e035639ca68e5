import type { AdapterSettings } from "../../core/adapter.ts";
import type { JsonObject } from "../../core/json.ts";
import type { DeclaredTool } from "../../core/tool.ts";
import type { ClientCredentials } from "../shared/access-tokens.ts";
import type { NamedProgram } from "../shared/launcher/examine.ts";
import type { EgressChoice } from "../shared/network/egress.ts";
import { type SecretChoice, secretRefsOfChoice } from "../shared/secret-choice.ts";
import { type NamedValue, referencesIn } from "../shared/value-template.ts";
import type { PROTOCOLS, STARTS } from "./config-schema.ts";

/** A program of this machine. */
export interface ProgramTarget {
  readonly kind: "program";
  readonly command: string;
  readonly args: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  /** All of its environment. */
  readonly env: readonly NamedValue[];
}

/** How the gateway identifies itself to a remote server. */
export type ServerAuth =
  | ({ readonly kind: "bearer" } & SecretChoice)
  | ({ readonly kind: "client_credentials" } & ServerCredentials)
  | ({ readonly kind: "oauth" } & DeclaredLogin);

/** How somebody logs in at a server. */
export interface DeclaredLogin {
  /** The gateway's name, where it was registered by hand. Absent: its metadata document, or it registers itself. */
  readonly clientId: string | undefined;
  /** Reference of the client's secret or private key. Absent: it has none. */
  readonly secretRef: string | undefined;
  /** Absent: what the metadata say, else `basic` with a secret and `none` without. */
  readonly clientAuth: ClientCredentials["clientAuth"] | undefined;
  /** Address of the client's metadata, which is its name where that is taken. */
  readonly metadataUrl: string | undefined;
  /** Who has to give the tokens. Absent: whom the server names. */
  readonly issuer: string | undefined;
  /** Empty: those that the server names. */
  readonly scopes: readonly string[];
  /** Absent: what the server calls itself. */
  readonly resource: string | undefined;
  /** Port of this machine that browsers are sent back to. Absent: any that is free. */
  readonly redirectPort: number | undefined;
}

/** A client that identifies itself to who gives a server's tokens. */
export interface ServerCredentials extends Pick<ClientCredentials, "clientId" | "secretRef"> {
  /** Absent: found out by the server's metadata. */
  readonly tokenUrl: string | undefined;
  /** Who has to give the tokens. Absent: whoever has `tokenUrl`, or whom the server names. */
  readonly issuer: string | undefined;
  /** Empty: those that the server names. */
  readonly scopes: readonly string[];
  /** Absent: what the metadata say, else `basic`. */
  readonly clientAuth: ClientCredentials["clientAuth"] | undefined;
  readonly resource: string;
}

/** A server that is reached over HTTP. */
export interface RemoteTarget {
  readonly kind: "remote";
  readonly url: string;
  readonly headers: readonly NamedValue[];
  readonly auth: ServerAuth | undefined;
  /** Where connections may lead, those for tokens too. */
  readonly egress: EgressChoice;
  readonly transport: "auto" | "streamable_http" | "sse";
}

/** Where a server is. */
export type ServerTarget = ProgramTarget | RemoteTarget;

/** What follows a start that failed. */
export interface RestartRules {
  readonly firstMs: number;
  readonly maxMs: number;
  readonly attempts: number;
}

/** An MCP server, as declared. */
export interface McpConfig {
  readonly tool: DeclaredTool;
  readonly settings: AdapterSettings;
  readonly target: ServerTarget;
  readonly protocol: (typeof PROTOCOLS)[number];
  readonly start: (typeof STARTS)[number];
  readonly startTimeoutMs: number;
  /** Absent: never stopped for being idle. */
  readonly idleTimeoutMs: number | undefined;
  readonly restart: RestartRules;
  /** The block `mcp` as it was declared, for explanations. */
  readonly declared: JsonObject;
}

/** What is started, to look whether it can be. */
export function namedProgram({ command, cwd, env }: ProgramTarget): NamedProgram {
  const path = env.find(({ name }) => name === "PATH")?.value ?? [];
  return { command, cwd, path: path.filter((part) => typeof part === "string").join("") };
}

/** The secrets a server needs, by reference, whoever calls. */
export function secretRefsOf({ target }: McpConfig): readonly string[] {
  if (target.kind === "program") return referencesIn(target.env);
  const ofRoles = target.auth?.kind === "bearer" ? secretRefsOfChoice(target.auth) : [];
  return [...new Set([...remoteSecretRefs(target), ...ofRoles])];
}

/** The secrets that requests to a remote server need, those of callers with a credential of their own left out. */
export function remoteSecretRefs({ headers, auth }: RemoteTarget): readonly string[] {
  return [...new Set([...referencesIn(headers), ...(auth?.secretRef === undefined ? [] : [auth.secretRef])])];
}
