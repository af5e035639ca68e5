import { GatewayError } from "../core/errors.ts";
import type { SecretSource } from "../core/secrets.ts";
import type { SecretMemory } from "./secret-memory.ts";

/**
 * Secrets of an environment: a reference is the name of a variable. The record is read at each request, so a
 * changed value is in force at once; a value that is empty or only white space counts as not set. What is handed
 * out is remembered for redaction.
 */
export function createEnvironmentSecrets(
  environment: Readonly<Record<string, string | undefined>>,
  memory: SecretMemory,
): SecretSource {
  function read(reference: string): string | undefined {
    const value = Object.hasOwn(environment, reference) ? environment[reference] : undefined;
    return value === undefined || value.trim() === "" ? undefined : value;
  }

  return {
    has: (reference) => read(reference) !== undefined,
    resolve(reference) {
      const value = read(reference);
      if (value === undefined) {
        throw new GatewayError("SECRET_MISSING", `secret ${reference} is not set; set this environment variable`, {
          metadata: { secret: reference },
        });
      }
      memory.remember(value);
      return value;
    },
  };
}
