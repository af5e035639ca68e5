import type { SecretSource } from "../core/secrets.ts";
import { SecretChain } from "./secret-chain.ts";
import type { SecretMemory } from "./secret-memory.ts";
import { type SecretProvider, setValue } from "./secret-provider.ts";

/** The variables of a process, by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Secrets of an environment: a reference is the name of a variable. The record is read at each request, so a
 * changed value is in force at once; a value that is empty or only white space counts as not set. What is handed
 * out is remembered for redaction.
 */
export function createEnvironmentSecrets(environment: Environment, memory: SecretMemory): SecretSource {
  return new SecretChain([environmentProvider(environment)], memory);
}

/** The variables as a place of secrets. */
export function environmentProvider(environment: Environment): SecretProvider {
  return {
    mend: (reference) => `set the environment variable ${reference} where the gateway is started`,
    read: (reference) => setValue(Object.hasOwn(environment, reference) ? environment[reference] : undefined),
    start: () => Promise.resolve(),
    look: () => undefined,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
