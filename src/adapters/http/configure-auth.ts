import type { PrivateReach } from "../../core/adapter.ts";
import { isJsonArray, isJsonObject, type JsonObject, jsonPointer, ownValue } from "../../core/json.ts";
import type { ClientCredentials } from "../shared/access-tokens.ts";
import { spacedPrefix } from "../shared/header-rules.ts";
import { hostKind } from "../shared/network/addresses.ts";
import { socketTarget } from "../shared/network/socket.ts";
import { secretChoice } from "../shared/secret-choice.ts";
import { textOf } from "../shared/template-checker.ts";
import type { DeclarationChecker } from "./declaration-checker.ts";
import type { SecretAuth } from "./http-config.ts";

/** Reads `auth`; its problems go to the checker. Claims the header it sets. */
export function configureAuth(checker: DeclarationChecker, reach: PrivateReach): SecretAuth | undefined {
  const auth = ownValue(checker.keys, "auth");
  if (!isJsonObject(auth)) return undefined;
  const client = ownValue(auth, "client_credentials");
  if (isJsonObject(client)) return tokenAuth(checker, auth, client, reach);
  if (ownValue(auth, "secret_ref") === undefined) {
    checker.issue("/auth", "takes `secret_ref`, or `client_credentials` with one");
  }
  const secret = secretChoice(auth);
  const headerName = ownValue(auth, "header_name");
  const queryName = textOf(ownValue(auth, "query_name"));
  const prefix = textOf(ownValue(auth, "prefix"));
  if ((headerName === undefined) === (queryName === "")) {
    checker.issue("/auth", "takes one of `header_name` and `query_name`: where the secret goes");
  }
  if (headerName === undefined) {
    if (prefix !== "") checker.issue("/auth/prefix", "has no effect: it stands before the secret in a header");
    return { place: "query", queryName, ...secret };
  }
  checker.claimHeader("/auth/header_name", textOf(headerName), prefix);
  return { place: "header", headerName: textOf(headerName), ...secret, prefix: spacedPrefix(prefix) };
}

/** What a client's tokens are got with. Claims `Authorization`. */
function tokenAuth(checker: DeclarationChecker, auth: JsonObject, keys: JsonObject, reach: PrivateReach): SecretAuth {
  const others = Object.keys(auth).filter((key) => key !== "client_credentials");
  for (const key of others) {
    checker.issue(jsonPointer(["auth", key]), "has no effect beside `client_credentials`: leave it out");
  }
  checker.claimHeader("/auth/client_credentials", "Authorization", "Bearer ");
  const tokenUrl = textOf(ownValue(keys, "token_url"));
  const problem = tokenUrlProblem(tokenUrl) ?? reachProblem(tokenUrl, reach);
  if (problem !== undefined) checker.issue("/auth/client_credentials/token_url", problem);
  const scopes = ownValue(keys, "scopes");
  const optional = (key: string): string | undefined => textOf(ownValue(keys, key)) || undefined;
  const secretRef = textOf(ownValue(keys, "secret_ref"));
  const client: ClientCredentials = {
    tokenUrl,
    clientId: textOf(ownValue(keys, "client_id")),
    secretRef,
    scopes: scopes !== undefined && isJsonArray(scopes) ? scopes.filter((scope) => typeof scope === "string") : [],
    clientAuth: ownValue(keys, "client_auth") === "post" ? "post" : "basic",
    resource: optional("resource"),
    audience: optional("audience"),
  };
  return { place: "token", client, secretRef, byRole: [] };
}

function tokenUrlProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || text.includes("\\")) return "is no http or https URL";
  if (url.username !== "" || url.password !== "")
    return "holds a name or password; `client_id` and `secret_ref` say them";
  if (url.hash !== "") return "has a fragment (`#…`), which is never sent; remove it";
  return /[{}]|%7B/i.test(text) ? "is fixed text: nothing is filled in here" : undefined;
}

/** Who registers over the wire must not open a door to the inside that no operator opened. */
function reachProblem(text: string, reach: PrivateReach): string | undefined {
  if (reach === "all") return undefined;
  const kind = hostKind(socketTarget(new URL(text).origin).host);
  if (kind === "public" || kind === "name" || (kind === "loopback" && reach === "loopback")) return undefined;
  return "is no public address, and a tool registered over the wire may not reach it; declare it in a file, or set `registration.private_addresses` in gateway.yaml";
}

/** Notes that the secret's query parameter is set, by nothing else. */
export function claimQuery(checker: DeclarationChecker, auth: SecretAuth | undefined, queryNames: Set<string>): void {
  if (auth?.place !== "query") return;
  const { queryName } = auth;
  if (queryNames.has(queryName)) checker.issue("/auth/query_name", `query parameter \`${queryName}\` is set twice`);
  queryNames.add(queryName);
}
