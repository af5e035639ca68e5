import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  jsonPointer,
  ownValue,
  stringifyJson,
} from "../../core/json.ts";
import { oneLine } from "../../core/text.ts";
import { DIALECTS_IN_WORDS, type Dialect, dialectOf, type MetaChecker, RULES_OF } from "./dialect.ts";
import { FORMATS } from "./formats.ts";
import { inPlaceProblem } from "./in-place.ts";
import { DEFS, KEYWORDS, type KeywordShape } from "./keywords.ts";
import type { CompilePattern, LinearPattern } from "./linear-pattern.ts";
import { type Translate, translatorOf } from "./older-dialects.ts";
import { isPlainSchema } from "./plain-schema.ts";
import { RefResolver } from "./ref-resolver.ts";
import { SchemaRefused, tooComplex } from "./schema-refused.ts";

/** Largest schema, in characters of JSON text. */
const MAX_TEXT = 256 * 1024;

/** Most JSON values in a schema. */
const MAX_VALUES = 50_000;

/** Deepest nesting of a schema's JSON. */
const MAX_NESTING = 64;

/** Most entries of all `properties` together. */
const MAX_PROPERTIES = 2_000;

/** Most different patterns. */
const MAX_PATTERNS = 100;

/** Most work of its patterns together, in about microseconds. */
const MAX_PATTERN_WORK = 20_000;

/** Most schemas in a schema; what a reference leads to is counted again. */
const MAX_SCHEMAS = 2_500;

/** Most references followed one inside the other, with the schemas between them. */
const MAX_DEPTH = 300;

/** A schema made ready for the validator: known keywords only, references resolved, nothing that names another document. */
export interface ReadySchema {
  readonly dialect: Dialect;
  /** Every `$ref` in it leads to an entry of its `$defs`. */
  readonly schema: JsonObject;
  readonly patterns: ReadonlyMap<string, LinearPattern>;
}

/** Outcome of reading a schema. */
export type SchemaOutcome =
  | { readonly ok: true; readonly ready: ReadySchema }
  | { readonly ok: false; readonly problem: string };

/** What schemas are read with. */
export interface ReadTools {
  readonly meta: MetaChecker;
  readonly compilePattern: CompilePattern;
}

/** Reads a schema and checks everything that can be checked without compiling it. Follows no address and no file. */
export function readSchema(schema: JsonObject, { meta, compilePattern }: ReadTools): SchemaOutcome {
  try {
    measure(schema);
    const dialect = dialectOf(schema);
    if (dialect === undefined) {
      const named = stringifyJson(ownValue(schema, "$schema") ?? null).slice(0, 100);
      return refuse(`"$schema" ${named} is not supported: use ${DIALECTS_IN_WORDS}`);
    }
    const reader = new SchemaReader(schema, {
      metaProblem: (part) => meta.problem(part, dialect),
      compilePattern,
      refs: new RefResolver(dialect),
      translate: translatorOf(dialect),
    });
    const copy = reader.read();
    const loop = inPlaceProblem(copy);
    return loop === undefined
      ? { ok: true, ready: { dialect: RULES_OF[dialect], schema: copy, patterns: reader.patterns } }
      : refuse(loop);
  } catch (error) {
    if (error instanceof SchemaRefused) return refuse(error.message);
    throw error;
  }
}

function refuse(problem: string): SchemaOutcome {
  // It may quote names and references of the schema.
  return { ok: false, problem: oneLine(problem) };
}

/**
 * What is wrong with a schema, by the same checks; `undefined` where it can be read. Most schemas of thousands are so
 * simple that nothing is left to be found out by reading them.
 */
export function schemaProblem(schema: JsonObject, tools: ReadTools): string | undefined {
  if (isSimple(schema)) return undefined;
  const outcome = readSchema(schema, tools);
  return outcome.ok ? undefined : outcome.problem;
}

/** Keywords that reading looks into further than the meta-schema does. */
const LOOKED_INTO: ReadonlySet<string> = new Set(["pattern", "not", "allOf", "anyOf", "oneOf"]);

