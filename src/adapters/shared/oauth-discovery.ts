import { isJsonArray, type JsonObject, ownValue } from "../../core/json.ts";
import { hostKind, isLoopback } from "./network/addresses.ts";
import type { HttpChannel } from "./network/http-channel.ts";
import { socketTarget } from "./network/socket.ts";
import { objectOf } from "./token-endpoint.ts";

/** What a server says of the token it wants. Source: RFC 6750, section 3; RFC 9728, section 5.1. */
export interface BearerChallenge {
  readonly error: string | undefined;
  /** Scopes, by spaces. */
  readonly scope: string | undefined;
  /** Where the metadata of the server stand. */
  readonly resourceMetadata: string | undefined;
}

/** Who gives tokens for a server. */
export interface AuthorizationServer {
  readonly issuer: string;
  readonly tokenUrl: URL;
  /** How clients may identify themselves; empty: not said. */
  readonly authMethods: readonly string[];
  /** What the server says that there is to be had; empty: not said. */
  readonly scopes: readonly string[];
  /** What the server says that tokens for it are for, letter by letter. */
  readonly resource: string;
  /** All that the authorization server says of itself. */
  readonly metadata: JsonObject;
}

/** What is looked for, and how. */
export interface DiscoveryOptions {
  /** Address of the server. */
  readonly server: URL;
  /** Who has to be the issuer; absent: the server says. */
  readonly issuer: string | undefined;
  readonly challenge: BearerChallenge;
  /** Whoever gives the tokens has to be reached by https, or on this machine. Default false. */
  readonly secure?: boolean;
  /** Opens connections to an origin. */
  open(origin: string): HttpChannel;
  readonly signal: AbortSignal;
}

/** Nobody can be told to be asked for tokens. The message is one line, without a secret. */
export class DiscoveryProblem extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DiscoveryProblem";
  }
}

/** Most authorization servers of one server that are looked at. */
const MAX_ISSUERS = 10;

/**
 * Finds out who gives tokens for a server: by its own metadata (RFC 9728), then by those of its authorization server
 * (RFC 8414). What either says counts only where it is about the address it was asked for: else a server could have a
 * secret sent to whom it likes.
 *
 * @throws DiscoveryProblem; as the channel does.
 */
export async function discoverAuthorization(options: DiscoveryOptions): Promise<AuthorizationServer> {
  const resource = await resourceMetadata(options);
  const named = texts(resource, "authorization_servers").slice(0, MAX_ISSUERS);
  const issuer = options.issuer ?? named[0];
  if (issuer === undefined) throw new DiscoveryProblem("the server's metadata name no authorization server");
  if (!named.some((each) => isSameIssuer(each, issuer))) {
    throw new DiscoveryProblem(`the server's metadata do not name the issuer ${issuer}`);
  }
  const metadata = await issuerMetadata(issuer, options);
  const tokenUrl = addressIn(metadata, "token_endpoint");
  if (tokenUrl === undefined) throw new DiscoveryProblem(`the metadata of ${issuer} have no token_endpoint`);
  checkReach(tokenUrl, options);
  if (issuer.startsWith("https:") && tokenUrl.protocol !== "https:") {
    throw new DiscoveryProblem(`the token_endpoint of ${issuer} is not https`);
  }
  return {
    issuer,
    tokenUrl,
    authMethods: texts(metadata, "token_endpoint_auth_methods_supported"),
    scopes: texts(resource, "scopes_supported"),
    resource: textIn(resource, "resource"),
    metadata,
  };
}

