import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue, pointerSteps } from "../../core/json.ts";
import type { NamedDialect } from "./dialect.ts";

/** Finds what references lead to, inside one document. */
export class RefResolver {
  readonly #anchorOf: (schema: JsonObject) => string | undefined;
  readonly #anchors = new Map<JsonObject, ReadonlyMap<string, JsonObject>>();

  /** The keyword that names a schema. */
  readonly #idKey: "$id" | "id";

  constructor(dialect: NamedDialect) {
    this.#idKey = dialect === "draft-04" ? "id" : "$id";
    this.#anchorOf = dialect.startsWith("draft") ? (schema) => fragmentId(schema, this.#idKey) : anchorName;
  }

  /** Whether references in the schema are relative to itself. One whose name is a mere fragment has an anchor by it. */
  isResource(schema: JsonObject): boolean {
    const id = ownValue(schema, this.#idKey);
    return typeof id === "string" && !id.startsWith("#");
  }

  /**
   * The schema a reference leads to, inside the schema resource `base`; `undefined` where it leads nowhere or out of
   * it. A dynamic reference leads to the same place as a plain one, since one document has one scope.
   */
  resolve(ref: string, base: JsonObject): JsonObject | boolean | undefined {
    const id = ownValue(base, this.#idKey);
    const own = typeof id === "string" ? id.replace(/#$/, "") : "";
    const local = own !== "" && ref.startsWith(`${own}#`) ? ref.slice(own.length) : ref;
    const fragment = local.startsWith("#") ? decode(local.slice(1)) : undefined;
    if (fragment === undefined) return undefined;
    const isPointer = fragment === "" || fragment.startsWith("/");
    const target = isPointer ? follow(base, fragment) : this.#anchorsIn(base).get(fragment);
    return typeof target === "boolean" || (target !== undefined && isJsonObject(target)) ? target : undefined;
  }

  #anchorsIn(base: JsonObject): ReadonlyMap<string, JsonObject> {
    const known = this.#anchors.get(base);
    if (known !== undefined) return known;
    const found = new Map<string, JsonObject>();
    const visit = (value: JsonValue): void => {
      if (typeof value !== "object" || value === null) return;
      const name = isJsonObject(value) ? this.#anchorOf(value) : undefined;
      if (name !== undefined && isJsonObject(value) && !found.has(name)) found.set(name, value);
      for (const item of Object.values(value)) visit(item);
    };
    visit(base);
    this.#anchors.set(base, found);
    return found;
  }
}

function anchorName(schema: JsonObject): string | undefined {
  const name = ownValue(schema, "$anchor") ?? ownValue(schema, "$dynamicAnchor");
  return typeof name === "string" ? name : undefined;
}

/** Draft-07 and those before it write an anchor as an `$id` that is a mere fragment. */
function fragmentId(schema: JsonObject, idKey: string): string | undefined {
  const id = ownValue(schema, idKey);
  return typeof id === "string" && id.startsWith("#") ? id.slice(1) : undefined;
}

function decode(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

function follow(base: JsonObject, pointer: string): JsonValue | undefined {
  let at: JsonValue | undefined = base;
  for (const step of pointerSteps(pointer)) {
    if (isJsonArray(at)) at = /^\d+$/.test(step) ? at[Number(step)] : undefined;
    else at = at !== undefined && isJsonObject(at) ? ownValue(at, step) : undefined;
  }
  return at;
}
