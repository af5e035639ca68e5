import { compile, tokenize } from "@jmespath-community/jmespath";
import { FUNCTIONS } from "./functions.ts";

/** An expression as a tree. Source: https://jmespath.org/specification.html. */
export type SelectNode = ReturnType<typeof compile>;

/** A `select` of a declaration, parsed. */
export type ParsedSelect =
  | { readonly ok: true; readonly node: SelectNode }
  | {
      readonly ok: false;
      /** What is wrong, and at which character of the expression, counted from 1. */
      readonly problem: string;
    };

/** What the parser knows beyond the specification, by what it is in words. */
const BEYOND: Readonly<Partial<Record<SelectNode["type"], string>>> = {
  Arithmetic: "arithmetic",
  Unary: "a sign",
  LetExpression: "`let`",
  Binding: "`let`",
  Variable: "variables",
  Ternary: "`? :`",
  Root: "`$`",
};

/** All that stands before a quote that does not end. */
const QUOTES = /^(?:[^'"`]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)*/s;

/** Parses an expression of JMESPath: what its specification has, with the functions of the specification. */
export function parseSelect(text: string): ParsedSelect {
  // The parser takes the end of the expression for that of an open quote.
  const closed = QUOTES.exec(text)?.[0].length ?? 0;
  if (closed < text.length) return { ok: false, problem: `a quote at character ${closed + 1} that does not end` };
  let node: SelectNode;
  try {
    node = compile(text);
  } catch {
    return { ok: false, problem: `no JMESPath from character ${faultAt(text)} on` };
  }
  const problem = problemOf(node);
  return problem === undefined ? { ok: true, node } : { ok: false, problem };
}

/** The first character of the token that cannot stand where it does; one after the end where something is missing. */
function faultAt(text: string): number {
  const starts = startsOf(text);
  // With the tokens before the fault something is missing at the most, which the parser says of an end; with it and any
  // that follow the fault is found.
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (isWrong(text.slice(0, starts[middle + 1] ?? text.length))) high = middle;
    else low = middle + 1;
  }
  return (starts[low] ?? text.length) + 1;
}

function isWrong(text: string): boolean {
  try {
    compile(text);
    return false;
  } catch (error) {
    return !(error instanceof Error && /\bEOF\b/.test(error.message));
  }
}

/** Where the tokens begin, as far as the text has any. */
function startsOf(text: string): number[] {
  for (let end = text.length; end > 0; end--) {
    try {
      const starts = tokenize(text.slice(0, end)).map(({ start }) => start);
      return end < text.length
        ? [...starts.filter((start) => start < end), end]
        : starts.filter((start) => start < end);
    } catch {
      // A sign that it does not know, or a literal that is no JSON: what stands before it is looked at.
      continue;
    }
  }
  return [0];
}

function problemOf(node: SelectNode): string | undefined {
  const beyond = BEYOND[node.type];
  if (beyond !== undefined) return `${beyond}, which the specification of JMESPath does not have`;
  if (node.type === "Function") {
    const known = FUNCTIONS.get(node.name);
    if (known === undefined) return `\`${node.name}\`, which is no function of JMESPath`;
    const { length } = node.children;
    if (length < known.least || length > known.most) return `\`${node.name}\` with ${length} arguments`;
  }
  if (node.type === "Literal" && !isExact(node.value)) return "a number beyond 2^53, which would lose digits";
  for (const child of childrenOf(node)) {
    const problem = problemOf(child);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function isExact(value: unknown): boolean {
  if (typeof value === "number") return !Number.isInteger(value) || Number.isSafeInteger(value);
  return typeof value !== "object" || value === null || Object.values(value).every(isExact);
}

function childrenOf(node: SelectNode): readonly SelectNode[] {
  return [
    ...("child" in node ? [node.child] : []),
    ...("left" in node ? [node.left, node.right] : []),
    ...("condition" in node ? [node.condition] : []),
    ...("children" in node ? node.children.map((child) => (child.type === "KeyValuePair" ? child.value : child)) : []),
  ];
}
