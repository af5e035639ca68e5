import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue, pointerSteps } from "../core/json.ts";
import { eitherSchema, meetSchema } from "./property-schemas.ts";

/** What a schema says of an object, without how it is put together. */
export interface FlatShape {
  /** By name. */
  readonly properties: ReadonlyMap<string, JsonValue>;
  /** Given in every case. */
  readonly required: ReadonlySet<string>;
  /** Names that may be given where all others are refused; `undefined`: any. */
  readonly only: ReadonlySet<string> | undefined;
  /** Whether other properties than those found may be allowed by a part of the schema. */
  readonly open: boolean;
  /** What goes together, a sentence each, at most {@link MAX_NOTES}. */
  readonly notes: readonly string[];
}

/** Schemas and properties looked into, some 20 ms: what references of references lead to may be any number. */
const MAX_WORK = 100_000;
const MAX_NOTES = 8;
/** Alternatives told by a note. */
const MAX_TOLD = 20;
const MORE_RULES = "More rules say what goes together; a call that breaks one is refused and told which.";

const ANYTHING: FlatShape = { properties: new Map(), required: new Set(), only: undefined, open: false, notes: [] };
/** What is not looked into may allow anything. */
const UNKNOWN: FlatShape = { ...ANYTHING, open: true };

/** Reads what the combinations of a schema come to. Bounded: what is too much or cannot be found counts as anything. */
export class FlatReader {
  readonly #root: JsonObject;
  /** What references lead to, while it is read unknown: one that leads back says nothing new. */
  readonly #referred = new Map<string, FlatShape | undefined>();
  #left = MAX_WORK;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  /** What the schema says; `undefined` where nothing fits it. */
  read(schema: JsonObject): FlatShape {
    return this.#shape(schema) ?? ANYTHING;
  }

  #shape(schema: JsonValue): FlatShape | undefined {
    if (schema === false) return undefined;
    if (!isJsonObject(schema)) return ANYTHING;
    if (this.#left <= 0) return UNKNOWN;
    let shape: FlatShape | undefined = ownShape(schema);
    this.#left -= 1 + shape.properties.size;
    // Each is read when those before are merged: where there is too much, what was found first stands.
    for (const part of this.#parts(schema)) {
      shape = shape === undefined || part === undefined ? undefined : this.#both(shape, part);
    }
    for (const keyword of ["anyOf", "oneOf"] as const) {
      const branches = ownValue(schema, keyword);
      if (shape !== undefined && isJsonArray(branches)) shape = this.#alternatives(shape, branches, keyword);
    }
    return shape;
  }

  #both(one: FlatShape, other: FlatShape): FlatShape {
    if (other === ANYTHING) return one;
    this.#left -= one.properties.size + other.properties.size;
    return this.#left > 0 ? both(one, other) : { ...one, open: true };
  }

  #reference(schema: JsonObject): FlatShape | undefined {
    const reference = ownValue(schema, "$ref");
    if (typeof reference !== "string") return ANYTHING;
    if (this.#referred.has(reference)) return this.#referred.get(reference);
    const target = targetOf(this.#root, reference);
    this.#referred.set(reference, UNKNOWN);
    const shape = target === undefined ? UNKNOWN : this.#shape(target);
    this.#referred.set(reference, shape);
    return shape;
  }

  *#parts(schema: JsonObject): Generator<FlatShape | undefined, void, undefined> {
    yield this.#reference(schema);
    const all = ownValue(schema, "allOf");
    if (isJsonArray(all)) for (const part of all) yield this.#shape(part);
    yield this.#conditions(schema);
  }

  /** What holds under a condition may be given and need not be. What a condition asks of a property is no rule for it. */
  #conditions(schema: JsonObject): FlatShape {
    const ruled = conditional(schema);
    const asked = ownValue(schema, "if");
    const open: boolean[] = [];
    const properties = new Map<string, JsonValue>();
    const show = (part: JsonValue, ofProperty: (declared: JsonValue) => JsonValue): void => {
      const shape = this.#shape(part);
      for (const [name, value] of shape?.properties ?? []) {
        if (!properties.has(name)) properties.set(name, ofProperty(value));
      }
      open.push(shape?.open === true);
    };
    for (const part of ruled) show(part, (declared) => declared);
    if (asked !== undefined) show(asked, () => ({}));
    const more = ruled.length > 0 || ownValue(schema, "not") !== undefined;
    const notes = [...needs(schema), ...(more ? [MORE_RULES] : [])];
    if (properties.size === 0 && notes.length === 0 && !open.includes(true)) return ANYTHING;
    return { ...ANYTHING, properties, open: open.includes(true), notes };
  }

  #alternatives(base: FlatShape, branches: readonly JsonValue[], keyword: "anyOf" | "oneOf"): FlatShape | undefined {
    const shapes = branches.map((branch) => this.#shape(branch)).filter((shape) => shape !== undefined);
    const [first, ...others] = shapes;
    if (first === undefined) return undefined;
    const merged = others.length === 0 ? first : either(shapes);
    const note = others.length === 0 ? undefined : told(base, shapes, keyword);
    return this.#both(base, { ...merged, notes: [...(note === undefined ? [] : [note]), ...merged.notes] });
  }
}

