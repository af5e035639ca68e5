import type { Redactor } from "../core/secrets.ts";
import type { RedactRules } from "../core/shaper.ts";
import { chainRedactors } from "./chained-redactor.ts";
import { createPatternRedactor } from "./pattern-redactor.ts";
import type { Secrets } from "./secrets.ts";

/** What the results of a tool go through: known values always, the shapes of credentials unless switched off, its patterns. */
export function redactorOfResults(rules: RedactRules | undefined, { redactor, values }: Secrets): Redactor {
  const base = rules?.tokens === false ? values : redactor;
  const patterns = rules?.patterns ?? [];
  return patterns.length === 0 ? base : chainRedactors(base, createPatternRedactor(patterns));
}
