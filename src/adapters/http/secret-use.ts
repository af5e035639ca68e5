import type { HttpConfig, SecretChoice } from "./http-config.ts";

/** References of all secrets a tool needs, whoever calls. */
export function secretRefsOf({ auth, signing }: HttpConfig): readonly string[] {
  const ofAuth = auth === undefined ? [] : [auth.secretRef, ...auth.byRole.map(([, secretRef]) => secretRef)];
  return [...new Set(signing === undefined ? ofAuth : [...ofAuth, signing.secretRef])];
}

/** References of the secrets that a call of someone with these roles takes. */
export function secretRefsOfCall({ auth, signing }: HttpConfig, roles: readonly string[]): readonly string[] {
  if (auth === undefined && signing === undefined) return NO_REFERENCES;
  const ofAuth = auth === undefined ? [] : [secretRefFor(auth, roles)];
  return signing === undefined ? ofAuth : [...ofAuth, signing.secretRef];
}

const NO_REFERENCES: readonly string[] = [];

/** Reference of the secret that calls of someone with these roles take. */
export function secretRefFor({ secretRef, byRole }: SecretChoice, roles: readonly string[]): string {
  return byRole.find(([role]) => roles.includes(role))?.[1] ?? secretRef;
}
