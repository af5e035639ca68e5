import { type JsonObject, type JsonValue, jsonTypeName, ownValue } from "../../core/json.ts";

/** The place of an argument in a template. */
export interface Reference {
  readonly param: string;
}

/** Literal text and references, in order. */
export type TextTemplate = readonly (string | Reference)[];

/** A template, or what is wrong with it. */
export type ParsedTemplate =
  | { readonly ok: true; readonly parts: TextTemplate }
  | { readonly ok: false; readonly problem: string };

/** Most references in one text. */
const MAX_REFERENCES = 1_000;

/** `{{`, `}}`, `{name}`, or a brace that belongs to none of them. */
const BRACES = /\{\{|\}\}|\{([^{}]+)\}|[{}]/g;

/** `$$`, `${name}`, `$name`, or `${` without an end. A dollar sign before anything else is itself. */
const DOLLARS = /\$\$|\$\{([^{}]+)\}|\$([\p{L}_][\p{L}\p{N}_]*)|\$\{/gu;

/** Parses `{param}` text, as URLs, query values and headers have it. */
export function parseBraces(text: string): ParsedTemplate {
  return parse(text, BRACES, (mark) => {
    if (mark === "{{" || mark === "}}") return mark.slice(1);
    return undefined;
  });
}

/** Parses `$param` text, as bodies have it. The longest name counts. */
export function parseDollars(text: string): ParsedTemplate {
  return parse(text, DOLLARS, (mark) => (mark === "$$" ? "$" : undefined));
}

function parse(text: string, marks: RegExp, literalOf: (mark: string) => string | undefined): ParsedTemplate {
  if (!/[{}$]/.test(text)) return { ok: true, parts: text === "" ? [] : [text] };
  const parts: (string | Reference)[] = [];
  let literal = "";
  let from = 0;
  for (const match of text.matchAll(marks)) {
    const [mark, name, longName] = match;
    literal += text.slice(from, match.index);
    from = match.index + mark.length;
    const param = name ?? longName;
    const escaped = literalOf(mark);
    if (escaped !== undefined) literal += escaped;
    else if (param === undefined) return { ok: false, problem: unmatched(mark) };
    else if (parts.length > 2 * MAX_REFERENCES)
      return { ok: false, problem: `holds more than ${MAX_REFERENCES} references` };
    else {
      if (literal !== "") parts.push(literal);
      literal = "";
      parts.push({ param });
    }
  }
  literal += text.slice(from);
  if (literal !== "") parts.push(literal);
  return { ok: true, parts };
}

function unmatched(mark: string): string {
  return mark === "${"
    ? "`${` has no name and `}` after it"
    : `\`${mark}\` stands alone; write \`${mark}${mark}\` for the character itself`;
}

/** The argument a reference stands for; `undefined` where it is absent. Null stands for absent outside of JSON bodies. */
export function argumentOf(reference: Reference, args: JsonObject): JsonValue | undefined {
  return ownValue(args, reference.param) ?? undefined;
}

/** The parameters a template names, in order. */
export function namesIn(template: TextTemplate): string[] {
  return template.flatMap((part) => (typeof part === "string" ? [] : [part.param]));
}

/** An argument cannot stand where the template puts it. The one who assembles the request names the tool. */
export class ValueRefused extends Error {
  readonly param: string;

  /** `why` goes on after the argument's name. */
  constructor(param: string, why: string) {
    super(why);
    this.name = "ValueRefused";
    this.param = param;
  }
}

/**
 * Text of a scalar argument: digits as they are, `true` and `false`.
 *
 * @throws ValueRefused for an array or object.
 */
export function scalarText(param: string, value: JsonValue, place: string): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object") return String(value);
  throw new ValueRefused(param, `${place} takes text, a number or a boolean, got ${jsonTypeName(value)}`);
}

/** Fills a template with scalars; `undefined` where one of its arguments is absent. `place` is named in errors. */
export function fillText(template: TextTemplate, args: JsonObject, place: string): string | undefined {
  let text = "";
  for (const part of template) {
    if (typeof part === "string") {
      text += part;
      continue;
    }
    const value = argumentOf(part, args);
    if (value === undefined) return undefined;
    text += scalarText(part.param, value, place);
  }
  return text;
}
