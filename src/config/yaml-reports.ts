import type { ErrorCode } from "yaml";
import { MAX_JSON_DEPTH } from "../core/json.ts";
import type { LineIndex } from "./source-document.ts";
import { inline, TAB_INDENT } from "./wording.ts";

/** What the composer found, before it is put in our words. */
export interface YamlReport {
  readonly code: ErrorCode;
  readonly start: number;
  readonly end: number;
}

/** What a report is about. */
interface Place {
  /** The text reported. */
  readonly shown: string;
  /** The character before it. */
  readonly touching: string;
  /** The last character before it on its line that is no space. */
  readonly before: string;
  /** Its line. */
  readonly line: string;
}

const INDENTATION = "the indentation does not fit: entries of one mapping or list begin in the same column";

const NOT_SUPPORTED_TAG = ({ shown }: Place): string =>
  `the tag ${code(shown)} is not supported or does not fit the value: remove it`;

const WORDS: Readonly<Record<ErrorCode, string | ((place: Place) => string)>> = {
  ALIAS_PROPS: "an alias takes no anchor and no tag",
  BAD_ALIAS: "an anchor or alias without a name: quote the value if it is text",
  BAD_COLLECTION_TYPE: NOT_SUPPORTED_TAG,
  BAD_DIRECTIVE: "directives (lines that begin with %) are not supported: remove the line",
  BAD_DQ_ESCAPE: "an unknown escape in double quotes: write \\\\ for a backslash, or use single quotes",
  BAD_INDENT: INDENTATION,
  BAD_PROP_ORDER: "an anchor or tag stands before the sign it belongs behind",
  BAD_SCALAR_START: ({ shown }) => `a value cannot begin with ${code(shown)}: quote it`,
  BLOCK_AS_IMPLICIT_KEY: ({ line }) =>
    /^\s*- /.test(line)
      ? "this list entry does not begin in the column of the ones above it"
      : "a second `: ` in one value makes it a nested key: quote the value, or begin the mapping on its own line",
  BLOCK_IN_FLOW: "entries inside { } and [ ] are separated by commas: is one missing here?",
  DUPLICATE_KEY: "a key is written twice",
  IMPOSSIBLE: "this cannot be read",
  KEY_OVER_1024_CHARS: "a key is longer than 1,024 characters",
  MISSING_CHAR: missing,
  MULTILINE_IMPLICIT_KEY:
    "the lines from here on read as one key: is a `:`, the space behind it or a comma missing, or the indentation too deep?",
  MULTIPLE_ANCHORS: "a value takes one anchor at most",
  MULTIPLE_DOCS: "multi-document files are not supported: write one file for each",
  MULTIPLE_TAGS: "a value takes one tag at most",
  NON_STRING_KEY: "a key must be text: quote it",
  RESOURCE_EXHAUSTION: `nested deeper than ${MAX_JSON_DEPTH} levels`,
  TAB_AS_INDENT: TAB_INDENT,
  TAG_RESOLVE_FAILED: NOT_SUPPORTED_TAG,
  UNEXPECTED_TOKEN: unexpected,
};

/** A report in one line: what is wrong and how to mend it. */
export function wordReport(report: YamlReport, text: string, lines: LineIndex): string {
  const { line: number, column } = lines.position(report.start);
  const line = lines.text(number);
  if (/^ *\t/.test(line)) return TAB_INDENT;
  const words = WORDS[report.code];
  if (typeof words === "string") return words;
  const head = line.slice(0, column - 1);
  return words({
    shown: text.slice(report.start, report.end).trim(),
    touching: head.at(-1) ?? "",
    before: head.trimEnd().at(-1) ?? "",
    line,
  });
}

function unexpected({ shown, touching, before }: Place): string {
  if (/["'\]}]/.test(before))
    return `${code(shown)} follows the ${code(before)} that ends the value: quote the whole value`;
  if (/[|>]/.test(touching)) return `${code(shown)}: behind \`|\` and \`>\` stand only a digit, \`+\` or \`-\``;
  if (/^[\]}]/.test(shown)) return `${code(shown)} closes nothing`;
  if (shown === ",") return "a comma with nothing before it";
  if (shown === "-") return "a list begins on the line below its key";
  return `${code(shown)} has no place here: quote the value if it is text`;
}

function missing({ shown, before, line }: Place): string {
  if (shown.startsWith("#")) return "a comment needs a space before its `#`";
  const words = line.trim();
  if (before === "" && /^[\w-]+:\s/.test(words)) return INDENTATION;
  return words !== "" && !/:(?:\s|$)/.test(words)
    ? `${code(words)} is no \`key: value\`: is the \`:\` missing, or the file half written?`
    : "a `,` or a space is missing before this";
}

function code(text: string): string {
  return text.includes("`") ? JSON.stringify(inline(text, 30)) : `\`${inline(text, 30)}\``;
}
