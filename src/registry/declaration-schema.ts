import { ACCESS_SETTINGS } from "../config/access-settings.ts";
import { ownList, ownObject } from "../config/own-values.ts";
import { policySchemas } from "../config/policy-settings.ts";
import { TOOLSET_SCHEMA } from "../config/toolset-settings.ts";
import { DURATION_SCHEMA } from "../core/durations.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { ownValue } from "../core/json.ts";
import { PARAM_TYPES } from "./params.ts";
import { serverKeys } from "./server-schema.ts";

/** Names of declared tools; `/` is for the tools of a server. */
const NAME_PATTERN = "^[A-Za-z0-9_.-]{1,64}$";

/** What a declaration's schema is made of. */
export interface SchemaParts {
  /** JSON Schema of the keys that each kind in force adds. */
  readonly kinds: ReadonlyMap<string, JsonObject>;
  /** JSON Schema of the key of each step that has one. */
  readonly steps: ReadonlyMap<string, JsonObject>;
  /** JSON Schema of `result`. */
  readonly result: JsonObject;
  /** Kinds whose declarations name a server. */
  readonly servers: ReadonlySet<string>;
}

/** Keys of every kind. */
const COMMON: Readonly<Record<string, JsonObject>> = {
  name: {
    type: "string",
    pattern: NAME_PATTERN,
    patternErrorMessage: "expected 1 to 64 letters, digits, `_`, `.` or `-`",
    description: "Unique name of the tool, which models see: what it acts on and what it does, such as `order_status`.",
    examples: ["order_status"],
  },
  title: { type: "string", description: "Name for people, in any language." },
  description: {
    type: "string",
    description:
      "What a model chooses by, word for word: what the tool does, when to use it, what its parameters mean. Quote it where it holds ` #` or `: `.",
  },
  enabled: {
    type: "boolean",
    default: true,
    description: "`false` takes the tool out of service and keeps its place.",
  },
  labels: {
    type: "object",
    additionalProperties: { type: "string" },
    maxProperties: 64,
    description: "Free labels to select tools by.",
    examples: [{ team: "orders" }],
  },
  hints: {
    type: "object",
    additionalProperties: false,
    description: "What a call does to the world. A hint that is absent means unknown, not false.",
    properties: {
      read_only: { type: "boolean", description: "Changes nothing, so that a lost answer can be asked for again." },
      destructive: { type: "boolean", description: "May destroy data." },
      idempotent: { type: "boolean", description: "Calling twice with the same arguments equals calling once." },
      open_world: { type: "boolean", description: "Reaches beyond a closed world, such as the web." },
    },
  },
  delivery: {
    enum: ["conclusive", "incremental"],
    default: "conclusive",
    description:
      "`conclusive`: only the whole result counts (a query, an execution). `incremental`: pieces are passed on as they come (a log, progress).",
  },
  params: {
    type: "array",
    maxItems: 1_000,
    items: {
      type: "object",
      required: ["name", "type"],
      additionalProperties: false,
      properties: {
        name: {
          type: "string",
          minLength: 1,
          maxLength: 64,
          description: "Name of the parameter, as templates refer to it.",
        },
        type: {
          enum: [...PARAM_TYPES],
          description: "Its JSON type. Scalars below are read by it: a text stays as it is written.",
        },
        required: { type: "boolean", default: false, description: "Whether a call without it is refused." },
        default: { description: "Stands in where the argument is absent." },
        description: { type: "string", description: "What it means, with an example; models read it." },
        enum: { type: "array", minItems: 1, description: "The only values it may have." },
        examples: { type: "array", minItems: 1, description: "Values to show." },
        nullable: {
          type: "boolean",
          default: false,
          description: "Whether `null` is a value of it, and not only another word for absent.",
        },
        format: { type: "string", description: "JSON Schema format, such as `date`, `date-time`, `email` or `uuid`." },
        pattern: { type: "string", description: "Regular expression that a text must match." },
        minLength: { type: "integer", minimum: 0, description: "Fewest characters of a text." },
        maxLength: { type: "integer", minimum: 0, description: "Most characters of a text." },
        contentEncoding: {
          enum: ["base64"],
          description: "That a text is base64, which stands for bytes, such as those of a file to send.",
        },
        minimum: { type: "number", description: "Least value of a number." },
        maximum: { type: "number", description: "Greatest value of a number." },
        items: { type: "object", description: "JSON Schema of the entries of an array." },
        properties: {
          type: "object",
          additionalProperties: { type: "object" },
          description: "JSON Schemas of the entries of an object, by name.",
        },
      },
    },
    description: "The tool's parameters in short form. An argument that is not declared here is refused.",
  },
  input_schema: {
    type: "object",
    description:
      "JSON Schema of the arguments, instead of `params`: draft 2020-12, or another one from draft-04 on where `$schema` says so. Its type is `object`.",
  },
  output_schema: { type: "object", description: "JSON Schema of the structured result." },
  group: {
    type: "string",
    minLength: 1,
    description: "Group of gateway.yaml the tool is in: it shares the group's limits and takes over its policies.",
  },
  toolset: TOOLSET_SCHEMA,
  allowed_roles: ACCESS_SETTINGS.allowed_roles.schema,
  allowed_subjects: ACCESS_SETTINGS.allowed_subjects.schema,
  timeout: {
    type: "object",
    additionalProperties: false,
    description: "Time limits, such as `3s`, `500ms` or `1m30s`.",
    properties: {
      connect: limit("From the call to an open connection. Default: gateway.yaml's, else 5s."),
      read: limit("From the request sent to the answer's headers. Default: gateway.yaml's, else 30s."),
      idle: limit(
        "Between two pieces of the answer. Default: `read` if that is set here, else gateway.yaml's, else 30s, or 5m for `delivery: incremental`.",
      ),
      total: limit("For the whole call. Default: gateway.yaml's, else 60s, or 10m for `delivery: incremental`."),
    },
  },
};

