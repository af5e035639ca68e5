import { parseDocument } from "../../src/config/parse-document.ts";

/** Problems of a text as `line:column message`; empty where it is read. */
export function problemLines(text: string, format: "yaml" | "json" = "yaml"): string[] {
  const outcome = parseDocument(text, format);
  return outcome.ok ? [] : outcome.problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
}
