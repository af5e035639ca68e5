import { isJsonObject, type JsonObject, type JsonValue, ownValue } from "../../core/json.ts";

/** Which secret a caller's calls take: that of the first of these roles that it has, else the common one. */
export interface SecretChoice {
  readonly secretRef: string;
  /** Role and reference, in the order they are declared. */
  readonly byRole: readonly (readonly [role: string, secretRef: string])[];
}

/** Schema of `by_role`, which stands beside a `secret_ref` that is required. */
export const BY_ROLE_SCHEMA: JsonObject = {
  type: "object",
  maxProperties: 100,
  additionalProperties: { type: "string", minLength: 1 },
  description:
    "Names of other secrets by role of the caller: the first role here that it has decides, and `secret_ref` " +
    "is for all others.",
  examples: [{ admin: "ORDER_ADMIN_TOKEN" }],
};

/** Reads `secret_ref` and `by_role` of an object that is valid by its schema. */
export function secretChoice(keys: JsonObject): SecretChoice {
  const roles = ownValue(keys, "by_role");
  const byRole = Object.entries(isJsonObject(roles) ? roles : {}).map(([role, name]) => [role, textOf(name)] as const);
  return { secretRef: textOf(ownValue(keys, "secret_ref")), byRole };
}

/** Reference of the secret that calls of someone with these roles take. */
export function secretRefFor({ secretRef, byRole }: SecretChoice, roles: readonly string[]): string {
  return byRole.find(([role]) => roles.includes(role))?.[1] ?? secretRef;
}

/** References of all secrets that it may come to. */
export function secretRefsOfChoice({ secretRef, byRole }: SecretChoice): readonly string[] {
  return [secretRef, ...byRole.map(([, reference]) => reference)];
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}
