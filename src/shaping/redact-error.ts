import { GatewayError } from "../core/errors.ts";
import type { Redactor } from "../core/secrets.ts";

/** The error itself, or where it holds a secret the same one without it, caused by it. */
export function redactError(error: GatewayError, redactor: Redactor): GatewayError {
  const clean = (text: string): string => redactor.text(text);
  const message = clean(error.message);
  const modelMessage = clean(error.modelMessage);
  const metadata = Object.fromEntries(Object.entries(error.metadata).map(([key, value]) => [key, clean(value)]));
  const violations = error.violations.map(({ field, description, reason }) => {
    return { field: clean(field), description: clean(description), reason };
  });
  const same =
    message === error.message &&
    modelMessage === error.modelMessage &&
    Object.entries(metadata).every(([key, value]) => error.metadata[key] === value) &&
    violations.every(({ field, description }, i) => {
      return field === error.violations[i]?.field && description === error.violations[i].description;
    });
  if (same) return error;
  const { reason, effect, retryable, retryAfterMs } = error;
  const after = retryAfterMs === undefined ? {} : { retryAfterMs };
  return new GatewayError(reason, message, {
    modelMessage,
    effect,
    retryable,
    ...after,
    violations,
    metadata,
    cause: error,
  });
}
