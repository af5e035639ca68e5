import type { CST, ErrorCode, ParsedNode } from "yaml";
import { Composer, Lexer, Parser } from "yaml";
import { MAX_JSON_DEPTH } from "../core/json.ts";
import type { Finding, LineIndex, SourceNode } from "./source-document.ts";
import type { Steps } from "./steps.ts";
import { inline } from "./wording.ts";
import { convertYaml } from "./yaml-nodes.ts";
import type { YamlReport } from "./yaml-reports.ts";
import { wordReport } from "./yaml-reports.ts";

/**
 * Most words and signs of one document: enough for a tool of some hundred parameters, and few enough to be read in 20 ms.
 * Plain text of any length does not come here.
 */
const MAX_LEXEMES = 10_000;

const TOO_LONG = `more than ${MAX_LEXEMES} words and signs, and not in the plain form that may be longer: shorten it, or write it as JSON`;

/** Reports after which the composer is stopped; the first few of a file are the ones that help. */
const MAX_REPORTS = 100;

/** The parser's stack holds the document and a scalar besides the collections it is in. */
const MAX_STACK = MAX_JSON_DEPTH + 8;

/** Words and signs that are read at a stretch. */
const LEXEMES_OF_STEP = 500;

/** Ends the composer early. Caught in this file. */
class Enough extends Error {}

/** Text as the parser sees it. */
interface Tokens {
  readonly documents: CST.Document[];
  readonly findings: Finding[];
}

/**
 * Reads YAML 1.2 (core schema) with the place of every value. All findings of the text come back, one a line. Merge
 * keys (`<<`) are applied, aliases are resolved, keys are text; integers beyond 2^53 become `bigint`. The root is
 * absent where the text holds no value.
 */
export function* readYaml(
  text: string,
  lines: LineIndex,
): Steps<{ root: SourceNode | undefined; findings: Finding[] }> {
  const { documents, findings } = yield* readTokens(text);
  const [first, second] = documents;
  if (first === undefined || findings.length > 0) return { root: undefined, findings };
  if (second !== undefined) {
    findings.push({
      offset: second.offset,
      message: "a second document begins here: multi-document files are not supported, write one file for each",
    });
  }
  const { contents, reports } = compose(first, text);
  yield;
  const converted = contents === null ? undefined : convertYaml(contents, text, lines);
  findings.push(...(converted?.findings ?? []));
  const unexplained = reports.filter(({ start }) => {
    return converted === undefined || (start <= converted.readableUntil && !converted.explained.has(start));
  });
  const told = new Set(findings.map((finding) => lines.position(finding.offset).line));
  for (const report of unexplained) {
    const { line } = lines.position(report.start);
    if (!told.has(line)) findings.push({ offset: report.start, message: wordReport(report, text, lines) });
    told.add(line);
  }
  return { root: converted?.root, findings };
}

/** How the composer names a place. */
type ReportSource = number | [number, number] | { readonly offset: number; readonly source?: string };

/** Runs the parser up to its end or a limit. */
function* readTokens(text: string): Steps<Tokens> {
  const parser = new Parser();
  const tokens: Tokens = { documents: [], findings: [] };
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) sort(token, tokens);
    lexemes++;
    if (lexemes % LEXEMES_OF_STEP === 0) yield;
    if (lexemes > MAX_LEXEMES) return stopped(parser, tokens, TOO_LONG);
    if (parser.stack.length > MAX_STACK) return stopped(parser, tokens, `nested deeper than ${MAX_JSON_DEPTH} levels`);
  }
  for (const token of parser.end()) sort(token, tokens);
  yield;
  return tokens;
}

function stopped(parser: Parser, tokens: Tokens, message: string): Tokens {
  tokens.findings.push({ offset: parser.offset, message });
  return tokens;
}

function sort(token: CST.Token, tokens: Tokens): void {
  if (token.type === "document") tokens.documents.push(token);
  else if (token.type === "directive") {
    tokens.findings.push({
      offset: token.offset,
      message: "directives (lines that begin with %) are not supported: remove the line",
    });
  } else if (token.type === "error" && tokens.findings.length < MAX_REPORTS) {
    tokens.findings.push({ offset: token.offset, message: `unexpected ${JSON.stringify(inline(token.source, 20))}` });
  }
}

/** Composes one document; reports what the composer finds, without the library's texts. */
function compose(token: CST.Document, text: string): { contents: ParsedNode | null; reports: readonly YamlReport[] } {
  const reports: YamlReport[] = [];
  const composer = new Composer({
    intAsBigInt: true,
    keepSourceTokens: true,
    logLevel: "silent",
    prettyErrors: false,
    resolveKnownTags: false,
    stringKeys: true,
    uniqueKeys: false, // Found here, since the library's own search takes time with the square of the keys.
    version: "1.2",
  });
  // The composer makes an Error, with its stack, for each finding: 17 s for a MiB of commas. This takes their place.
  Object.assign(composer, {
    onError: (source: ReportSource, code: ErrorCode) => {
      // Thrown at every report from then on: the composer catches what is thrown in a collection, and makes a report of it.
      if (reports.length === MAX_REPORTS) throw new Enough();
      reports.push(toReport(source, code));
    },
  });
  try {
    const [document] = [...composer.next(token), ...composer.end(false, text.length)];
    // Empty with the composer as it is; here in case a later one no longer calls what was put in its place.
    for (const error of [...(document?.errors ?? []), ...(document?.warnings ?? [])]) {
      reports.push(toReport(error.pos, error.code));
    }
    return { contents: document?.contents ?? null, reports: telling(reports) };
  } catch (error) {
    if (!(error instanceof Enough)) throw error;
    return { contents: null, reports: telling(reports) };
  }
}

function toReport(source: ReportSource, code: ErrorCode): YamlReport {
  if (typeof source === "number") return { code, start: source, end: source + 1 };
  if (Array.isArray(source)) return { code, start: source[0], end: source[1] };
  return { code, start: source.offset, end: source.offset + (source.source?.length ?? 1) };
}

/** A mapping as a key is what the library makes of lines that run on; the report of the lines says more. */
function telling(reports: readonly YamlReport[]): readonly YamlReport[] {
  const runOn = new Set(reports.filter((each) => each.code === "MULTILINE_IMPLICIT_KEY").map((each) => each.start));
  return reports.filter((each) => each.code !== "BLOCK_AS_IMPLICIT_KEY" || !runOn.has(each.start));
}
