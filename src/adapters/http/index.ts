import { lookup as systemLookup } from "node:dns";
import type { Adapter, ExplainedSetting } from "../../core/adapter.ts";
import { isJsonObject, type JsonValue, ownValue, stringifyJson } from "../../core/json.ts";
import type { ClientCredentials } from "../shared/access-tokens.ts";
import { type Route, routeTo } from "../shared/network/proxy.ts";
import { HTTP_CONFIG_SCHEMA } from "./config-schema.ts";
import { configureHttp } from "./configure.ts";
import { isCredentialName, maskFields, maskUrl } from "./credential-names.ts";
import type { HttpConfig, SecretAuth } from "./http-config.ts";
import { HttpUpstream } from "./http-upstream.ts";
import { holdsReference, isOneParam } from "./literal-credentials.ts";
import { type NetworkOptions, OriginPools } from "./origin-pools.ts";
import type { PoolLimits } from "./pool-limits.ts";
import { TokenPool } from "./token-pool.ts";

/** The adapter for tools behind HTTP/1.1 APIs. Default: the system's lookup, and no proxies. */
export function createHttpAdapter(options: Partial<NetworkOptions> = {}): Adapter<HttpConfig> {
  const { lookup = systemLookup, environment = {} } = options;
  const pools = new OriginPools({ lookup, environment });
  const tokens = new TokenPool({ lookup, environment });
  return {
    kind: "http",
    configSchema: HTTP_CONFIG_SCHEMA,
    configure: configureHttp,
    explain: (config) => [
      ...explainHttp(config),
      ...explainPool(config.pool),
      ...explainRoute(routeTo(config.endpoint.origin, environment)),
    ],
    open: (config, deps) => {
      const { egress, pool: limits } = config;
      const access = pools.open({ origin: config.endpoint.origin, egress, limits, clock: deps.clock });
      const { auth, settings } = config;
      const { connectMs } = settings.timeouts;
      const own = auth?.place === "token" ? tokens.open({ client: auth.client, egress, connectMs, deps }) : undefined;
      return Promise.resolve(new HttpUpstream(config, deps, access, own));
    },
  };
}

/** Tools behind HTTP/1.1 APIs. */
export const httpAdapter: Adapter<HttpConfig> = createHttpAdapter();

function explainPool(limits: PoolLimits): readonly ExplainedSetting[] {
  return [
    { key: "pool.max_connections", value: String(limits.maxConnections) },
    { key: "pool.max_waiting", value: String(limits.maxWaiting) },
    { key: "pool.max_idle", value: String(limits.maxIdle) },
  ];
}

/** The proxy, where there is one: without credentials. */
function explainRoute(route: Route): readonly ExplainedSetting[] {
  switch (route.kind) {
    case "direct":
      return route.exception === undefined ? [] : [{ key: "proxy", value: `none: ${route.exception}` }];
    case "proxied":
      return [{ key: "proxy", value: `${route.proxy.origin} (${route.proxy.variable})` }];
    case "misconfigured":
      return [{ key: "proxy", value: `${route.variable} holds no http or https URL` }];
  }
}

const MASK = "***";

/** Where arguments go that no template names, in words for people. */
const UNNAMED_ARGUMENTS = { query: "query", body: "JSON body", nowhere: "refused" } as const;

/** Values are shown as declared, but for those of headers: someone may have put a credential there. */
function explainHttp(config: HttpConfig): readonly ExplainedSetting[] {
  const { declared, auth } = config;
  const settings: ExplainedSetting[] = [
    { key: "method", value: config.method },
    { key: "endpoint", value: maskUrl(shown(ownValue(declared, "endpoint")), isOneParam) },
  ];
  for (const [name, value] of entriesOf(ownValue(declared, "query")))
    settings.push({ key: `query.${name}`, value: shownField(name, value) });
  for (const [name] of entriesOf(ownValue(declared, "headers"))) settings.push({ key: `headers.${name}`, value: MASK });
  for (const [name, value] of entriesOf(ownValue(declared, "form")))
    settings.push({ key: `form.${name}`, value: shownField(name, value) });
  for (const key of ["query_style", "content_type", "body", "request_body", "multipart"]) {
    const value = ownValue(declared, key);
    if (value !== undefined) settings.push({ key, value: shown(maskFields(value, holdsReference)) });
  }
  if (auth !== undefined) settings.push(...explainAuth(auth));
  for (const [name, value] of entriesOf(ownValue(declared, "signing")))
    settings.push({ key: `signing.${name}`, value: shown(value) });
  for (const key of ["deadline_header", "redirects", "allow_private"]) {
    const value = ownValue(declared, key);
    if (value !== undefined) settings.push({ key, value: shown(value) });
  }
  for (const [name, value] of entriesOf(ownValue(declared, "egress")))
    settings.push({ key: `egress.${name}`, value: shown(value) });
  settings.push({ key: "unnamed_arguments", value: UNNAMED_ARGUMENTS[config.rest] });
  return settings;
}

function explainAuth(auth: SecretAuth): readonly ExplainedSetting[] {
  if (auth.place === "token") return explainClient(auth.client);
  const byRole = Object.fromEntries(auth.byRole);
  const secrets = [
    { key: "auth.secret_ref", value: auth.secretRef },
    ...(auth.byRole.length === 0 ? [] : [{ key: "auth.by_role", value: stringifyJson(byRole) }]),
  ];
  if (auth.place === "query") return [{ key: "auth.query_name", value: auth.queryName }, ...secrets];
  const header = { key: "auth.header_name", value: auth.headerName };
  const prefix = auth.prefix === "" ? [] : [{ key: "auth.prefix", value: auth.prefix.trimEnd() }];
  return [header, ...secrets, ...prefix];
}

function explainClient(client: ClientCredentials): readonly ExplainedSetting[] {
  const { tokenUrl, clientId, secretRef, scopes, clientAuth, resource, audience } = client;
  const values = {
    token_url: maskUrl(tokenUrl),
    client_id: clientId,
    secret_ref: secretRef,
    ...(scopes.length === 0 ? {} : { scopes: stringifyJson(scopes) }),
    client_auth: clientAuth,
    ...(resource === undefined ? {} : { resource }),
    ...(audience === undefined ? {} : { audience }),
  };
  return Object.entries(values).map(([key, value]) => ({ key: `auth.client_credentials.${key}`, value }));
}

function shownField(name: string, value: JsonValue): string {
  const text = shown(value);
  return isCredentialName(name) && !isOneParam(text) ? MASK : text;
}

function entriesOf(map: JsonValue | undefined): [string, JsonValue][] {
  return isJsonObject(map) ? Object.entries(map) : [];
}

function shown(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : stringifyJson(value ?? null);
}
