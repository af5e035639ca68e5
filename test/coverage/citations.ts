import ts from "typescript";
import { at, nodesOf, parseModule, type SourceModule } from "../architecture/source-tree.ts";

/** An id in brackets at the end of a test's title. */
export interface Citation {
  readonly id: string;
  /** File of the test, from the repository's root. */
  readonly path: string;
}

/** What the tests cite, and what is wrong with how they do it, as `path:line: what`. */
export interface Citations {
  readonly citations: readonly Citation[];
  readonly problems: readonly string[];
}

const ID = String.raw`(?:S[12]-\d{2,3}|[YTAUSMRGKX]-D\d{2})`;
const GROUP = String.raw`\[${ID}(?:, ${ID})*\]`;
const GROUPS_AT_END = new RegExp(`(?: ${GROUP})+$`);
/** Anything that looks as if it meant an id: ranges, other brackets, lower case, too few digits. `S256` is a word of PKCE. */
const LIKE_AN_ID = /(?<![A-Za-z0-9-])(?!S256\b)(?:S[12] ?-? ?\d+|[YTAUSMRGKX] ?- ?D ?-?\d+)(?![A-Za-z0-9])/i;
const CHOOSES_HOW = new Set(["each", "for", "skipIf", "runIf", "extend"]);
const DOES_NOT_RUN = new Set(["skip", "todo", "fails"]);

/** Reads the titles of the tests in modules, from their text: nothing is run. Tables of `each` and `for` are not titles. */
export function readCitations(modules: readonly SourceModule[]): Citations {
  const read = modules.map(readModule);
  return {
    citations: read.flatMap(({ citations }) => citations),
    problems: read.flatMap(({ problems }) => problems),
  };
}

function readModule(module: SourceModule): Citations {
  const nodes = nodesOf(parseModule(module));
  const titles = nodes.flatMap((node) => titleOf(node) ?? []);
  const inTitles = new Set(titles.flatMap(({ node }) => nodesOf(node)));
  const elsewhere = nodes.filter((node) => !inTitles.has(node) && isText(node) && LIKE_AN_ID.test(node.text));
  const problems = [
    ...titles.flatMap((title) => problemOf(title).map((problem) => `${at(module, title.node)}: ${problem}`)),
    ...elsewhere.map((node) => `${at(module, node)}: cites where no title of a test is`),
  ];
  const ids = titles.filter(({ runs }) => runs).flatMap(({ text }) => idsIn(text) ?? []);
  return { citations: ids.map((id) => ({ id, path: module.path })), problems };
}

function problemOf({ text, runs }: Title): readonly string[] {
  const ids = idsIn(text);
  if (ids === undefined) return ["cites in another form than [ID] or [ID, ID] at its end"];
  return ids.length > 0 && !runs ? ["cites and does not run"] : [];
}

interface Title {
  readonly node: ts.Node;
  /** With `$` for what a template fills in. */
  readonly text: string;
  readonly runs: boolean;
}

/** The title where a node is a call that declares a test. */
function titleOf(node: ts.Node): Title | undefined {
  if (!ts.isCallExpression(node)) return undefined;
  const [first] = node.arguments;
  const names = calleeNames(node.expression);
  if (first === undefined || names === undefined || CHOOSES_HOW.has(lastName(node.expression))) return undefined;
  return { node: first, text: textOf(first), runs: !names.some((name) => DOES_NOT_RUN.has(name)) };
}

/** The names on the way from `test` or `it` to a call, as `concurrent` and `each`; undefined: no test's callee. */
function calleeNames(callee: ts.Expression): string[] | undefined {
  const names: string[] = [];
  let inner = callee;
  while (!ts.isIdentifier(inner)) {
    if (ts.isCallExpression(inner)) inner = inner.expression;
    else if (ts.isTaggedTemplateExpression(inner)) inner = inner.tag;
    else if (ts.isPropertyAccessExpression(inner)) {
      names.push(inner.name.text);
      inner = inner.expression;
    } else return undefined;
  }
  return inner.text === "test" || inner.text === "it" ? names : undefined;
}

function lastName(callee: ts.Expression): string {
  return ts.isPropertyAccessExpression(callee) ? callee.name.text : "";
}

function textOf(node: ts.Node): string {
  if (isText(node)) return node.text;
  if (ts.isTemplateExpression(node)) {
    return node.head.text + node.templateSpans.map((span) => `$${span.literal.text}`).join("");
  }
  if (ts.isBinaryExpression(node)) return textOf(node.left) + textOf(node.right);
  return "$";
}

function isText(node: ts.Node): node is ts.Node & { readonly text: string } {
  return (
    ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddle(node) || ts.isTemplateTail(node)
  );
}

/** Undefined: something in the title looks like an id and does not stand as one should. */
function idsIn(title: string): readonly string[] | undefined {
  const groups = GROUPS_AT_END.exec(title)?.[0] ?? "";
  if (LIKE_AN_ID.test(title.slice(0, title.length - groups.length))) return undefined;
  return groups.match(new RegExp(ID, "g")) ?? [];
}