function ownShape(schema: JsonObject): FlatShape {
  const declared = ownValue(schema, "properties");
  const properties = new Map(isJsonObject(declared) ? Object.entries(declared) : []);
  const required = ownValue(schema, "required");
  const others = ownValue(schema, "additionalProperties");
  const patterns = ownValue(schema, "patternProperties") !== undefined;
  const elsewhere = ownValue(schema, "unevaluatedProperties");
  return {
    properties,
    required: new Set((isJsonArray(required) ? required : []).filter(isText)),
    only: others === false && !patterns ? new Set(properties.keys()) : undefined,
    open: patterns || (others !== undefined && others !== false) || (elsewhere !== undefined && elsewhere !== false),
    notes: [],
  };
}

/** Both hold. Where they cannot be told as one, the first is shown. */
function both(one: FlatShape, other: FlatShape): FlatShape {
  const only =
    one.only === undefined || other.only === undefined ? (one.only ?? other.only) : common(one.only, other.only);
  const properties = new Map(one.properties);
  for (const [name, schema] of other.properties) {
    const known = properties.get(name);
    properties.set(name, known === undefined ? schema : meetSchema(known, schema));
  }
  if (only !== undefined) for (const name of properties.keys()) if (!only.has(name)) properties.delete(name);
  return {
    properties,
    required: new Set([...one.required, ...other.required]),
    only,
    open: one.open || other.open,
    notes: [...new Set([...one.notes, ...other.notes])].slice(0, MAX_NOTES),
  };
}

/** One of them holds. */
function either(shapes: readonly FlatShape[]): FlatShape {
  const names = new Set(shapes.flatMap(({ properties }) => [...properties.keys()]));
  const properties = new Map<string, JsonValue>();
  for (const name of names) {
    properties.set(name, eitherSchema(shapes.flatMap((shape) => shape.properties.get(name) ?? [])));
  }
  const [first, ...others] = shapes;
  const required = others.reduce((rest, shape) => common(rest, shape.required), first?.required ?? new Set<string>());
  const closed = shapes.every(({ only }) => only !== undefined);
  return {
    properties,
    required,
    only: closed ? new Set(shapes.flatMap(({ only }) => [...(only ?? [])])) : undefined,
    open: shapes.some(({ open }) => open),
    notes: [...new Set(shapes.flatMap(({ notes }) => notes))].slice(0, MAX_NOTES),
  };
}

function common(one: ReadonlySet<string>, other: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...one].filter((name) => other.has(name)));
}

/** "Give at least one of: `a`; `b` and `c`." Nothing where an alternative asks for nothing. */
function told(base: FlatShape, shapes: readonly FlatShape[], keyword: "anyOf" | "oneOf"): string | undefined {
  const words = [...new Set(shapes.map((shape) => wordsOf(base, shape)))];
  if (words.includes("") || words.length < 2) return words.length < 2 ? undefined : MORE_RULES;
  const more = words.length > MAX_TOLD ? `; ${words.length - MAX_TOLD} more` : "";
  const count = keyword === "anyOf" ? "at least" : "exactly";
  return `Give ${count} one of: ${words.slice(0, MAX_TOLD).join("; ")}${more}.`;
}

function wordsOf(base: FlatShape, { required, properties }: FlatShape): string {
  const fixed = [...properties].flatMap(([name, schema]) => {
    const value = isJsonObject(schema) ? ownValue(schema, "const") : undefined;
    return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
      ? [[name, `\`${name}\` = ${JSON.stringify(value)}`] as const]
      : [];
  });
  const known = new Set(fixed.map(([name]) => name));
  const asked = [...required]
    .filter((name) => !base.required.has(name) && !known.has(name))
    .map((name) => `\`${name}\``);
  return [...fixed.map(([, text]) => text), ...asked].join(" and ");
}

/** The schemas that hold under a condition. */
function conditional(schema: JsonObject): readonly JsonValue[] {
  const branches = ["then", "else"].flatMap((key) => ownValue(schema, key) ?? []);
  const dependent = ["dependentSchemas", "dependencies"].flatMap((key) => {
    const schemas = ownValue(schema, key);
    return isJsonObject(schemas) ? Object.values(schemas).filter((value) => !isJsonArray(value)) : [];
  });
  return [...branches, ...dependent];
}

/** What has to come with what. */
function needs(schema: JsonObject): readonly string[] {
  return ["dependentRequired", "dependencies"].flatMap((key) => {
    const lists = ownValue(schema, key);
    return Object.entries(isJsonObject(lists) ? lists : {}).flatMap(([name, list]) =>
      isJsonArray(list) && list.length > 0 ? [`\`${name}\` needs ${inWords(list.filter(isText))}.`] : [],
    );
  });
}

function isText(value: JsonValue): value is string {
  return typeof value === "string";
}

function inWords(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(" and ");
}

/** What a reference within the schema leads to. */
function targetOf(root: JsonObject, reference: string): JsonValue | undefined {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  let at: JsonValue | undefined = root;
  for (const step of pointerSteps(decoded(reference.slice(1)))) {
    if (isJsonArray(at)) at = at[Number(step)];
    else if (isJsonObject(at)) at = ownValue(at, step);
    else return undefined;
  }
  return at;
}

function decoded(pointer: string): string {
  try {
    return decodeURIComponent(pointer);
  } catch {
    // What is no encoding stands for itself, and leads nowhere or to a name with a per cent sign.
    return pointer;
  }
}
