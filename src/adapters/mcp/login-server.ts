import { ownValue } from "../../core/json.ts";
import {
  addressIn,
  checkReach,
  checkSecure,
  type DiscoveryOptions,
  DiscoveryProblem,
  discoverAuthorization,
  textIn,
  texts,
} from "../shared/oauth-discovery.ts";

/** Where somebody logs in, and how. */
export interface LoginServer {
  /** Letter by letter as it says itself. */
  readonly issuer: string;
  readonly authorizationUrl: URL;
  readonly tokenUrl: URL;
  readonly registrationUrl: URL | undefined;
  readonly revocationUrl: URL | undefined;
  /** How clients may identify themselves; empty: not said. */
  readonly authMethods: readonly string[];
  /** What the MCP server says that there is to be had; empty: not said. */
  readonly scopes: readonly string[];
  /** Whether it gives tokens that last for `offline_access`. */
  readonly offersOffline: boolean;
  /** Whether it says in each redirect who it is (RFC 9207). */
  readonly namesItself: boolean;
  /** Whether a client may be named by the address of its metadata. */
  readonly takesDocuments: boolean;
  /** What tokens for the MCP server are for. */
  readonly resource: string;
}

/**
 * Finds out where somebody logs in for a server. Whatever is named has to be https, or on this machine, since codes and
 * tokens go there.
 *
 * @throws DiscoveryProblem; as the channel does.
 */
export async function findLoginServer(options: DiscoveryOptions): Promise<LoginServer> {
  const found = await discoverAuthorization({ ...options, secure: true });
  const { metadata } = found;
  const issuer = textIn(metadata, "issuer");
  const shown = new URL(issuer).href;
  const checked = (key: string): URL | undefined => {
    const url = addressIn(metadata, key);
    if (url === undefined) return undefined;
    checkReach(url, options);
    checkSecure(url, `the ${key} of ${shown}`);
    return url;
  };
  const authorizationUrl = checked("authorization_endpoint");
  const tokenUrl = checked("token_endpoint");
  if (authorizationUrl === undefined || tokenUrl === undefined) {
    throw new DiscoveryProblem(`the metadata of ${shown} have no authorization_endpoint`);
  }
  // Source: MCP 2025-11-25, authorization: whoever does not say that it takes S256 is not to be used.
  if (!texts(metadata, "code_challenge_methods_supported").includes("S256")) {
    throw new DiscoveryProblem(`${shown} does not say that it takes PKCE with S256, without which codes can be stolen`);
  }
  return {
    issuer,
    authorizationUrl,
    tokenUrl,
    registrationUrl: checked("registration_endpoint"),
    revocationUrl: checked("revocation_endpoint"),
    authMethods: found.authMethods,
    scopes: found.scopes,
    offersOffline: texts(metadata, "scopes_supported").includes("offline_access"),
    namesItself: ownValue(metadata, "authorization_response_iss_parameter_supported") === true,
    takesDocuments: ownValue(metadata, "client_id_metadata_document_supported") === true,
    resource: found.resource,
  };
}