function isSimple(schema: JsonObject): boolean {
  try {
    const { values, keys } = measure(schema);
    return values <= MAX_SCHEMAS && !keys && isPlainSchema(schema);
  } catch (error) {
    if (error instanceof SchemaRefused) return false;
    throw error;
  }
}

/** What a schema holds. */
interface Measures {
  values: number;
  /** Whether some key, be it a keyword or a name, is one of {@link LOOKED_INTO}. */
  keys: boolean;
}

/** Bounds the schema before anything looks at it closely. */
function measure(schema: JsonObject): Measures {
  const measures = { values: 0, keys: false };
  let text = 0;
  let properties = 0;
  const visit = (value: JsonValue, depth: number): void => {
    if (depth > MAX_NESTING) throw tooComplex(`nested deeper than ${MAX_NESTING} levels`);
    if (++measures.values > MAX_VALUES) throw tooComplex(`more than ${MAX_VALUES} values`);
    text += typeof value === "string" ? value.length + 3 : 6;
    if (text > MAX_TEXT) throw tooComplex(`more than ${MAX_TEXT} characters`);
    if (isJsonArray(value)) for (const item of value) visit(item, depth + 1);
    else if (isJsonObject(value)) members(value, depth);
  };
  const members = (object: JsonObject, depth: number): void => {
    for (const key of Object.keys(object)) {
      const item = object[key] ?? null;
      text += key.length + 3;
      if (LOOKED_INTO.has(key)) measures.keys = true;
      if (key === "properties" && isJsonObject(item)) properties += Object.keys(item).length;
      if (properties > MAX_PROPERTIES) throw tooComplex(`more than ${MAX_PROPERTIES} properties`);
      visit(item, depth + 1);
    }
  };
  visit(schema, 1);
  return measures;
}

/** Where the reader is. */
interface Place {
  readonly steps: readonly (string | number)[];
  /** The nearest schema around it with an `$id`: what a `$ref` is relative to. */
  readonly base: JsonObject;
}

/** What a reader asks. */
interface ReaderDeps {
  readonly metaProblem: (schema: JsonObject) => string | undefined;
  readonly compilePattern: CompilePattern;
  readonly refs: RefResolver;
  readonly translate: Translate;
}

class SchemaReader {
  readonly patterns = new Map<string, LinearPattern>();
  readonly #root: JsonObject;
  readonly #deps: ReaderDeps;
  readonly #names = new Map<JsonObject, string>();
  readonly #defs = Object.create(null) as Record<string, JsonValue>;
  #depth = 0;
  #schemas = 0;
  #patternWork = 0;

  constructor(root: JsonObject, deps: ReaderDeps) {
    this.#root = root;
    this.#deps = deps;
  }

