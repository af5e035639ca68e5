import type { Redactor, SecretSource } from "../core/secrets.ts";
import { chainRedactors } from "./chained-redactor.ts";
import { createEnvironmentSecrets } from "./environment-secrets.ts";
import { createRedactor } from "./redactor.ts";
import { SecretMemory } from "./secret-memory.ts";
import { createTokenRedactor } from "./token-redactor.ts";

/** Secrets, and what masks them. */
export interface Secrets {
  readonly source: SecretSource;
  /** Masks the values of those that were looked up, and whatever has the shape of a well-known credential. */
  readonly redactor: Redactor;
  /** Masks these values alone: for results of tools that switch the shapes off. */
  readonly values: Redactor;
}

/** Secrets of an environment, read at each request: a changed value is in force at once. */
export function createSecrets(environment: Readonly<Record<string, string | undefined>>): Secrets {
  const memory = new SecretMemory();
  const values = createRedactor(memory);
  const redactor = chainRedactors(values, createTokenRedactor());
  return { source: createEnvironmentSecrets(environment, memory), redactor, values };
}
