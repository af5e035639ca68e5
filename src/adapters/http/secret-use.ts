import type { HttpConfig } from "./http-config.ts";

/** References of all secrets a tool needs. */
export function secretRefsOf({ auth, signing }: HttpConfig): readonly string[] {
  return [auth?.secretRef, signing?.secretRef].filter((reference) => reference !== undefined);
}
