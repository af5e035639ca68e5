import { isJsonObject, ownValue } from "../../core/json.ts";
import { spacedPrefix } from "../shared/header-rules.ts";
import { textOf } from "../shared/template-checker.ts";
import type { DeclarationChecker } from "./declaration-checker.ts";
import type { SecretAuth } from "./http-config.ts";

/** Reads `auth`; its problems go to the checker. Claims the header it sets. */
export function configureAuth(checker: DeclarationChecker): SecretAuth | undefined {
  const auth = ownValue(checker.keys, "auth");
  if (!isJsonObject(auth)) return undefined;
  const roles = ownValue(auth, "by_role");
  const byRole = Object.entries(isJsonObject(roles) ? roles : {}).map(([role, name]) => [role, textOf(name)] as const);
  const secret = { secretRef: textOf(ownValue(auth, "secret_ref")), byRole };
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

/** Notes that the secret's query parameter is set, by nothing else. */
export function claimQuery(checker: DeclarationChecker, auth: SecretAuth | undefined, queryNames: Set<string>): void {
  if (auth?.place !== "query") return;
  const { queryName } = auth;
  if (queryNames.has(queryName)) checker.issue("/auth/query_name", `query parameter \`${queryName}\` is set twice`);
  queryNames.add(queryName);
}