/** Keys that say what a tool is, which a server says of its own tools. */
const OF_TOOLS_ALONE: readonly string[] = ["hints", "params", "input_schema", "output_schema"];

/** Keys that a later version gives an effect; whoever gives one an effect takes its place in the schema. */
const NOT_YET: Readonly<Record<string, string>> = {
  coerce: "Lossless repair of arguments of another type.",
  cache: "Answers kept for a time.",
  cases: "Verification cases.",
  requires_env: "Environment variables the tool needs.",
  tools: "The tools of a skill or toolset.",
  includes: "The toolsets a toolset includes.",
  prompt: "The prompt of a skill.",
  mcp: "How an MCP server is reached.",
};

/**
 * Schema of a whole declaration of one kind, with the type words of all kinds in force. Of a kind that is not in force
 * it knows only what all kinds have in common, and takes other keys as they are.
 */
export function kindSchema(kind: string, parts: SchemaParts): JsonObject {
  const inForce = parts.kinds.has(kind);
  const own = parts.kinds.get(kind) ?? {};
  const isServer = parts.servers.has(kind);
  return {
    type: "object",
    required: ["name", "type", ...(ownList(own, "required") ?? [])],
    properties: {
      ...(isServer ? without(COMMON, OF_TOOLS_ALONE) : COMMON),
      ...Object.fromEntries(policySchemas()),
      ...notYet(parts),
      type: { ...(inForce ? { enum: [...parts.kinds.keys()] } : {}), description: "How the tool is reached." },
      ...propertiesOf(own),
      result: parts.result,
      ...(isServer ? serverKeys(overrideParts(parts)) : Object.fromEntries(parts.steps)),
    },
    patternProperties: { "^x-": { description: "A place for YAML anchors; has no meaning of its own." } },
    additionalProperties: !inForce,
  };
}

/** JSON Schema of a declaration for editors: one branch a kind, so that completion offers the keys of that kind. */
export function composeDeclarationSchema(parts: SchemaParts): JsonObject {
  const branches = [...parts.kinds.keys()].map((kind): JsonObject => {
    const schema = kindSchema(kind, parts);
    const type = { const: kind, description: "How the tool is reached." };
    const order = ["name", "title", "description", "type", ...Object.keys(propertiesOf(parts.kinds.get(kind) ?? {}))];
    const properties = { ...propertiesOf(schema), type };
    const first = order.map((key): [string, JsonValue] => [key, ownValue(properties, key) ?? {}]);
    const what = parts.servers.has(kind) ? "Server" : "Tool";
    return { title: `${what} of type ${kind}`, ...schema, properties: { ...Object.fromEntries(first), ...properties } };
  });
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Toolgate tool declaration",
    description: "One tool, declared in a file of the watched folder or registered over the wire.",
    type: "object",
    required: ["name", "type"],
    properties: { type: { enum: [...parts.kinds.keys()] } },
    oneOf: branches,
  };
}

/** Keys of a declaration that are known and have no effect yet. */
export function notYetKeys(parts: SchemaParts): readonly string[] {
  return Object.keys(NOT_YET).filter((key) => !parts.steps.has(key));
}

function notYet(parts: SchemaParts): JsonObject {
  return Object.fromEntries(
    notYetKeys(parts).map((key): [string, JsonValue] => {
      return [
        key,
        { not: {}, "x-not-supported": true, doNotSuggest: true, description: `Not supported yet. ${NOT_YET[key]}` },
      ];
    }),
  );
}

/** What may be said of one tool of a server. Its other time limits are those of the server's connection. */
function overrideParts(parts: SchemaParts): Parameters<typeof serverKeys>[0] {
  const { timeout = {} } = COMMON;
  const same = pick(COMMON, ["labels", "hints", "delivery", "group", "toolset", "allowed_roles", "allowed_subjects"]);
  const total = ownObject(propertiesOf(timeout), "total") ?? {};
  return {
    common: { ...same, timeout: { ...timeout, properties: { total } } },
    policies: Object.fromEntries(policySchemas()),
    steps: Object.fromEntries(parts.steps),
    result: parts.result,
    notYet: pick(notYet(parts), ["coerce", "cache"]),
  };
}

function without(schemas: Readonly<Record<string, JsonObject>>, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(schemas).filter(([key]) => !keys.includes(key)));
}

function pick(schemas: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(schemas).filter(([key]) => keys.includes(key)));
}

function limit(description: string): JsonObject {
  return { ...DURATION_SCHEMA, description };
}

function propertiesOf(schema: JsonObject): JsonObject {
  return ownObject(schema, "properties") ?? {};
}
