import type { JsonObject } from "./json.ts";
import { compileSearch } from "./linear-search.ts";

/** JSON Schema of the names of fields to mask. */
export const REDACT_FIELDS_SCHEMA = {
  type: "array",
  maxItems: 200,
  items: { type: "string", minLength: 1, maxLength: 500, pattern: "^[^.]+(\\.[^.]+)*$" },
  description:
    "Fields of JSON whose values are masked, at any depth and in any case: `password`, or `card.number` for each `number` in a `card`.",
} as const satisfies JsonObject;

/** JSON Schema of the patterns to mask. */
export const REDACT_PATTERNS_SCHEMA = {
  type: "array",
  maxItems: 50,
  items: { type: "string", minLength: 1, maxLength: 1_000 },
  description:
    "Regular expressions; what matches one is masked in every text, key and value. They run in linear time, so without look-around and back-references; `(?i)` in front: in any case. An incremental tool with one gives whole lines.",
} as const satisfies JsonObject;

/** JSON Schema of the switch for the shapes of credentials. */
export const REDACT_TOKENS_SCHEMA = {
  type: "boolean",
  description:
    "Whether what has the shape of a well-known credential (keys of AWS, GitHub, Slack, Google, Stripe and model providers, JSON Web Tokens, private keys, `Bearer …`) is masked, whoever's it is. The gateway's own secrets always are.",
} as const satisfies JsonObject;

/** What is wrong with a pattern, with the mend; `undefined`: nothing. */
export function patternProblem(pattern: string): string | undefined {
  const outcome = compileSearch(pattern);
  return outcome.ok ? undefined : `the pattern is ${outcome.problem}; write another one`;
}
