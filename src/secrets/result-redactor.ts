import { showHidden } from "../core/hidden-text.ts";
import type { Redactor } from "../core/secrets.ts";
import type { RedactRules } from "../core/shaper.ts";
import { chainRedactors } from "./chained-redactor.ts";
import { createPatternRedactor } from "./pattern-redactor.ts";
import type { Secrets } from "./secrets.ts";

/** What the results of a tool go through: known values always, the shapes of credentials unless switched off, its patterns. */
export function redactorOfResults(rules: RedactRules | undefined, { shapes, values }: Secrets): Redactor {
  const base = rules?.tokens === false ? values : shapes;
  const own = patternsOf(rules);
  return own === undefined ? base : chainRedactors(base, own);
}

/** What a tool's patterns mask; undefined where it has none. */
export function patternsOf(rules: RedactRules | undefined): Redactor | undefined {
  return rules === undefined || rules.patterns.length === 0 ? undefined : createPatternRedactor(rules.patterns);
}

/** Makes what a server says fit to be shown: masked as everything is and by its own patterns, nothing of it hidden. */
export function screenOf(rules: RedactRules | undefined, { redactor }: Secrets): (text: string) => string {
  const own = patternsOf(rules);
  const whole = own === undefined ? redactor : chainRedactors(redactor, own);
  return (text) => showHidden(whole.text(text));
}
