import type { AdapterSettings, PrivateReach } from "../../core/adapter.ts";
import { readEgress } from "../../core/egress.ts";
import { isJsonArray, isJsonObject, type JsonObject, jsonPointer, ownValue } from "../../core/json.ts";
import { headerProblem } from "../shared/header-rules.ts";
import { hostKind, isFixedHost } from "../shared/network/addresses.ts";
import { socketTarget } from "../shared/network/socket.ts";
import { secretChoice } from "../shared/secret-choice.ts";
import { type NamedValue, namedValues } from "../shared/value-template.ts";
import { CLIENT_AUTHS } from "./config-schema.ts";
import type { McpChecker } from "./mcp-checker.ts";
import type { RemoteTarget, ServerAuth, ServerCredentials } from "./mcp-config.ts";

/** Headers that the protocol sets. */
const OF_PROTOCOL = /^(accept|accept-encoding|content-type|mcp-.*|last-event-id)$/i;

/** Reads how a remote server is reached. */
export function configureRemote(checker: McpChecker, url: string, settings: AdapterSettings): RemoteTarget {
  const { reach } = settings;
  const parsed = checkedUrl(checker, url, "/url");
  const allowPrivate = ownValue(checker.block, "allow_private") === true;
  if (parsed !== undefined) checkReach(checker, parsed, "/url", { reach, allowPrivate });
  const headers = headersOf(checker);
  const auth = authOf(checker, parsed?.href ?? url, headers);
  if (auth?.kind === "client_credentials") checkTrust(checker, auth, { reach, allowPrivate });
  if (auth?.kind === "oauth") checkIssuer(checker, auth.issuer, { reach, allowPrivate });
  const transport = checker.text("transport");
  return {
    kind: "remote",
    url: parsed?.href ?? url,
    headers,
    auth,
    egress: {
      allowPrivate,
      gateway: settings.egress,
      own: readEgress(ownValue(checker.block, "egress"), (list, i, message) =>
        checker.issue(`/egress/${list}/${i}`, message),
      ),
      ownOpens: reach === "all",
    },
    transport: transport === "streamable_http" || transport === "sse" ? transport : "auto",
  };
}

function headersOf(checker: McpChecker): readonly NamedValue[] {
  const headers = namedValues(checker, "headers");
  for (const { name, value } of headers) {
    const text = value.filter((part) => typeof part === "string").join("");
    const problem = OF_PROTOCOL.test(name)
      ? "is set by the protocol and cannot be declared"
      : headerProblem(name, text);
    if (problem !== undefined) checker.issue(jsonPointer(["headers", name]), problem);
  }
  return headers;
}

function checkedUrl(checker: McpChecker, text: string, pointer: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    checker.issue(pointer, "is no http or https URL");
    return undefined;
  }
  if (url.username !== "" || url.password !== "") {
    checker.issue(pointer, "holds a name or password; put it into `headers` or `auth` by `secret_ref`");
  }
  if (url.hash !== "") checker.issue(pointer, "has a fragment (`#…`), which is never sent; remove it");
  if (/[{}]|%7B/i.test(text)) checker.issue(pointer, "is fixed text: nothing is filled in here");
  return url;
}

/** Who registers over the wire must not open a door to the inside that no operator opened. */
function checkReach(
  checker: McpChecker,
  url: URL,
  pointer: string,
  { reach, allowPrivate }: { readonly reach: PrivateReach; readonly allowPrivate: boolean },
): void {
  const { host } = socketTarget(url.origin);
  if (allowPrivate && pointer === "/url" && isFixedHost(host)) {
    checker.warn("/allow_private", `has no effect: \`${host}\` is reached as it is written, only names are checked`);
  }
  if (reach === "all") return;
  const mend = "declare it in a file, or set `registration.private_addresses` in gateway.yaml";
  const kind = hostKind(host);
  if (kind === "private" || (kind === "loopback" && reach === "none")) {
    checker.issue(
      pointer,
      `\`${host}\` is no public address, and a server registered over the wire may not be there; ${mend}`,
    );
  }
  if (kind === "name" && allowPrivate) {
    checker.issue("/allow_private", `is not for servers registered over the wire; ${mend}`);
  }
}

