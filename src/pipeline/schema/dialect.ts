import { Ajv, type ErrorObject, type Options } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { type JsonObject, ownValue, stringifyJson } from "../../core/json.ts";
import { isPlainSchema } from "./plain-schema.ts";

/** A version of JSON Schema. */
export type Dialect = "draft-07" | "2020-12";

/** The dialect a schema names in `$schema`, 2020-12 where it names none; `undefined` for one that is not supported. */
export function dialectOf(schema: JsonObject): Dialect | undefined {
  const named = ownValue(schema, "$schema");
  if (named === undefined) return "2020-12";
  if (typeof named !== "string") return undefined;
  if (/^https?:\/\/json-schema\.org\/draft-07\/schema#?$/.test(named)) return "draft-07";
  return /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/.test(named) ? "2020-12" : undefined;
}

/** Checks schemas against the meta-schema of their dialect. */
export interface MetaChecker {
  /** The first thing wrong with the schema, in one line. */
  problem(schema: JsonObject, dialect: Dialect): string | undefined;
}

/** Compiles the two meta-schemas at once, which takes about 100 ms, so that no schema that comes later pays for it. */
export function createMetaChecker(): MetaChecker {
  const options: Options = { strict: false, logger: false, validateFormats: false, code: { optimize: false } };
  const instances = { "draft-07": new Ajv(options), "2020-12": new Ajv2020(options) };
  for (const instance of Object.values(instances)) void instance.validateSchema({});
  const firstError = (schema: JsonObject, dialect: Dialect): ErrorObject | undefined => {
    const instance = instances[dialect];
    // Without `$schema` the instance takes its own dialect, however the schema writes that one's name.
    const { $schema: _named, ...rest } = schema;
    return instance.validateSchema(rest) === true ? undefined : instance.errors?.[0];
  };
  return {
    problem(schema, dialect) {
      if (isPlainSchema(schema) || firstError(schema, dialect) === undefined) return undefined;
      // ajv takes a `bigint` for no number, so an error counts if it is there without any.
      const error = firstError(JSON.parse(stringifyJson(schema)) as JsonObject, dialect);
      return error === undefined ? undefined : describe(error);
    },
  };
}

function describe(error: ErrorObject): string {
  const where = error.instancePath === "" ? "its root" : error.instancePath;
  const allowed: unknown = error.params["allowedValues"];
  const choice = Array.isArray(allowed) ? ` (${allowed.join(", ")})` : "";
  return `${where.slice(0, 200)} ${error.message ?? "is not allowed"}${choice}`;
}
