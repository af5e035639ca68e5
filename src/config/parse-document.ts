import { MAX_JSON_DEPTH } from "../core/json.ts";
import { readJson } from "./json-document.ts";
import { readPlainYaml } from "./plain-yaml.ts";
import type { SharedParts } from "./shared-parts.ts";
import type { Finding, LineIndex, SourceDocument, SourceNode, SourceProblem } from "./source-document.ts";
import { createSourceDocument, indexLines, mappingNode } from "./source-document.ts";
import { inOneGo, type Steps } from "./steps.ts";
import { holdsLoneSurrogate, LONE_SURROGATE, valueText } from "./wording.ts";
import { readYaml } from "./yaml-document.ts";

/** Longest text of a document, in bytes of UTF-8. */
const MAX_DOCUMENT_BYTES = 1_048_576;

/** Most problems told of one document; what is over is counted. */
const MAX_PROBLEMS = 50;

const BYTE_ORDER_MARK = "\ufeff";

/** Most lines of a document: enough for whatever is allowed in one, and few enough to be found in a moment. */
const MAX_LINES = { yaml: 10_000, json: 50_000 } as const;

/** Longest YAML that is not in the plain form, in UTF-16 code units: the whole reader takes its time for each. */
const MAX_WHOLE_YAML = 256 * 1024;

/** Control characters other than tab and line ends; a CR that no LF follows; byte order marks. */
const BAD_SIGN = /[^\t\n\r -~\u0085\u00a0-\ufefe\uff00-\uffff]|\r(?!\n)/g;

/** The same, and halves of characters. */
const BAD_SIGN_OR_SURROGATE = /[^\t\n\r -~\u0085\u00a0-\ud7ff\ue000-\ufefe\uff00-\uffff]|\r(?!\n)/gu;

/** Outcome of reading a document: all problems of its text, or the document. */
export type DocumentOutcome =
  | { readonly ok: true; readonly document: SourceDocument }
  | { readonly ok: false; readonly problems: readonly SourceProblem[] };

/** How a text is taken. */
export interface ParseDocumentOptions {
  /** A text that holds nothing, or comments alone, is a mapping without keys. Default: it is refused. */
  readonly allowEmpty?: boolean;
  /** Parts that this document may have in common with others. Default: it is read for itself. */
  readonly parts?: SharedParts;
}

/**
 * Reads a mapping from YAML or JSON text. What YAML allows and a reader would not expect is refused: keys written
 * twice, several documents, tags, directives, templates without quotes. Never throws for what the text holds.
 */
export function parseDocument(
  text: string,
  format: "yaml" | "json",
  options: ParseDocumentOptions = {},
): DocumentOutcome {
  return inOneGo(readDocument(text, format, options));
}

/** The same in steps. */
export function* readDocument(
  text: string,
  format: "yaml" | "json",
  options: ParseDocumentOptions = {},
): Steps<DocumentOutcome> {
  const body = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  const lines = indexLines(body);
  const read = yield* readText(body, format, { lines, parts: options.parts });
  if (read.findings.length > 0) return refused(read.findings, lines);
  const nothing = options.allowEmpty === true ? mappingNode(new Map(), 0) : undefined;
  const root = read.root === undefined || read.root.plain === "" ? nothing : read.root;
  const document = root === undefined || isOverLimit(root) ? undefined : createSourceDocument(root, lines);
  return document === undefined ? refused([unfit(root)], lines) : { ok: true, document };
}

/** In order of position, as many as help. */
export function orderProblems<P extends SourceProblem>(problems: readonly P[]): P[] {
  const ordered = problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
  const rest = ordered.length - MAX_PROBLEMS;
  return ordered
    .slice(0, MAX_PROBLEMS)
    .map((problem, i) =>
      rest > 0 && i === MAX_PROBLEMS - 1
        ? { ...problem, message: `${problem.message} (and ${rest} more problems in this file)` }
        : problem,
    );
}

/** A text and its places, as far as there is no finding. */
function* readText(
  text: string,
  format: "yaml" | "json",
  { lines, parts }: { readonly lines: LineIndex; readonly parts: SharedParts | undefined },
): Steps<{ readonly root: SourceNode | undefined; readonly findings: readonly Finding[] }> {
  const findings = badLength(text, format) ?? badSigns(text);
  if (findings.length > 0) return { root: undefined, findings };
  if (format === "json") return readJson(text, lines);
  const root = readPlainYaml(text, parts);
  if (root !== undefined) return { root, findings };
  if (text.length > MAX_WHOLE_YAML) return { root, findings: [TOO_LONG_FOR_WHOLE] };
  yield;
  return yield* readYaml(text, lines);
}

function refused(findings: readonly Finding[], lines: LineIndex): DocumentOutcome {
  const problems = findings.map(({ offset, message }) => ({ ...lines.position(offset), message }));
  return { ok: false, problems: orderProblems(problems) };
}

const TOO_LONG_FOR_WHOLE: Finding = {
  offset: 0,
  message: `the text has more than ${MAX_WHOLE_YAML} characters (256 Ki), and is not in the plain form that may be longer: shorten it, or write it as JSON`,
};

function badLength(text: string, format: "yaml" | "json"): Finding[] | undefined {
  const bytes = text.length * 3 > MAX_DOCUMENT_BYTES ? Buffer.byteLength(text) : 0;
  if (bytes > MAX_DOCUMENT_BYTES) {
    return [{ offset: 0, message: `the text has ${bytes} bytes, and ${MAX_DOCUMENT_BYTES} (1 MiB) are allowed` }];
  }
  const limit = MAX_LINES[format];
  return hasMoreLines(text, limit) ? [{ offset: 0, message: `more than ${limit} lines in one document` }] : undefined;
}

function hasMoreLines(text: string, limit: number): boolean {
  if (text.length <= limit) return false;
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0 && lines <= limit; at = text.indexOf("\n", at + 1)) lines++;
  return lines > limit;
}

function badSigns(text: string): Finding[] {
  const findings: Finding[] = [];
  const bad = text.isWellFormed() ? BAD_SIGN : BAD_SIGN_OR_SURROGATE;
  if (text.search(bad) < 0) return findings;
  for (const { 0: sign, index: offset } of text.matchAll(bad)) {
    findings.push({ offset, message: badSign(sign) });
    if (findings.length === MAX_PROBLEMS) break;
  }
  return findings;
}

function badSign(sign: string): string {
  if (sign === BYTE_ORDER_MARK)
    return "a byte order mark (U+FEFF) inside the file: remove it, only one at the very beginning is allowed";
  if (sign === "\r") return "a carriage return without a line feed: save the file with LF or CRLF line ends";
  if (holdsLoneSurrogate(sign)) return LONE_SURROGATE;
  const code = sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
  return `a control character (U+${code}): remove it, or write it as an escape in double quotes`;
}

function isOverLimit({ size, depth }: SourceNode): boolean {
  return size > MAX_DOCUMENT_BYTES || depth > MAX_JSON_DEPTH;
}

/** Why a root makes no document. */
function unfit(root: SourceNode | undefined): Finding {
  if (root === undefined) return { offset: 0, message: "the file is empty" };
  const { offset, size, depth, value } = root;
  if (size > MAX_DOCUMENT_BYTES) {
    return { offset, message: "with its aliases written out the document is longer than 1 MiB: use fewer aliases" };
  }
  if (depth > MAX_JSON_DEPTH) return { offset, message: `nested deeper than ${MAX_JSON_DEPTH} levels` };
  return { offset, message: `expected a mapping of keys to values, got ${valueText(value)}` };
}
