import type { HttpConfig, SecretChoice } from "./http-config.ts";

/** References of all secrets a tool needs, whoever calls. */
export function secretRefsOf({ auth, signing }: HttpConfig): readonly string[] {
  const ofAuth = auth === undefined ? [] : [auth.secretRef, ...auth.byRole.map(([, secretRef]) => secretRef)];
  return [...new Set(signing === undefined ? ofAuth : [...ofAuth, signing.secretRef])];
}

/** Reference of the secret that calls of someone with these roles take. */
export function secretRefFor({ secretRef, byRole }: SecretChoice, roles: readonly string[]): string {
  return byRole.find(([role]) => roles.includes(role))?.[1] ?? secretRef;
}
