import { GatewayError } from "../../core/errors.ts";
import type { SecretSource } from "../../core/secrets.ts";

/**
 * A secret's value now.
 *
 * @throws GatewayError SECRET_MISSING.
 */
export function secretValue(tool: string, reference: string, secrets: SecretSource): string {
  const missing = secrets.missing(reference);
  if (missing !== undefined) throw unusableSecret(tool, reference, missing.why);
  return secrets.resolve(reference);
}

/** The error for a secret that cannot be used. `why` goes on after its reference. */
export function unusableSecret(tool: string, reference: string, why: string): GatewayError {
  return new GatewayError("SECRET_MISSING", `${tool}: secret ${reference} ${why}; the upstream was not reached`, {
    modelMessage: `${tool}: the gateway has no credential for this tool; its operator must set one`,
    metadata: { tool, secret: reference },
  });
}
