import type { JsonObject } from "../../core/json.ts";
import { argumentOf, scalarText, type TextTemplate, ValueRefused } from "../shared/text-template.ts";

/** What no XML document can hold, in whatever form. Source: XML 1.0, section 2.2. */
const NOT_XML = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/u;

/** Characters that mean something to XML and HTML, or that a parser would change in an attribute. */
const MARKUP = /[&<>"'\t\n\r]/g;

/**
 * Fills a text body with scalars. `markup`: as text or attribute value of XML and HTML, so that no argument becomes
 * a tag, an entity or the end of an attribute.
 *
 * @throws ValueRefused for an argument that is absent, no scalar, or holds what XML cannot.
 */
export function fillTextBody(parts: TextTemplate, args: JsonObject, markup: boolean): string {
  let text = "";
  for (const part of parts) {
    if (typeof part === "string") {
      text += part;
      continue;
    }
    const value = argumentOf(part, args);
    if (value === undefined) throw new ValueRefused(part.param, "is missing, and the body needs it");
    const filled = scalarText(part.param, value, "a text body");
    text += markup ? escapeMarkup(part.param, filled) : filled;
  }
  return text;
}

function escapeMarkup(param: string, text: string): string {
  if (NOT_XML.test(text)) throw new ValueRefused(param, "holds a character that XML cannot carry");
  return text.replace(MARKUP, (char) => `&#${char.charCodeAt(0)};`);
}

/** The parameters of a markup template that stand where escaping does not work: in a CDATA section or a comment. */
export function unescapableParams(parts: TextTemplate): readonly string[] {
  const params: string[] = [];
  let before = "";
  for (const part of parts) {
    if (typeof part === "string") before += part;
    else if (isOpen(before, "<![CDATA[", "]]>") || isOpen(before, "<!--", "-->")) params.push(part.param);
  }
  return params;
}

function isOpen(text: string, start: string, end: string): boolean {
  return text.lastIndexOf(start) > text.lastIndexOf(end);
}
