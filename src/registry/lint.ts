import type { SourceDocument } from "../config/source-document.ts";
import { inline, valueText } from "../config/wording.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import type { ResultRules } from "../core/shaper.ts";
import type { DeclaredTool } from "../core/tool.ts";

/** Words a description needs at least; a Chinese, Japanese or Korean character counts as half a word. */
const LEAST_WORDS = 4;

/**
 * Notes on what a model will make of a tool: they break nothing. A model chooses a tool by its name and description
 * alone, and reads all of a result that no `data_field` narrows.
 */
export function lintDeclaration(tool: DeclaredTool, rules: ResultRules, document: SourceDocument): ConfigIssue[] {
  return [...lintDescription(tool, document), ...lintResult(rules, document)];
}

function lintDescription({ name, description }: DeclaredTool, document: SourceDocument): ConfigIssue[] {
  const pointer = "/description";
  const notes: ConfigIssue[] = [];
  const comment = document.comment(pointer);
  if (comment !== undefined) {
    notes.push({
      pointer,
      message:
        "`description` ends before ` #`, which begins a comment: quote it if the rest belongs to it, or move the comment to a line of its own",
    });
  }
  if (description.trim() === "") {
    notes.push({
      pointer,
      message: "no `description`: say what the tool does and when to use it, since a model chooses by it",
    });
  } else if (!hasWords(description) || saysOnlyName(name, description)) {
    notes.push({
      pointer,
      message: `\`description\` is too vague to choose by ("${inline(description.trim())}"): say what the tool does, when to use it and what its parameters mean`,
    });
  }
  return notes;
}

function lintResult(rules: ResultRules, document: SourceDocument): ConfigIssue[] {
  const notes: ConfigIssue[] = [];
  const { successValue } = rules;
  const pointer = "/result/success_value";
  const source = document.scalarSource(pointer);
  if (typeof successValue === "number" && source !== undefined && source !== String(successValue)) {
    const message = `\`result.success_value\`: ${inline(source)} is read as ${valueText(successValue)}: quote it if the answer holds text`;
    notes.push({ pointer, message });
  }
  const narrowed = rules.dataField ?? rules.select ?? rules.template ?? rules.fields?.keep;
  if (rules.successField === undefined || narrowed !== undefined) return notes;
  const message =
    "`result.success_field` is set without `data_field`: the model reads the whole answer, code and message included";
  return [...notes, { pointer: "/result/success_field", message }];
}

/** Whether a text has words enough; as a rule that shows at first sight. */
function hasWords(text: string): boolean {
  return seenWords(text) >= LEAST_WORDS || countWords(text) >= LEAST_WORDS;
}

/** At most as many words as {@link countWords} finds: those of plain letters in the beginning of a text. */
function seenWords(text: string): number {
  let words = 0;
  let before = " ";
  for (let i = 0; i < text.length && words < LEAST_WORDS; i++) {
    const sign = text.charAt(i);
    if (isIdeograph(sign)) words += 0.5;
    else if (isPlainLetter(sign) && before < "\x80" && !isPlainLetter(before)) words += 1;
    before = sign;
  }
  return words;
}

function isPlainLetter(sign: string): boolean {
  return (sign >= "a" && sign <= "z") || (sign >= "A" && sign <= "Z") || (sign >= "0" && sign <= "9");
}

/** Of the block of the common ones. */
function isIdeograph(sign: string): boolean {
  return sign >= "\u4e00" && sign <= "\u9fff";
}

function countWords(text: string): number {
  const ideographs =
    text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu)?.length ?? 0;
  const words = text
    .match(/[\p{L}\p{N}]+/gu)
    ?.filter((word) => !/^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u.test(word));
  return ideographs / 2 + (words?.length ?? 0);
}

function saysOnlyName(name: string, description: string): boolean {
  const first = description.charAt(0);
  // Nearly always the first letter tells.
  if (isIdeograph(first)) return false;
  if (isPlainLetter(first) && isPlainLetter(name.charAt(0)) && first.toLowerCase() !== name.charAt(0).toLowerCase()) {
    return false;
  }
  return letters(name) === letters(description);
}

function letters(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
}
