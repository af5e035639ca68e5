import type { Redactor, SecretSource } from "../core/secrets.ts";
import { createEnvironmentSecrets } from "./environment-secrets.ts";
import { createRedactor } from "./redactor.ts";
import { SecretMemory } from "./secret-memory.ts";

/** Secrets, and what masks the values of those that were looked up. */
export interface Secrets {
  readonly source: SecretSource;
  readonly redactor: Redactor;
}

/** Secrets of an environment, read at each request: a changed value is in force at once. */
export function createSecrets(environment: Readonly<Record<string, string | undefined>>): Secrets {
  const memory = new SecretMemory();
  return { source: createEnvironmentSecrets(environment, memory), redactor: createRedactor(memory) };
}
