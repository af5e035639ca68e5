import { hash } from "node:crypto";
import { GatewayError } from "../core/errors.ts";
import type { ListedSchemas } from "../wire/schema-form.ts";

/** What a page belongs to: a token is good for the same caller and the same question only. */
export interface PageScope {
  readonly principalId: string;
  /** Equal for equal filters. */
  readonly filterKey: string;
  readonly schemas: ListedSchemas;
}

/** Characters of the checksum. It finds mistakes; a forged token shows nothing that its forger may not list anyway. */
const CHECK_LENGTH = 32;
/** Longer than that of any name. */
const MAX_TOKEN_LENGTH = 1024;

/** A token that says where the next page begins: after a name, so that it outlives changes, restarts and replicas. */
export function pageToken(name: string, scope: PageScope): string {
  return Buffer.from(checksum(name, scope) + name).toString("base64url");
}

/**
 * The name a page token says; `undefined` for the empty token of a first page.
 *
 * @throws GatewayError PAGE_TOKEN_INVALID unless {@link pageToken} made it for this scope.
 */
export function afterName(token: string, scope: PageScope): string | undefined {
  if (token === "") return undefined;
  const name = token.length > MAX_TOKEN_LENGTH ? "" : Buffer.from(token, "base64url").toString().slice(CHECK_LENGTH);
  if (name !== "" && pageToken(name, scope) === token) return name;
  throw new GatewayError(
    "PAGE_TOKEN_INVALID",
    "`page_token` was not given for this caller, `filter`, `omit_schemas` and `schema_form`; list again from the first page",
    { violations: [{ field: "page_token", reason: "INVALID", description: "is not a token of this listing" }] },
  );
}

function checksum(name: string, { principalId, filterKey, schemas }: PageScope): string {
  const text = JSON.stringify(["page-2", principalId, filterKey, schemas, name]);
  return hash("sha256", text, "hex").slice(0, CHECK_LENGTH);
}