/** Reads the challenge of a header `WWW-Authenticate`; of another scheme than Bearer it is empty. */
export function bearerChallenge(header: string | undefined): BearerChallenge {
  const rest = /(?:^|,)\s*bearer\s+(.*)$/is.exec(header ?? "")?.[1] ?? "";
  const fields = new Map<string, string>();
  for (const [, name = "", quoted, bare] of rest.matchAll(/([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g)) {
    const key = name.toLowerCase();
    if (!fields.has(key)) fields.set(key, quoted?.replaceAll(/\\(.)/g, "$1") ?? bare ?? "");
  }
  return { error: fields.get("error"), scope: fields.get("scope"), resourceMetadata: fields.get("resource_metadata") };
}

async function resourceMetadata(options: DiscoveryOptions): Promise<JsonObject> {
  const { server, challenge } = options;
  const { origin, pathname } = server;
  const path = pathname === "/" ? "" : pathname;
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`;
  const said = challenge.resourceMetadata;
  const places = said === undefined ? [`${wellKnown}${path}`, ...(path === "" ? [] : [wellKnown])] : [said];
  const metadata = await firstOf(places, options);
  if (metadata === undefined) throw new DiscoveryProblem("the server has no metadata that say who gives its tokens");
  const resource = addressIn(metadata, "resource");
  if (resource === undefined || !covers(resource, server)) {
    throw new DiscoveryProblem("the server's metadata are about another resource than `url`");
  }
  return metadata;
}

async function issuerMetadata(issuer: string, options: DiscoveryOptions): Promise<JsonObject> {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "") {
    throw new DiscoveryProblem("the server's metadata name an issuer that is no address");
  }
  if (options.secure === true) checkSecure(url, `the issuer ${url.href}`);
  const path = url.pathname.replace(/\/+$/, "");
  const places = [
    `${url.origin}/.well-known/oauth-authorization-server${path}`,
    `${url.origin}/.well-known/openid-configuration${path}`,
    ...(path === "" ? [] : [`${url.origin}${path}/.well-known/openid-configuration`]),
  ];
  const metadata = await firstOf(places, options);
  if (metadata === undefined) throw new DiscoveryProblem(`${url.origin} has no metadata of an authorization server`);
  const own = ownValue(metadata, "issuer");
  if (typeof own !== "string" || !isSameIssuer(own, issuer)) {
    throw new DiscoveryProblem(`the metadata of ${url.origin} are those of another issuer`);
  }
  return metadata;
}

/** The first of the places that has a JSON object. */
async function firstOf(places: readonly string[], options: DiscoveryOptions): Promise<JsonObject | undefined> {
  for (const place of places) {
    const url = URL.canParse(place) ? new URL(place) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol)) continue;
    checkReach(url, options);
    await using channel = options.open(url.origin);
    const target = url.pathname + url.search;
    const headers = { accept: "application/json" };
    const answer = await channel.send({ method: "GET", target, headers, signal: options.signal });
    const text = await answer.text();
    const metadata = answer.status === 200 ? objectOf(text) : undefined;
    if (metadata !== undefined) return metadata;
  }
  return undefined;
}

/**
 * An address of the inside is reached only where the declaration names its host: a server must not choose one.
 *
 * @throws DiscoveryProblem.
 */
export function checkReach(url: URL, { server, issuer }: Pick<DiscoveryOptions, "server" | "issuer">): void {
  const { host } = socketTarget(url.origin);
  const kind = hostKind(host);
  if (kind !== "private" && kind !== "loopback") return;
  const declared = [server.origin, ...(issuer !== undefined && URL.canParse(issuer) ? [new URL(issuer).origin] : [])];
  if (declared.some((origin) => socketTarget(origin).host === host)) return;
  throw new DiscoveryProblem(`the server's metadata lead to \`${host}\`, which the declaration does not name`);
}

/** What codes and tokens go to is https, or on this machine. @throws DiscoveryProblem. */
export function checkSecure(url: URL, what: string): void {
  if (url.protocol === "https:" || isLoopback(socketTarget(url.origin).host)) return;
  throw new DiscoveryProblem(`${what} is not https`);
}

/** Whether what is said of a resource is said of the server: the same origin, and its path or one above. Source: MCP, RFC 8707. */
function covers(resource: URL, server: URL): boolean {
  const above = resource.pathname.endsWith("/") ? resource.pathname : `${resource.pathname}/`;
  return resource.origin === server.origin && `${server.pathname}/`.startsWith(above);
}

/** An issuer is compared as it is written, but for a slash after a host. */
function isSameIssuer(a: string, b: string): boolean {
  return withoutSlash(a) === withoutSlash(b);
}

function withoutSlash(issuer: string): string {
  return /^https?:\/\/[^/]+\/$/.test(issuer) ? issuer.slice(0, -1) : issuer;
}

/** The http or https address of a key; undefined where it is none. */
export function addressIn(metadata: JsonObject, key: string): URL | undefined {
  const value = ownValue(metadata, key);
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) ? url : undefined;
}

/** The text of a key; empty where it is none. */
export function textIn(metadata: JsonObject, key: string): string {
  const value = ownValue(metadata, key);
  return typeof value === "string" ? value : "";
}

/** The texts of a list; empty where there is none. */
export function texts(metadata: JsonObject, key: string): readonly string[] {
  const list = ownValue(metadata, key);
  return isJsonArray(list) ? list.filter((each) => typeof each === "string") : [];
}
