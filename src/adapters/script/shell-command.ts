import type { TextTemplate } from "../shared/text-template.ts";
import type { ShellValue } from "./script-config.ts";

/** A command line with its values apart, or what is wrong with it. */
export type CompiledShell =
  | { readonly ok: true; readonly text: string; readonly values: readonly ShellValue[] }
  | { readonly ok: false; readonly problem: string };

type Quote = "none" | "single" | "double";

/**
 * Compiles a command line for `sh -c`: each placeholder becomes a positional parameter, whose value no shell reads again
 * as a command, whatever it holds. In quotes of its own it stays one word.
 */
export function compileShell(parts: TextTemplate): CompiledShell {
  let text = "";
  const values: ShellValue[] = [];
  for (const part of parts) {
    if (typeof part === "string") {
      text += part;
      continue;
    }
    const { quote, quoted } = quoteAt(text);
    const written = `\`{${part.param}}\``;
    if (quote === "single") {
      return { ok: false, problem: `${written} stands in single quotes, where a shell fills nothing in; remove them` };
    }
    if (quote === "double" && /\$\(|`/.test(quoted)) {
      return { ok: false, problem: `${written} stands in a command in double quotes; write it outside of them` };
    }
    values.push({ param: part.param, bare: isBare(text) });
    const place = `\${${values.length}}`;
    text += quote === "double" ? place : `"${place}"`;
  }
  return { ok: true, text, values };
}

/** The kind of quotes that are open at the end of the text, and what stands in them so far. */
function quoteAt(text: string): { readonly quote: Quote; readonly quoted: string } {
  let quote: Quote = "none";
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (char === "\\" && quote !== "single") i++;
    else if (char === "'" && quote !== "double") quote = quote === "single" ? "none" : "single";
    else if (char === '"' && quote !== "single") quote = quote === "double" ? "none" : "double";
    else continue;
    from = i + 1;
  }
  return { quote, quoted: text.slice(from) };
}

/** Whether a word begins at the end of the text, in a command that has no `--` yet. */
function isBare(text: string): boolean {
  if (!/(^|[\s;|&(`])["]?$/.test(text)) return false;
  const command = /[^;|&\n(`]*$/.exec(text)?.[0] ?? "";
  return !/(^|\s)--\s/.test(command);
}