function authOf(checker: McpChecker, url: string, headers: readonly NamedValue[]): ServerAuth | undefined {
  if (!checker.has("auth")) return undefined;
  if (headers.some(({ name }) => name.toLowerCase() === "authorization")) {
    checker.issue("/auth", "`headers` set Authorization already; give one of them");
  }
  const auth = checker.object("auth");
  const bearer = ownValue(auth, "bearer");
  const client = ownValue(auth, "client_credentials");
  const login = ownValue(auth, "oauth");
  if ([bearer, client, login].filter((way) => way !== undefined).length !== 1) {
    checker.issue("/auth", "takes one of `bearer`, `client_credentials` and `oauth`");
  }
  if (login !== undefined && isJsonObject(login)) return declaredLogin(checker, login);
  if (client !== undefined && isJsonObject(client)) return clientCredentials(client, url);
  return { kind: "bearer", ...secretChoice(bearer !== undefined && isJsonObject(bearer) ? bearer : {}) };
}

function declaredLogin(checker: McpChecker, keys: JsonObject): ServerAuth {
  const text = (key: string): string | undefined => textOf(keys, key) || undefined;
  const [clientId, secretRef, metadataUrl] = [text("client_id"), text("secret_ref"), text("client_metadata_url")];
  const port = ownValue(keys, "redirect_port");
  const issue = (key: string, message: string): void => checker.issue(`/auth/oauth/${key}`, message);
  if (clientId === undefined && secretRef !== undefined)
    issue("secret_ref", "is the secret of a `client_id`; give both");
  if (secretRef === undefined && Object.hasOwn(keys, "client_auth")) {
    issue("client_auth", "says how a secret is shown; give `secret_ref`, too");
  }
  if (clientId !== undefined && metadataUrl !== undefined) {
    issue("client_metadata_url", "is a name, as `client_id` is; give one of them");
  }
  const document =
    metadataUrl === undefined ? undefined : checkedUrl(checker, metadataUrl, "/auth/oauth/client_metadata_url");
  if (document !== undefined && (document.protocol !== "https:" || document.pathname === "/")) {
    issue("client_metadata_url", "has to be https, with a path");
  }
  return {
    kind: "oauth",
    clientId,
    secretRef,
    metadataUrl,
    clientAuth: CLIENT_AUTHS.find((word) => word === text("client_auth")),
    issuer: text("issuer"),
    scopes: scopesOf(keys),
    resource: text("resource"),
    redirectPort: typeof port === "number" ? port : undefined,
  };
}

function scopesOf(keys: JsonObject): readonly string[] {
  const scopes = ownValue(keys, "scopes");
  return isJsonArray(scopes) ? scopes.filter((each) => typeof each === "string") : [];
}

function clientCredentials(keys: JsonObject, url: string): ServerAuth {
  return {
    kind: "client_credentials",
    tokenUrl: textOf(keys, "token_url") || undefined,
    issuer: textOf(keys, "issuer") || undefined,
    clientId: textOf(keys, "client_id"),
    secretRef: textOf(keys, "secret_ref"),
    scopes: scopesOf(keys),
    clientAuth: CLIENT_AUTHS.find((word) => word === textOf(keys, "client_auth")),
    resource: textOf(keys, "resource") || url,
  };
}

/** Whoever gives the tokens of a login. */
function checkIssuer(
  checker: McpChecker,
  issuer: string | undefined,
  reach: { readonly reach: PrivateReach; readonly allowPrivate: boolean },
): void {
  if (reach.reach !== "all") {
    checker.issue("/auth/oauth", "is not for servers registered over the wire; declare the server in a file");
  }
  const pointer = "/auth/oauth/issuer";
  const named = issuer === undefined ? undefined : checkedUrl(checker, issuer, pointer);
  if (named !== undefined) checkReach(checker, named, pointer, reach);
}

/** A secret goes to whoever gives the tokens. */
function checkTrust(
  checker: McpChecker,
  { tokenUrl, issuer, clientAuth }: ServerCredentials,
  reach: { readonly reach: PrivateReach; readonly allowPrivate: boolean },
): void {
  for (const [key, address] of [
    ["token_url", tokenUrl],
    ["issuer", issuer],
  ] as const) {
    const pointer = `/auth/client_credentials/${key}`;
    const named = address === undefined ? undefined : checkedUrl(checker, address, pointer);
    if (named !== undefined) checkReach(checker, named, pointer, reach);
  }
  if (tokenUrl !== undefined || issuer !== undefined || clientAuth === "private_key_jwt") return;
  checker.warn(
    "/auth/client_credentials",
    "the server itself says who gets the secret; name who gives the tokens by `issuer` or `token_url`",
  );
}

function textOf(object: JsonObject, key: string): string {
  const value = ownValue(object, key);
  return typeof value === "string" ? value : "";
}
