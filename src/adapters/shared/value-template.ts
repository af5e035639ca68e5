import { isJsonObject, type JsonObject, type JsonValue, jsonPointer, ownValue } from "../../core/json.ts";

/** A text with secrets in it; several pieces are one text. */
export type ValueTemplate = readonly (string | { readonly secretRef: string })[];

/** A named value: a header or a variable. */
export interface NamedValue {
  readonly name: string;
  readonly value: ValueTemplate;
}

/** Reads a block of a declaration, and keeps what is wrong with it. */
export interface BlockReader {
  /** A key that is a map; an empty one where it is not there. */
  object(key: string): JsonObject;
  /** `pointer` is within the block. */
  issue(pointer: string, message: string): void;
  /** Where a credential by role goes, for who looks for that in a value. Absent: nowhere. */
  readonly byRole?: string;
}

/** The named values of a map of the block: texts with `${VARIABLE}`, or `{ secret_ref: NAME }`. */
export function namedValues(checker: BlockReader, key: string): readonly NamedValue[] {
  return Object.entries(checker.object(key)).map(([name, value]) => ({
    name,
    value: valueTemplate(checker, value, jsonPointer([key, name])),
  }));
}

function valueTemplate(checker: BlockReader, value: JsonValue, pointer: string): ValueTemplate {
  if (isJsonObject(value)) {
    const reference = ownValue(value, "secret_ref");
    if (Object.hasOwn(value, "by_role")) {
      const hint = checker.byRole === undefined ? "" : `; a credential by role is ${checker.byRole}`;
      checker.issue(`${pointer}/by_role`, `is not for this value, which is the same for all callers${hint}`);
    }
    return typeof reference === "string" ? [{ secretRef: reference }] : [];
  }
  const text = typeof value === "string" ? value : "";
  if (text.includes("\0")) checker.issue(pointer, "holds a NUL, which it cannot");
  const parts: (string | { readonly secretRef: string })[] = [];
  let from = 0;
  for (const found of text.matchAll(/\$(?:\$(?=\{)|\{([A-Za-z_][A-Za-z0-9_]*)\})/g)) {
    parts.push(text.slice(from, found.index), found[1] === undefined ? "$" : { secretRef: found[1] });
    from = found.index + found[0].length;
  }
  parts.push(text.slice(from));
  const rest = parts.flatMap((part, i) =>
    typeof part === "string" && part !== "$" && parts[i - 1] !== "$" ? [part] : [],
  );
  if (rest.some((part) => part.includes("${"))) {
    checker.issue(pointer, "`${` without the name of a variable and `}`; write `$${` for the characters themselves");
  }
  return parts.filter((part) => part !== "");
}

/** References of the secrets in values, each once. */
export function referencesIn(values: readonly NamedValue[]): readonly string[] {
  const references = values.flatMap(({ value }) =>
    value.flatMap((part) => (typeof part === "string" ? [] : [part.secretRef])),
  );
  return [...new Set(references)];
}

/** Fills in the secrets as they are now. `secret` gives one by its reference. */
export function filledValue(value: ValueTemplate, secret: (reference: string) => string): string {
  return value.map((part) => (typeof part === "string" ? part : secret(part.secretRef))).join("");
}
