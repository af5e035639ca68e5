import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  jsonPointer,
  ownValue,
  stringifyJson,
} from "../../core/json.ts";
import { parseDollars, type Reference, type TextTemplate } from "./text-template.ts";

/** A compiled JSON body. */
export type BodyTemplate =
  | { readonly kind: "constant"; readonly value: JsonValue }
  | { readonly kind: "reference"; readonly reference: Reference }
  | { readonly kind: "text"; readonly parts: TextTemplate }
  | { readonly kind: "list"; readonly items: readonly BodyTemplate[] }
  | { readonly kind: "object"; readonly entries: readonly (readonly [key: string, value: BodyTemplate])[] };

/** What compiling a body reports besides its result. */
export interface BodyVisitor {
  /** A parameter is named. `pointer` is the JSON pointer inside the body. */
  reference(param: string, pointer: string): void;
  /** A text is no template. */
  problem(text: string, pointer: string): void;
}

/** Compiles a body once, so that a call only fills it in. */
export function compileBody(
  body: JsonValue,
  visitor: BodyVisitor,
  steps: readonly (string | number)[] = [],
): BodyTemplate {
  if (typeof body === "string") return compileText(body, visitor, jsonPointer(steps));
  if (isJsonArray(body)) {
    const items = body.map((item, i) => compileBody(item, visitor, [...steps, i]));
    return items.every((item) => item.kind === "constant")
      ? { kind: "constant", value: items.map((item) => item.value) }
      : { kind: "list", items };
  }
  if (!isJsonObject(body)) return { kind: "constant", value: body };
  const entries = Object.entries(body).map(
    ([key, value]) => [key, compileBody(value, visitor, [...steps, key])] as const,
  );
  const constants = entries.flatMap(([key, value]) => (value.kind === "constant" ? [[key, value.value] as const] : []));
  return constants.length === entries.length
    ? { kind: "constant", value: Object.fromEntries(constants) }
    : { kind: "object", entries };
}

function compileText(text: string, visitor: BodyVisitor, pointer: string): BodyTemplate {
  const parsed = parseDollars(text);
  if (!parsed.ok) {
    visitor.problem(parsed.problem, pointer);
    return { kind: "constant", value: text };
  }
  for (const part of parsed.parts) if (typeof part === "object") visitor.reference(part.param, pointer);
  const [only] = parsed.parts;
  if (parsed.parts.length === 1 && typeof only === "object") return { kind: "reference", reference: only };
  if (parsed.parts.every((part) => typeof part === "string")) return { kind: "constant", value: parsed.parts.join("") };
  return { kind: "text", parts: parsed.parts };
}

/**
 * Fills a body. A whole-value reference keeps its argument's JSON type; inside text, text stands as it is and
 * everything else as JSON. A key, item or text whose argument is absent is left out: `undefined`.
 * `keepsNull` tells parameters whose schema allows null; for others null means absent.
 */
export function fillBody(
  template: BodyTemplate,
  args: JsonObject,
  keepsNull: ReadonlySet<string>,
): JsonValue | undefined {
  switch (template.kind) {
    case "constant":
      return template.value;
    case "reference":
      return bodyValue(template.reference, args, keepsNull);
    case "text":
      return fillBodyText(template.parts, args, keepsNull);
    case "list":
      return template.items.map((item) => fillBody(item, args, keepsNull)).filter((item) => item !== undefined);
    case "object": {
      const filled: [string, JsonValue][] = [];
      for (const [key, entry] of template.entries) {
        const value = fillBody(entry, args, keepsNull);
        if (value !== undefined) filled.push([key, value]);
      }
      return Object.fromEntries(filled);
    }
  }
}

/** An argument as a JSON body takes it; `undefined` where it is absent. */
export function bodyValue(
  reference: Reference,
  args: JsonObject,
  keepsNull: ReadonlySet<string>,
): JsonValue | undefined {
  const value = ownValue(args, reference.param);
  return value === null && !keepsNull.has(reference.param) ? undefined : value;
}

function fillBodyText(parts: TextTemplate, args: JsonObject, keepsNull: ReadonlySet<string>): string | undefined {
  let text = "";
  for (const part of parts) {
    if (typeof part === "string") {
      text += part;
      continue;
    }
    const value = bodyValue(part, args, keepsNull);
    if (value === undefined) return undefined;
    text += typeof value === "string" ? value : stringifyJson(value);
  }
  return text;
}
