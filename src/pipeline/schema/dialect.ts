import { Ajv, type ErrorObject, type Options } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import { type JsonObject, ownValue, stringifyJson } from "../../core/json.ts";
import { META_DRAFT_04 } from "./meta-draft-04.ts";
import { isPlainSchema } from "./plain-schema.ts";

/** A version whose rules values are held against; what is written in another one is put into its words. */
export type Dialect = "draft-07" | "2020-12";

/** A version of JSON Schema that schemas may be written in. */
export type NamedDialect = Dialect | "draft-04" | "draft-06" | "2019-09";

/** Whose words a schema of a version is put into. */
export const RULES_OF: Readonly<Record<NamedDialect, Dialect>> = {
  "draft-04": "draft-07",
  "draft-06": "draft-07",
  "draft-07": "draft-07",
  "2019-09": "2020-12",
  "2020-12": "2020-12",
};

/** The versions that schemas may be written in, for messages. */
export const DIALECTS_IN_WORDS = "draft-04, draft-06, draft-07, 2019-09 or 2020-12";

/** The dialect a schema names in `$schema`, 2020-12 where it names none; `undefined` for one that is not supported. */
export function dialectOf(schema: JsonObject): NamedDialect | undefined {
  const named = ownValue(schema, "$schema");
  if (named === undefined) return "2020-12";
  if (typeof named !== "string") return undefined;
  const [, dialect = ""] =
    /^https?:\/\/json-schema\.org\/(draft-0[467]|draft\/20(?:19-09|20-12))\/schema#?$/.exec(named) ?? [];
  const known: readonly NamedDialect[] = ["draft-04", "draft-06", "draft-07", "2019-09", "2020-12"];
  return known.find((each) => each === dialect.replace("draft/", ""));
}

/** Checks schemas against the meta-schema of their dialect. */
export interface MetaChecker {
  /** The first thing wrong with the schema, in one line. */
  problem(schema: JsonObject, dialect: NamedDialect): string | undefined;
}

/** The first thing that a meta-schema says against a schema. */
type FirstError = (schema: JsonObject) => ErrorObject | undefined;

const OPTIONS: Options = { strict: false, logger: false, validateFormats: false, code: { optimize: false } };

/**
 * Compiles the meta-schemas of draft-07 and 2020-12 at once, which takes about 100 ms, so that no schema that comes later
 * pays for it; those of the others when the first schema comes that is written in them.
 */
export function createMetaChecker(): MetaChecker {
  const checks = new Map<NamedDialect, FirstError>();
  const firstErrorOf = (dialect: NamedDialect): FirstError => {
    // What draft-07 added to draft-06 is left out when schemas are read.
    const own = dialect === "draft-06" ? "draft-07" : dialect;
    const known = checks.get(own) ?? compileMeta(own);
    checks.set(own, known);
    return known;
  };
  for (const dialect of ["draft-07", "2020-12"] as const) void firstErrorOf(dialect)({});
  return {
    problem(schema, dialect) {
      if (dialect === RULES_OF[dialect] && isPlainSchema(schema)) return undefined;
      const firstError = firstErrorOf(dialect);
      if (firstError(schema) === undefined) return undefined;
      // ajv takes a `bigint` for no number, so an error counts if it is there without any.
      const error = firstError(JSON.parse(stringifyJson(schema)) as JsonObject);
      return error === undefined ? undefined : describe(error);
    },
  };
}

function compileMeta(dialect: Exclude<NamedDialect, "draft-06">): FirstError {
  if (dialect === "draft-04") {
    const check = new Ajv(OPTIONS).compile(META_DRAFT_04);
    return (schema) => (check(schema) ? undefined : check.errors?.[0]);
  }
  const instance = {
    "draft-07": () => new Ajv(OPTIONS),
    "2019-09": () => new Ajv2019(OPTIONS),
    "2020-12": () => new Ajv2020(OPTIONS),
  }[dialect]();
  return (schema) => {
    // Without `$schema` the instance takes its own dialect, however the schema writes that one's name.
    const { $schema: _named, ...rest } = schema;
    return instance.validateSchema(rest) === true ? undefined : instance.errors?.[0];
  };
}

function describe(error: ErrorObject): string {
  const where = error.instancePath === "" ? "its root" : error.instancePath;
  const allowed: unknown = error.params["allowedValues"];
  const choice = Array.isArray(allowed) ? ` (${allowed.join(", ")})` : "";
  return `${where.slice(0, 200)} ${error.message ?? "is not allowed"}${choice}`;
}
