import type { JsonObject } from "../core/json.ts";

/** What of the keys of all kinds an override of a server's tool may set too. */
export interface OverrideParts {
  /** Schemas of `labels`, `hints`, `delivery`, `group`, `timeout` and who may call, as they stand in a declaration. */
  readonly common: JsonObject;
  readonly policies: JsonObject;
  readonly steps: JsonObject;
  readonly result: JsonObject;
  /** Keys that are known and have no effect yet. */
  readonly notYet: JsonObject;
}

const NAMES =
  "Names are the server's own; `*` stands for any characters and `?` for one, and what holds neither is one name.";

const PARAM: JsonObject = {
  type: "object",
  additionalProperties: false,
  minProperties: 1,
  properties: {
    name: { type: "string", minLength: 1, maxLength: 64, description: "Name that callers see and send instead." },
    description: { type: "string", description: "Description that callers see instead." },
    default: { description: "Stands in where the argument is absent, which it then may be." },
    value: { description: "Sent with every call; callers neither see the parameter nor can send it." },
    hidden: {
      type: "boolean",
      default: false,
      description: "Whether callers do not see the parameter. Without `value` it is never sent.",
    },
  },
};

/** JSON Schema of the keys that a declaration of a server has besides those of its kind. */
export function serverKeys(parts: OverrideParts): JsonObject {
  return {
    tools: {
      type: "object",
      additionalProperties: false,
      description: "Which of the server's tools become tools of the gateway, and as what.",
      properties: {
        include: names("Only tools of these names. Default: all."),
        exclude: names("No tools of these names, `include` or not."),
        overrides: {
          type: "object",
          maxProperties: 2_000,
          additionalProperties: overrideSchema(parts),
          description: `What is different for some tools, by name. ${NAMES} A later one counts before an earlier one, and one name before any pattern.`,
        },
      },
    },
    trust_hints: {
      type: "boolean",
      default: false,
      description:
        "Whether what the server says of its tools (read only, idempotent) decides about retries and effects. `false`: it is shown, and `hints` of `tools.overrides` decide.",
    },
  };
}

function names(description: string): JsonObject {
  const items = { type: "string", minLength: 1, maxLength: 256 };
  return { type: "array", minItems: 1, maxItems: 1_000, items, description: `${description} ${NAMES}` };
}

function overrideSchema({ common, policies, steps, result, notYet }: OverrideParts): JsonObject {
  return {
    type: "object",
    additionalProperties: false,
    properties: {
      name: {
        type: "string",
        pattern: "^[A-Za-z0-9_.-]{1,64}$",
        patternErrorMessage: "expected 1 to 64 letters, digits, `_`, `.` or `-`",
        description: "Name behind the server's and `/`, instead of the server's own. For one tool.",
      },
      title: { type: "string", description: "Name for people, instead of the server's." },
      description: { type: "string", description: "What a model chooses by, instead of the server's description." },
      visible: {
        type: "boolean",
        default: true,
        description:
          "`false`: neither listed nor called, as if there were no such tool; `explain` shows it to operators.",
      },
      enabled: { type: "boolean", default: true, description: "`false` takes the tool out of service." },
      pin: {
        type: "string",
        pattern: "^[0-9a-f]{64}$",
        patternErrorMessage: "expected the 64 hexadecimal digits that `explain` shows as `offered.digest`",
        description:
          "Digest of what the server says of the tool (name, description, schemas): one that is another is held back until this is changed. For one tool.",
      },
      params: {
        type: "object",
        maxProperties: 1_000,
        additionalProperties: PARAM,
        description: "What is different for parameters, by the server's name of each.",
      },
      ...common,
      ...policies,
      ...steps,
      result,
      ...notYet,
    },
  };
}
