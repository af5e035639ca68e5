import { secretRefFor, secretRefsOfChoice } from "../shared/secret-choice.ts";
import type { HttpConfig } from "./http-config.ts";

/** References of all secrets a tool needs, whoever calls. */
export function secretRefsOf({ auth, signing }: HttpConfig): readonly string[] {
  const ofAuth = auth === undefined ? [] : secretRefsOfChoice(auth);
  return [...new Set(signing === undefined ? ofAuth : [...ofAuth, signing.secretRef])];
}

/** References of the secrets that a call of someone with these roles takes. */
export function secretRefsOfCall({ auth, signing }: HttpConfig, roles: readonly string[]): readonly string[] {
  if (auth === undefined && signing === undefined) return NO_REFERENCES;
  const ofAuth = auth === undefined ? [] : [secretRefFor(auth, roles)];
  return signing === undefined ? ofAuth : [...ofAuth, signing.secretRef];
}

const NO_REFERENCES: readonly string[] = [];
