import { isJsonObject, type JsonValue, jsonPointer, ownValue } from "../../core/json.ts";
import type { McpChecker } from "./mcp-checker.ts";
import type { NamedValue, ValueTemplate } from "./mcp-config.ts";

const OF_ALL_CALLERS =
  "is not for this value, which is the same for all callers; a credential by role is `auth.bearer` of a remote server";

/** The named values of a map of the block: texts with `${VARIABLE}`, or `{ secret_ref: NAME }`. */
export function namedValues(checker: McpChecker, key: string): readonly NamedValue[] {
  return Object.entries(checker.object(key)).map(([name, value]) => ({
    name,
    value: valueTemplate(checker, value, jsonPointer([key, name])),
  }));
}

function valueTemplate(checker: McpChecker, value: JsonValue, pointer: string): ValueTemplate {
  if (isJsonObject(value)) {
    const reference = ownValue(value, "secret_ref");
    if (Object.hasOwn(value, "by_role")) checker.issue(`${pointer}/by_role`, OF_ALL_CALLERS);
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
