import type { JsonObject } from "../core/json.ts";
import type { Setting } from "./setting.ts";

/** Roles by name. */
export const ROLES_SCHEMA: JsonObject = {
  type: "array",
  maxItems: 100,
  items: {
    type: "string",
    pattern: "^[A-Za-z0-9_.:/@-]{1,128}$",
    patternErrorMessage: "expected a role such as `admin`",
  },
};

/** A role: a word as identity providers and key files have them. */
const ROLE_PATTERN = "^(?:\\*|[A-Za-z0-9_.:/@-]{1,128})$";

/**
 * Who may see and call a tool. Each may stand in a declaration, in a group and under `defaults` of gateway.yaml; the
 * first of them that has either key counts, with both.
 */
export const ACCESS_SETTINGS = {
  allowed_roles: {
    schema: {
      type: "array",
      minItems: 1,
      maxItems: 100,
      items: { type: "string", pattern: ROLE_PATTERN, patternErrorMessage: "expected a role such as `admin`, or `*`" },
      description:
        "Roles of which a caller needs one to see and call the tool; `*`: every caller may. Without it and `allowed_subjects` every caller may.",
      examples: [["admin"]],
    },
  },
  allowed_subjects: {
    schema: {
      type: "array",
      minItems: 1,
      maxItems: 1_000,
      items: { type: "string", minLength: 1, maxLength: 512 },
      description:
        "Callers that may see and call the tool whatever their roles, by the id of `identity`, such as `key:ci`, `jwt:alice` or `cert:spiffe://example.org/*`; a `*` at the end stands for any rest.",
      examples: [["key:ci"]],
    },
  },
} as const satisfies Readonly<Record<string, Setting>>;

/** Key of who may see and call a tool. */
export type AccessKey = keyof typeof ACCESS_SETTINGS;
