import { readdirSync, readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { parseDocument as parseWithLibrary, stringify } from "yaml";
import { createAdapters } from "../../src/adapters/index.ts";
import { parseDocument } from "../../src/config/parse-document.ts";
import { readPlainYaml } from "../../src/config/plain-yaml.ts";
import type { SharedParts } from "../../src/config/shared-parts.ts";
import { indexLines } from "../../src/config/source-document.ts";
import { inOneGo } from "../../src/config/steps.ts";
import { readYaml } from "../../src/config/yaml-document.ts";
import { isJsonObject, type JsonObject, type JsonValue, jsonEqual, stringifyJson } from "../../src/core/json.ts";
import { createPipelineSteps } from "../../src/pipeline/index.ts";
import { createSchemaChecker } from "../../src/pipeline/schema-checker.ts";
import type { Declaration } from "../../src/registry/declaration.ts";
import { createDeclarationGrammar, type DeclarationGrammar } from "../../src/registry/declaration-grammar.ts";
import { parseDeclaration } from "../../src/registry/parse-declaration.ts";
import { type Dice, HOSTILE_TEXTS } from "./dice.ts";
import { type FuzzTarget, holds, Outcomes, threadMs } from "./target.ts";

/** A text as a file or a registration has it. */
export interface DeclarationInput {
  readonly format: "yaml" | "json";
  readonly text: string;
}

/** Processor time for one text, some times what the slowest takes on a machine that is busy. */
const MAX_MS = 1_500;

/** Most characters of one problem. */
const MAX_MESSAGE = 2_000;

/** Signs, words and layout of YAML, JSON and the templates. */
const PIECES: readonly string[] = [
  ..."\n \t#:-?|>{}[],'\"\\&*!%@`~=$.0",
  "\n  ",
  "\n    ",
  ": ",
  " #",
  "- ",
  "- - ",
  "? ",
  "|2",
  ">-",
  "|+",
  "---\n",
  "...\n",
  "%YAML 1.1\n",
  "<<: ",
  "*a",
  "&a ",
  "!!str ",
  "!!int ",
  "!<x> ",
  '"\\x41"',
  '"\\uD800"',
  "\r\n",
  "\r",
  "\u0085",
  "\u2028",
  "\ufeff",
  "''",
  "null",
  "true",
  "yes",
  "0x1f",
  "0o17",
  "1e999",
  ".inf",
  ".nan",
  "-0",
  "1.0",
  "007",
  "12345678901234567890",
  "{}",
  "[]",
  "[[",
  "{{",
  "{a: b",
  "a: b: c",
  "{order_id}",
  "$order_id",
  "${order_id}",
  "{missing}",
  "params:",
  "  - name: a\n",
  "result:\n",
  "type: http\n",
  "type: script\n",
  "endpoint: ",
  "default: ",
  "enum: ",
  "input_schema: ",
  "$ref: '#'",
  "pattern: '(a+)+$'",
  "timeout: {read: 3}",
  "x-a: 1\n",
  "__proto__: 1\n",
  ...HOSTILE_TEXTS,
];

/** Throws texts at the reader of declarations, with the grammar that a gateway has. */
export function openDeclarations(): FuzzTarget<DeclarationInput> {
  const checker = createSchemaChecker({ maxCompiled: 100 });
  const grammar = createDeclarationGrammar({
    adapters: new Map(
      createAdapters({ environment: {}, folder: "/", shell: true }).map((adapter) => [adapter.kind, adapter]),
    ),
    steps: createPipelineSteps({ checker }),
    schemaProblem: (schema) => checker.problem(schema),
  });
  const corpus = readCorpus();
  const outcomes = new Outcomes();
  return {
    outcomes,
    shrinks: true,
    make: (dice) => makeInput(dice, corpus, grammar),
    check: (input) => {
      const ms = threadMs(() => checkInput(input, { grammar, checker, outcomes }));
      outcomes.most("slowest-ms", ms);
      holds(ms < MAX_MS, "a text is read in bounded time", { ms });
    },
    settle: () => undefined,
    residentBytes: () => process.memoryUsage.rss(),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** The examples, and what the documents show. */
function readCorpus(): readonly string[] {
  const folder = new URL("../../examples/tools/", import.meta.url);
  const examples = readdirSync(folder).map((file) => readFileSync(new URL(file, folder), "utf8"));
  const page = readFileSync(new URL("../../docs/declarations.md", import.meta.url), "utf8");
  const shown = [...page.matchAll(/^```yaml\n([^]*?)^```$/gm)].map(([, text = ""]) => text);
  return [...examples, ...shown];
}

function makeInput(dice: Dice, corpus: readonly string[], grammar: DeclarationGrammar): DeclarationInput {
  const text = makeText(dice, corpus, grammar);
  const format = text.startsWith("{") && !dice.oneIn(4) ? "json" : "yaml";
  return { format, text: dice.oneIn(2) ? text : dice.slips(text, PIECES) };
}

function makeText(dice: Dice, corpus: readonly string[], grammar: DeclarationGrammar): string {
  switch (dice.number(8)) {
    case 0:
      return dice.some(0, 30, () => dice.pick(PIECES)).join("");
    case 1:
      return dice.pick(["[", "{a: ", "- ", "? ", "{", '{"a":', "&a [", "a:\n "]).repeat(dice.number(400));
    case 2:
      // Lines of several declarations, in any order.
      return dice.some(1, 25, () => dice.pick(dice.pick(corpus).split("\n"))).join("\n");
    case 3:
      return dice.pick(corpus) + dice.pick(corpus);
    case 4:
    case 5: {
      const value = declarationLike(dice, grammar.schema);
      return dice.oneIn(2) ? stringifyJson(value, dice.number(3)) : stringify(value, { lineWidth: dice.pick([0, 20]) });
    }
    default:
      return dice.pick(corpus);
  }
}

/** An object with the keys of a declaration whose values are near to what their schemas say. */
function declarationLike(dice: Dice, schema: JsonObject): JsonObject {
  const branches = Object.values(schema).flatMap((value) => (Array.isArray(value) ? value.filter(isJsonObject) : []));
  const value = near(dice, dice.oneIn(3) || branches.length === 0 ? schema : dice.pick(branches), 5);
  const base: JsonObject = {
    name: "t",
    description: "Find one order by its number",
    type: "http",
    endpoint: "http://127.0.0.1:1/o/{id}",
    params: [{ name: "id", type: "string", required: true }],
  };
  return { ...(dice.oneIn(4) ? {} : base), ...(isJsonObject(value) ? value : {}) };
}

function near(dice: Dice, schema: JsonValue | undefined, depth: number): JsonValue {
  if (dice.oneIn(12) || depth === 0 || !isJsonObject(schema)) return anyValue(dice, Math.max(depth - 1, 0));
  const { enum: words, const: only, default: preset } = schema;
  if (only !== undefined) return only;
  if (Array.isArray(words)) return dice.pick(words as readonly JsonValue[]);
  const ways = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(ways)) return near(dice, dice.pick(ways as readonly JsonValue[]), depth);
  if (preset !== undefined && dice.oneIn(3)) return preset;
  return ofType(dice, schema, depth);
}

function ofType(dice: Dice, schema: JsonObject, depth: number): JsonValue {
  const type = Array.isArray(schema["type"]) ? dice.pick(schema["type"] as readonly JsonValue[]) : schema["type"];
  switch (type) {
    case "object":
      return nearObject(dice, schema, depth);
    case "array":
      return dice.some(0, 3, () => near(dice, schema["items"], depth - 1));
    case "string":
      return dice.pick(["a", "id", "{id}", "$id", "5s", "http://127.0.0.1:1/x?a={id}", dice.text(), dice.plainText()]);
    case "integer":
    case "number":
      return dice.pick([0, 1, 3, 100, -1, 65_536, 1.5, 1e15, 9_007_199_254_740_993n]);
    case "boolean":
      return dice.oneIn(2);
    default:
      return anyValue(dice, depth - 1);
  }
}

function nearObject(dice: Dice, schema: JsonObject, depth: number): JsonObject {
  const properties = isJsonObject(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
  const names = Object.keys(properties).filter((name) => required.includes(name) || dice.oneIn(4));
  const entries = names.map((name) => [name, near(dice, properties[name], depth - 1)] as const);
  const more = dice.oneIn(3) ? [[dice.text(), near(dice, schema["additionalProperties"], depth - 1)] as const] : [];
  return Object.fromEntries([...entries, ...more]);
}

function anyValue(dice: Dice, depth: number): JsonValue {
  switch (dice.number(depth > 0 ? 7 : 4)) {
    case 0:
      return dice.text();
    case 1:
      return dice.pick([null, true, false, 0, -0, 1.5, 1e300, 2 ** 53, 12_345_678_901_234_567_890n]);
    case 2:
    case 3:
      return dice.plainText();
    case 4:
      return dice.some(0, 3, () => anyValue(dice, depth - 1));
    default:
      return Object.fromEntries(dice.some(0, 3, () => [dice.text(), anyValue(dice, depth - 1)] as const));
  }
}

interface Parts {
  readonly grammar: DeclarationGrammar;
  readonly checker: ReturnType<typeof createSchemaChecker>;
  readonly outcomes: Outcomes;
}

function checkInput({ format, text }: DeclarationInput, { grammar, checker, outcomes }: Parts): void {
  const read = (): ReturnType<typeof parseDeclaration> =>
    parseDeclaration(text, {
      format,
      source: "file:t.yaml",
      grammar,
      defaults: { maxResponseBytes: 16_777_216 },
      origins: new Map(),
    });
  const outcome = read();
  if (format === "yaml") checkReaders(text, outcomes, grammar.parts);
  if (outcome.ok) {
    outcomes.count("accepted");
    checkProblems(outcome.declaration.notes, text);
    checkDeclaration(outcome.declaration, checker);
    const again = read();
    holds(again.ok && again.declaration.digest === outcome.declaration.digest, "a text read twice has one digest");
    return;
  }
  outcomes.count(parseDocument(text, format).ok ? "refused" : "unreadable");
  holds(outcome.problems.length > 0, "what is refused has a problem");
  holds(outcome.problems.length <= 50, "a text has at most 50 problems", outcome.problems.length);
  checkProblems(outcome.problems, text);
}

interface Told {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** What gives away that nobody thought of this text: a stack, or a value that JavaScript made text of by itself. */
const RAW =
  /\[object \w+\]|\bundefined\b|\bNaN\b|\bat \S+ \(|node:internal|node_modules|(?:Type|Range|Syntax|Reference)Error/;

function checkProblems(problems: readonly Told[], text: string): void {
  // A byte order mark at the beginning belongs to no line.
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/);
  for (const problem of problems) {
    const { line, column, message } = problem;
    const length = lines[line - 1]?.length ?? (line === lines.length + 1 ? 0 : -1);
    holds(Number.isInteger(line) && line >= 1 && length >= 0, "a problem stands on a line of the text", problem);
    // Behind the last sign stands what is missing there; behind that, the two signs of the line end.
    holds(column >= 1 && column <= length + 3, "a problem stands in its line", { problem, length });
    holds(message.trim() !== "" && message.length <= MAX_MESSAGE, "a problem says what is wrong, in short", problem);
    holds(
      !/[\n\r\u2028\u2029]|(?!\t)\p{Cc}/u.test(message),
      "a problem is one line without control characters",
      problem,
    );
    holds(message.isWellFormed(), "a problem is Unicode text", problem);
    const raw = RAW.exec(message)?.[0];
    holds(raw === undefined || text.includes(raw), "a problem is in words for people", problem);
  }
}

/** What loaded can be called and explained. */
function checkDeclaration(declaration: Declaration, checker: Parts["checker"]): void {
  const { tool, namePlace } = declaration;
  holds(checker.problem(tool.inputSchema) === undefined, "a schema that loaded can be used", tool.inputSchema);
  checker.check(tool.inputSchema, {});
  holds(/^[A-Za-z0-9_.-]{1,64}$/.test(tool.name), "a name is made of its signs", tool.name);
  holds(namePlace.line >= 1 && namePlace.column >= 1, "a name has a place", namePlace);
  for (const { key, value, origin } of declaration.explained) {
    holds(
      [key, value, origin].every((part) => typeof part === "string"),
      "what is explained is text",
      { key, value },
    );
  }
}

/** What is refused before a text is read. */
const BAD_SIGN = /(?![\t\n\r\u0085])\p{Cc}|\r(?!\n)|[\ufeff\p{Surrogate}]/u;

/**
 * The three readers of YAML agree: ours for plain text, with parts of other texts and without, ours for all, and the
 * library by itself.
 */
function checkReaders(text: string, outcomes: Outcomes, parts: SharedParts): void {
  const plain = BAD_SIGN.test(text) ? undefined : readPlainYaml(text);
  const sharing = BAD_SIGN.test(text) ? undefined : readPlainYaml(text, parts);
  holds(isDeepStrictEqual(sharing?.value, plain?.value), "parts of other texts are what they are here", {
    plain: plain?.value,
    sharing: sharing?.value,
  });
  if (plain !== undefined) {
    outcomes.count("plain");
    const whole = inOneGo(readYaml(text, indexLines(text)));
    holds(isDeepStrictEqual(whole, { root: plain, findings: [] }), "both readers of YAML agree", {
      plain: plain.value,
      whole: whole.root?.value,
      findings: whole.findings,
    });
  }
  const read = parseDocument(text, "yaml");
  if (!read.ok) return;
  const judged = parseWithLibrary(text.replace(/^\ufeff/, ""), {
    version: "1.2",
    intAsBigInt: true,
    merge: true,
    stringKeys: true,
    uniqueKeys: false,
    logLevel: "silent",
  });
  holds(judged.errors.length === 0, "what is read is YAML", judged.errors[0]?.message);
  const value: unknown = judged.toJS({ maxAliasCount: -1 });
  // What no JSON number can be stays text here, as it was written.
  if (holdsInfinite(value)) return;
  const expected = toJson(value);
  holds(jsonEqual(read.document.value, expected), "a text is read as the library reads it", {
    read: read.document.value,
    expected,
  });
}

function holdsInfinite(value: unknown): boolean {
  if (typeof value === "number") return !Number.isFinite(value);
  return typeof value === "object" && value !== null && Object.values(value).some(holdsInfinite);
}

/** A value as the gateway has it: a `bigint` only where a number is not exact. */
function toJson(value: unknown): JsonValue {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== "object" || value === null) return value as JsonValue;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, toJson(member)]));
}
