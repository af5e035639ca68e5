import { createHash } from "node:crypto";
import { ANONYMOUS } from "../core/principal.ts";
import type { LedgerKey } from "../core/store.ts";

/** Characters that tell callers apart: two that agree in them and in a key are not to be expected. */
const CALLER_LENGTH = 16;

/**
 * What an upstream is told of a call's key. All callers share the gateway's account there, so the keys of one that says
 * who it is are made its own: else its call would get the answer to another's with an equal key, and not be made. Who it
 * is stays in the gateway.
 */
export function upstreamKey({ principal, key }: Pick<LedgerKey, "principal" | "key">): string {
  if (principal === ANONYMOUS.id) return key;
  return `${key}-${createHash("sha256").update(principal).digest("hex").slice(0, CALLER_LENGTH)}`;
}