  read(): JsonObject {
    this.#check(this.#root);
    const copy = this.#object(this.#root, { steps: [], base: this.#root });
    if (this.#names.size === 0) return copy;
    const name = this.#names.get(this.#root);
    if (name === undefined) return { ...copy, $defs: this.#defs };
    this.#defs[name] = copy;
    return { ...refTo(name), $defs: this.#defs };
  }

  /** Past it, every keyword has a value of its shape. */
  #check(schema: JsonObject): void {
    const problem = this.#deps.metaProblem(schema);
    if (problem !== undefined) throw new SchemaRefused(`not a JSON Schema: ${problem}`);
  }

  /** What is no object stands for itself: `true`, `false`, and the list of names that `dependencies` may have. */
  #schema(schema: JsonValue, place: Place): JsonValue {
    return isJsonObject(schema) ? this.#object(schema, place) : schema;
  }

  #object(written: JsonObject, outer: Place): JsonObject {
    if (++this.#schemas > MAX_SCHEMAS) throw tooComplex(`more than ${MAX_SCHEMAS} schemas, references included`);
    if (++this.#depth > MAX_DEPTH) throw tooComplex("schemas nested too deep through $ref");
    const place = this.#deps.refs.isResource(written) ? { ...outer, base: written } : outer;
    const schema = this.#deps.translate(written, this.#root);
    const copy: Record<string, JsonValue> = {};
    for (const [keyword, value] of Object.entries(schema)) {
      const shape = KEYWORDS.get(keyword);
      if (shape !== undefined) copy[keyword] = this.#keyword(shape, value, below(place, keyword));
    }
    this.#own(schema, copy, place);
    this.#depth--;
    return copy;
  }

  /** What needs more than its shape: references, patterns, formats, nullable types. */
  #own(schema: JsonObject, copy: Record<string, JsonValue>, place: Place): void {
    for (const keyword of ["$ref", "$dynamicRef"]) {
      const ref = ownValue(schema, keyword);
      if (typeof ref !== "string") continue;
      const target = this.#reference(ref, below(place, keyword));
      // With both in one schema, both count.
      if (isJsonObject(target) && copy["$ref"] === undefined) Object.assign(copy, target);
      else copy["allOf"] = [...((copy["allOf"] as JsonValue[] | undefined) ?? []), target];
    }
    if (typeof copy["pattern"] === "string") this.#pattern(copy["pattern"], below(place, "pattern"));
    if (typeof copy["format"] === "string" && !Object.hasOwn(FORMATS, copy["format"])) delete copy["format"];
    const type = copy["type"];
    if (ownValue(schema, "nullable") === true && type !== undefined) {
      copy["type"] = [...new Set<JsonValue>([type, "null"].flat())];
    }
  }

  #keyword(shape: KeywordShape, value: JsonValue, place: Place): JsonValue {
    switch (shape) {
      case "value":
        return value;
      case "count":
        return Number(value);
      case "here":
      case "each":
        return this.#schema(value, place);
      case "here-list":
      case "list":
        return this.#list(value, place);
      case "each-or-list":
        return Array.isArray(value) ? this.#list(value, place) : this.#schema(value, place);
      case "here-map":
      case "map":
        return this.#map(value, place, (item, at) => this.#schema(item, at));
      case "pattern-map":
        return this.#map(value, place, (item, at, name) => {
          this.#pattern(name, at);
          return this.#schema(item, at);
        });
    }
  }

  #list(value: JsonValue, place: Place): JsonValue[] {
    return (value as readonly JsonValue[]).map((item, i) => this.#schema(item, below(place, i)));
  }

  #map(value: JsonValue, place: Place, read: (item: JsonValue, at: Place, name: string) => JsonValue): JsonValue {
    const copy = Object.create(null) as Record<string, JsonValue>;
    for (const [name, item] of Object.entries(value as JsonObject)) copy[name] = read(item, below(place, name), name);
    return copy;
  }

  #pattern(source: string, place: Place): void {
    if (this.patterns.has(source)) return;
    const outcome = this.#deps.compilePattern(source);
    if (!outcome.ok) {
      throw new SchemaRefused(
        `${jsonPointer(place.steps)}: pattern "${source.slice(0, 80)}" is refused: ${outcome.problem}`,
      );
    }
    this.#patternWork += outcome.work;
    if (this.patterns.size >= MAX_PATTERNS || this.#patternWork > MAX_PATTERN_WORK) {
      throw tooComplex(`its patterns are more than ${MAX_PATTERNS}, or too large together`);
    }
    this.patterns.set(source, outcome.pattern);
  }

  /** The reference as the validator will see it, its target read. */
  #reference(ref: string, place: Place): JsonValue {
    const target = this.#deps.refs.resolve(ref, place.base);
    if (target === undefined) {
      throw new SchemaRefused(
        `${jsonPointer(place.steps)}: "${ref.slice(0, 100)}" is not in the schema: only references to its own parts ("#…") are followed`,
      );
    }
    if (typeof target === "boolean") return target;
    const known = this.#names.get(target);
    if (known !== undefined) return refTo(known);
    const name = `r${this.#names.size}`;
    this.#names.set(target, name);
    if (target !== this.#root) {
      // It may stand where no schema is expected, under an unknown keyword.
      this.#check(target);
      this.#defs[name] = this.#object(target, place);
    }
    return refTo(name);
  }
}

function refTo(name: string): JsonObject {
  return { $ref: `${DEFS}${name}` };
}

function below(place: Place, step: string | number): Place {
  return { steps: [...place.steps, step], base: place.base };
}
