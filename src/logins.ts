import { configureMcp } from "./adapters/mcp/configure.ts";
import { revoke } from "./adapters/mcp/end-login.ts";
import { type LoginPerson, logIn, loginNetwork } from "./adapters/mcp/login.ts";
import type { McpConfig } from "./adapters/mcp/mcp-config.ts";
import { createRunHelper } from "./adapters/shared/launcher/run-helper.ts";
import type { GatewayConfig } from "./config/gateway-config.ts";
import { ownObject } from "./config/own-values.ts";
import type { AdapterSettings } from "./core/adapter.ts";
import { systemClock } from "./core/clock.ts";
import { parseDuration } from "./core/durations.ts";
import { GatewayError } from "./core/errors.ts";
import { ownValue } from "./core/json.ts";
import { silentLogger } from "./core/logger.ts";
import type { ServerLogin } from "./core/logins.ts";
import { findServer } from "./registry/find-server.ts";
import { createSecrets } from "./secrets/secrets.ts";
import { createFileLogins, loginsPlace } from "./stores/file-logins.ts";

/** Connections of a login where gateway.yaml sets no other limit. */
const CONNECT_MS = 5_000;

/** What of a login may be told. */
export interface LoginFacts {
  readonly server: string;
  readonly issuer: string;
  readonly resource: string;
  readonly scopes: readonly string[];
  /** When the access token ends; milliseconds since the epoch. */
  readonly accessEndMs: number | undefined;
  /** Whether the gateway can go on without anybody logging in again. */
  readonly renewable: boolean;
}

/** What came of a logout. */
export interface LogoutFacts {
  readonly issuer: string;
  /** Whether the authorization server took its tokens back. */
  readonly revoked: boolean;
}

/** Logs in at the MCP servers of a gateway, and out. Disposing closes what was opened for it. */
export interface Logins extends AsyncDisposable {
  /** @throws GatewayError; the signal's reason. */
  login(server: string, person: LoginPerson, signal: AbortSignal): Promise<LoginFacts>;
  /** Forgets a login; undefined: there was none. @throws GatewayError; the signal's reason. */
  logout(server: string, signal: AbortSignal): Promise<LogoutFacts | undefined>;
}

/** What logins are made with. */
export interface LoginsOptions {
  readonly config: GatewayConfig;
  /** The one that the gateway has. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Puts on record what was done. Must not fail. */
  note?(act: { readonly action: string; readonly facts: object }): Promise<void>;
}

/**
 * The logins of a gateway, for who administers them: beside the gateway, which takes over what changes. The composition
 * root of `toolgate login`.
 *
 * @throws GatewayError where a place of secrets cannot be used.
 */
export async function openLogins({ config, environment, note }: LoginsOptions): Promise<Logins> {
  const secrets = createSecrets(environment);
  const run = createRunHelper({ environment, cwd: "/" });
  if (config.secrets !== undefined) {
    await secrets.take(config.secrets, { clock: systemClock, logger: silentLogger, run });
  }
  const base = { clock: systemClock, secrets: secrets.source };
  const logins = createFileLogins({ ...loginsPlace(config.state), ...base });
  const means = { ...base, network: loginNetwork(environment), logins };
  return {
    async login(server, person, signal) {
      const declared = await declaredServer(server, config, environment);
      if (declared === undefined) throw notDeclared(server, config);
      const login = await logIn(declared, person, means, signal);
      await note?.({ action: "server-login", facts: { server, issuer: login.issuer, scopes: login.scopes } });
      return factsOf(login);
    },
    async logout(server, signal) {
      // A login may be left of a server that is not declared any more.
      const declared = await declaredServer(server, config, environment).catch(() => undefined);
      const login = await logins.remove(server);
      if (login === undefined) return undefined;
      const revoked = declared === undefined ? false : await revoke(login, declared, means, signal);
      await note?.({ action: "server-logout", facts: { server, issuer: login.issuer, revoked } });
      return { issuer: login.issuer, revoked };
    },
    [Symbol.asyncDispose]: () => secrets[Symbol.asyncDispose](),
  };
}

/** The declaration as the adapter reads it. @throws GatewayError DECLARATION_INVALID. */
async function declaredServer(
  name: string,
  { tools, defaults, egress }: GatewayConfig,
  environment: LoginsOptions["environment"],
): Promise<McpConfig | undefined> {
  const found = await findServer(tools, name);
  if (found === undefined) return undefined;
  const declared = ownValue(ownObject(found.keys, "timeout") ?? {}, "connect");
  const declaredMs = typeof declared === "string" ? parseDuration(declared) : undefined;
  const settings: AdapterSettings = {
    timeouts: { connectMs: declaredMs ?? defaults.timeout.connectMs ?? CONNECT_MS, readMs: 0, idleMs: 0 },
    maxResponseBytes: 0,
    format: "auto",
    pool: {},
    reach: "all",
    ...(egress === undefined ? {} : { egress }),
  };
  const tool = { name, title: "", description: "", kind: "mcp", inputSchema: {}, outputSchema: undefined } as const;
  const more = { hints: {}, labels: {}, delivery: "conclusive", enabled: true } as const;
  const outcome = configureMcp(found.keys, { ...tool, ...more }, settings, { environment, folder: tools.folder });
  if (outcome.ok) return outcome.config;
  const [problem] = outcome.issues;
  const text = `${found.file} is refused: ${problem?.pointer ?? ""} ${problem?.message ?? ""}`;
  throw new GatewayError("DECLARATION_INVALID", text);
}

function notDeclared(server: string, { tools }: GatewayConfig): GatewayError {
  return new GatewayError("TOOL_NOT_FOUND", `no file of ${tools.folder} declares an MCP server "${server}"`);
}

function factsOf({ server, issuer, resource, scopes, accessEndMs, refreshToken }: ServerLogin): LoginFacts {
  return { server, issuer, resource, scopes, accessEndMs, renewable: refreshToken !== undefined };
}
