import { ownValue, stringifyJson } from "../../core/json.ts";
import type { ClientAuth, LoginClient } from "../../core/logins.ts";
import { VERSION } from "../../core/version.ts";
import type { HttpChannel } from "../shared/network/http-channel.ts";
import { DiscoveryProblem } from "../shared/oauth-discovery.ts";
import { objectOf } from "../shared/token-endpoint.ts";
import type { LoginServer } from "./login-server.ts";
import type { DeclaredLogin } from "./mcp-config.ts";

/** Words of RFC 7591 for how a client shows its secret. */
const METHODS = new Map<string, ClientAuth>([
  ["none", "none"],
  ["client_secret_basic", "basic"],
  ["client_secret_post", "post"],
]);

/** What a client is found or made with. */
export interface ClientRequestOptions {
  readonly auth: DeclaredLogin;
  readonly found: LoginServer;
  /** The one of an earlier login at the same authorization server. */
  readonly before: LoginClient | undefined;
  readonly redirectUri: string;
  readonly scopes: readonly string[];
  /** Opens connections to an origin. */
  open(origin: string): HttpChannel;
  readonly signal: AbortSignal;
}

/**
 * What the gateway is to an authorization server: the client that the declaration names, else its metadata document where
 * such is taken, else one that it registers.
 *
 * @throws DiscoveryProblem; as the channel does.
 */
export function clientFor(options: ClientRequestOptions): Promise<LoginClient> {
  const { auth, found, before, redirectUri } = options;
  const { clientId, secretRef, clientAuth, metadataUrl } = auth;
  if (clientId !== undefined) {
    const shown = clientAuth ?? (isPostAlone(found.authMethods) ? "post" : "basic");
    const client = { clientId, auth: secretRef === undefined ? "none" : shown, redirectUri } as const;
    return Promise.resolve({ ...client, origin: "declared" });
  }
  if (metadataUrl !== undefined && found.takesDocuments) {
    return Promise.resolve({ clientId: metadataUrl, auth: "none", origin: "document", redirectUri });
  }
  if (before?.origin === "registered" && before.redirectUri === redirectUri) return Promise.resolve(before);
  return register(options);
}

/** Source: RFC 8414, section 2, `token_endpoint_auth_methods_supported`. */
export function isPostAlone(methods: readonly string[]): boolean {
  return methods.includes("client_secret_post") && !methods.includes("client_secret_basic");
}

/** Source: RFC 7591, sections 2 and 3. */
async function register({ found, redirectUri, scopes, open, signal }: ClientRequestOptions): Promise<LoginClient> {
  const { registrationUrl, authMethods, issuer } = found;
  if (registrationUrl === undefined) {
    throw new DiscoveryProblem(
      `${new URL(issuer).href} takes no clients that register themselves: register one by hand, with the redirect URI http://127.0.0.1/callback, and declare its \`client_id\``,
    );
  }
  const method = methodOf(authMethods);
  await using channel = open(registrationUrl.origin);
  const answer = await channel.send({
    method: "POST",
    target: registrationUrl.pathname + registrationUrl.search,
    headers: { accept: "application/json", "content-type": "application/json" },
    body: stringifyJson({
      client_name: "Toolgate",
      software_id: "toolgate",
      software_version: VERSION,
      application_type: "native",
      redirect_uris: [redirectUri],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: method,
      ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
    }),
    signal,
  });
  const client = readRegistration(answer.status, await answer.text(), method);
  if (client === undefined) {
    throw new DiscoveryProblem(
      `${registrationUrl.origin} answered the registration of the gateway with HTTP ${answer.status} and no client`,
    );
  }
  return { ...client, origin: "registered", redirectUri };
}

/** A program of a person's machine keeps no secret from that person; where one has to have one, it gets one. */
function methodOf(supported: readonly string[]): string {
  if (supported.length === 0 || supported.includes("none")) return "none";
  return ["client_secret_basic", "client_secret_post"].find((each) => supported.includes(each)) ?? "none";
}

function readRegistration(
  status: number,
  text: string,
  asked: string,
): Omit<LoginClient, "origin" | "redirectUri"> | undefined {
  const body = status === 201 || status === 200 ? objectOf(text) : undefined;
  if (body === undefined) return undefined;
  const word = (key: string): string | undefined => {
    const value = ownValue(body, key);
    return typeof value === "string" && /^[\x20-\x7e]{1,4096}$/.test(value) ? value : undefined;
  };
  const clientId = word("client_id");
  const secret = word("client_secret");
  const method = METHODS.get(word("token_endpoint_auth_method") ?? asked);
  if (clientId === undefined || method === undefined) return undefined;
  if (method === "none" || secret === undefined) return { clientId, auth: "none" };
  const end = ownValue(body, "client_secret_expires_at");
  const secretEndMs = typeof end === "number" && end > 0 ? end * 1_000 : undefined;
  return { clientId, auth: method, secret, secretEndMs };
}
