import { create } from "@bufbuild/protobuf";
import { Ajv, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { fullFormats } from "ajv-formats/dist/formats.js";
import { InvocationSchema } from "../../gen/toolgate/v1/call_pb.ts";
import { type FieldViolation, GatewayError } from "../../src/core/errors.ts";
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  parseJson,
  pointerSteps,
  stringifyJson,
} from "../../src/core/json.ts";
import { createSchemaChecker, type SchemaChecker } from "../../src/pipeline/schema-checker.ts";
import { decodeInvocation } from "../../src/wire/call-codec.ts";
import { hasDisputed, JUDGE_OPTIONS, SchemaMaker, verdict } from "../pipeline/schema-maker.ts";
import { type Dice, HOSTILE_TEXTS } from "./dice.ts";
import { type FuzzTarget, holds, Outcomes, threadMs } from "./target.ts";

/** Arguments as a model writes them, and the schema of the tool. */
export interface ArgumentsInput {
  /** JSON text, `$schema` left out. */
  readonly schema: string;
  readonly modern: boolean;
  /** As it comes over the wire. */
  readonly text: string;
}

/** Processor time for one text, some times what the checker allows itself. */
const MAX_MS = 1_000;

const DRAFT_07 = "http://json-schema.org/draft-07/schema#";

/** Signs and words that are JSON, or nearly. */
const PIECES: readonly string[] = [
  ..."{}[],:\"\\ \n\t0-1.eE+\0\u0001/'",
  '"a":',
  '"a"',
  '{"a":',
  "null",
  "true",
  "nul",
  "NaN",
  "Infinity",
  "-",
  "01",
  "1e400",
  "-0",
  "1.0",
  "1e2",
  "0.1",
  "9007199254740993",
  "-9223372036854775808",
  "123456789012345678901234567890",
  "1E16",
  "12345678901234567.0",
  '"__proto__":{}',
  '"constructor":1',
  '"\\ud800"',
  '"\\u0000"',
  '"\\x"',
  "//",
  "/*",
  "[[[[",
  '{"a":{"a":',
  "\ufeff",
  '"a":1,"a":2',
  '"\\u0061":1',
  '"a/b":1',
  '"~0":1',
  '"":1',
  ...HOSTILE_TEXTS,
];

/** Schemas beside those that the maker makes: words that only some texts and numbers fit. */
const KEYWORDS: readonly JsonObject[] = [
  { type: "string", format: "date" },
  { type: "string", format: "date-time" },
  { type: "string", format: "uuid" },
  { type: "string", format: "email" },
  { type: "string", format: "ipv4" },
  { type: "string", format: "no-such-format" },
  { type: "string", pattern: "^[a-z]+$" },
  { type: "string", pattern: "^\\p{L}{1,3}$" },
  { type: "string", maxLength: 3 },
  { type: "integer", maximum: 9_007_199_254_740_991 },
  { type: "number", multipleOf: 0.01 },
  { type: "array", items: { type: "integer" }, uniqueItems: true },
  { const: "constructor" },
  { enum: [1, "1", null, [1], { a: 1 }] },
  { required: ["__proto__", "toString"] },
  { properties: { __proto__: { type: "string" }, constructor: { type: "integer" } } },
];

/** Throws texts at the reader of arguments, and what it read at the checker; ajv is the judge. */
export function openArguments(): FuzzTarget<ArgumentsInput> {
  const checker = createSchemaChecker({ maxCompiled: 50 });
  const outcomes = new Outcomes();
  const options = { ...JUDGE_OPTIONS, validateFormats: true, formats: fullFormats };
  const judges = { modern: new Ajv2020(options), draft07: new Ajv(options) };
  return {
    outcomes,
    shrinks: true,
    make: makeInput,
    check: (input) => {
      const ms = threadMs(() => checkInput(input, { checker, judges, outcomes }));
      outcomes.most("slowest-ms", ms);
      holds(ms < MAX_MS, "arguments are checked in bounded time", { ms });
    },
    settle: () => undefined,
    residentBytes: () => process.memoryUsage.rss(),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

function makeInput(dice: Dice): ArgumentsInput {
  const modern = dice.oneIn(2);
  const maker = new SchemaMaker(dice.number(2 ** 31), modern);
  const schema = makeSchema(dice, maker);
  const value = dice.oneIn(4) ? argumentsLike(dice, 3) : maker.args();
  const text = dice.oneIn(3) ? digits(dice, stringifyJson(value, dice.number(2))) : stringifyJson(value);
  return { schema: stringifyJson(schema), modern, text: makeText(dice, text) };
}

function makeText(dice: Dice, text: string): string {
  switch (dice.number(12)) {
    case 0:
      return dice.pick(["[", '{"a":', '[{"a":', " ", '"', "{", "\\", "1", "-"]).repeat(dice.number(5_000));
    case 1:
      return dice.some(0, 20, () => dice.pick(PIECES)).join("");
    case 2:
      return `{"a":[${"1,".repeat(dice.number(30_000))}1]}`;
    case 3:
    case 4:
    case 5:
      return dice.slips(text, PIECES);
    default:
      return text;
  }
}

function makeSchema(dice: Dice, maker: SchemaMaker): JsonObject {
  const root = maker.root();
  switch (dice.number(6)) {
    case 0:
      return {
        ...root,
        properties: Object.fromEntries(dice.some(1, 3, () => [dice.pick(["a", "b", "c"]), dice.pick(KEYWORDS)])),
      };
    case 1:
      // Keywords with values they do not take.
      return { ...root, [dice.pick(Object.keys(root))]: argumentsLike(dice, 2)["a"] ?? dice.text() };
    case 2:
      return {
        ...root,
        ...dice.pick(KEYWORDS),
        $ref: dice.pick(["#", "#/$defs/x", "#/nowhere", "http://evil.test/", "%"]),
      };
    case 3:
      return {
        ...root,
        properties: { a: { default: dice.pick([0, null, "x", []]) }, b: { type: ["integer", "null"] } },
      };
    default:
      return root;
  }
}

/** An object like those of the maker, with hostile names and values in it. */
function argumentsLike(dice: Dice, depth: number): JsonObject {
  const names = ["a", "b", "c", "dg", "__proto__", "constructor", "a/b", "~1", ""];
  return Object.fromEntries(dice.some(0, 4, () => [dice.pick(names), valueLike(dice, depth)] as const));
}

function valueLike(dice: Dice, depth: number): JsonValue {
  switch (dice.number(depth > 0 ? 5 : 3)) {
    case 0:
      return dice.text();
    case 1:
      return dice.pick([null, 0, -0, 1.5, 1e300, 2 ** 53, 9_007_199_254_740_993n, -(2n ** 63n), 10n ** 40n, true]);
    case 2:
      return dice.pick(["2024-02-30", "2024-02-29", "1.1.1.1", "a@b.c", "abc", "é", "👍", "constructor"]);
    case 3:
      return dice.some(0, 4, () => valueLike(dice, depth - 1));
    default:
      return argumentsLike(dice, depth - 1);
  }
}

/** Some numbers made long. */
function digits(dice: Dice, text: string): string {
  return text.replaceAll(/(?<=[[:,])\d+(?=[\],}])/g, (number) =>
    dice.oneIn(2)
      ? `${number === "0" ? "1" : number}${dice.pick(["0000000000000001", "e2", ".50", "000000000000000000000000"])}`
      : number,
  );
}

interface Parts {
  readonly checker: SchemaChecker;
  readonly judges: { readonly modern: Ajv2020; readonly draft07: Ajv };
  readonly outcomes: Outcomes;
}

function checkInput(input: ArgumentsInput, parts: Parts): void {
  const { checker, outcomes } = parts;
  const args = decode(input.text, outcomes);
  const schema = schemaOf(input);
  if (schema === undefined) return;
  const problem = checker.problem(schema);
  if (problem !== undefined) {
    outcomes.count("schema-refused");
    holds(!/[\r\n]|undefined|\[object/.test(problem) && problem !== "", "a schema is refused in one line", problem);
    return;
  }
  if (args === undefined) return;
  const outcome = checker.check(schema, args);
  outcomes.count(outcome.ok ? "fits" : "refused");
  if (!outcome.ok) checkViolations(outcome.violations, input, args);
  const quiet = !/"default"/.test(input.schema) && !holdsNull(args);
  if (outcome.ok && quiet) holds(jsonEqual(outcome.value, args), "arguments that fit stay as they are", { args });
  if (!quiet || tooLarge(outcome)) return;
  judge(input, { schema, args, fits: outcome.ok }, parts);
}

function schemaOf({ schema, modern }: ArgumentsInput): JsonObject | undefined {
  const parsed = parseJson(schema);
  if (!isJsonObject(parsed)) return undefined;
  return modern ? parsed : { ...parsed, $schema: DRAFT_07 };
}

/** Reads the text as a call does. JSON.parse is the judge of what is JSON. */
function decode(text: string, outcomes: Outcomes): JsonObject | undefined {
  const expected = text.trim() === "" ? {} : parsedByEngine(text);
  try {
    const wire = { case: "argumentsJson" as const, value: text };
    const facts = decodeInvocation(create(InvocationSchema, { name: "t", arguments: wire }));
    holds(isJsonObject(expected), "what is read is a JSON object", { text });
    checkDigits(text, facts.arguments);
    return facts.arguments;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    outcomes.count("malformed");
    const { reason, message, violations } = error;
    holds(reason === "ARGUMENTS_MALFORMED", "a text that cannot be read has its reason", { reason });
    holds(violations.length === 1, "a text that cannot be read has one fault", violations);
    checkWords(violations, message, text);
    const why = violations[0]?.reason ?? "";
    const sound = isJsonObject(expected) && !["TOO_DEEP", "DUPLICATE_NAME", "OUT_OF_RANGE"].includes(why);
    holds(!sound, "a JSON object is read", { text, message });
    return undefined;
  }
}

function parsedByEngine(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Integers of 16 digits and more outside of texts, in order. */
function longIntegers(text: string): string[] {
  const bare = text.replaceAll(/"(?:[^"\\]|\\.)*"/gs, '""');
  return [...bare.matchAll(/(?<![\w.+-])-?\d{16,}(?![\w.])/g)].map(([number]) => number).toSorted();
}

function checkDigits(text: string, args: JsonObject): void {
  // A double of 1e21 and less is written without an exponent, so it may look like an integer that was none.
  const written = longIntegers(stringifyJson(args));
  for (const number of longIntegers(text)) {
    holds(written.includes(number), "an integer keeps its digits", { number, written });
  }
}

function checkWords(violations: readonly FieldViolation[], message: string, text: string): void {
  for (const line of [message, ...violations.map(({ description }) => description)]) {
    holds(line !== "" && line.length <= 2_000, "a mistake is told in short", { line });
    holds(!/[\r\n]/.test(line), "a mistake is told in one line", { line });
    const raw = /\[object \w+\]|\bundefined\b|\bNaN\b|SyntaxError|TypeError/.exec(line)?.[0];
    holds(raw === undefined || text.includes(raw), "a mistake is told in words", { line });
  }
  for (const { field, reason } of violations) {
    holds(field === "" || field.startsWith("/"), "a place is a JSON pointer", { field });
    holds(/^[A-Z_]+$/.test(reason), "a kind of mistake is a word", { reason });
  }
}

/** Fields longer than that are cut. */
const MAX_FIELD = 200;

function checkViolations(violations: readonly FieldViolation[], input: ArgumentsInput, args: JsonObject): void {
  holds(violations.length > 0 && violations.length <= 21, "what does not fit is told, in at most 21 lines");
  checkWords(violations, "x", input.text + input.schema);
  if (input.schema.includes('"default"')) return;
  for (const { field } of violations) {
    if (field.length >= MAX_FIELD - 1) continue;
    // The last step may name what is missing.
    holds(leadsTo(args, pointerSteps(field).slice(0, -1)), "a place is one in the arguments", { field, args });
  }
}

function leadsTo(args: JsonObject, steps: readonly string[]): boolean {
  let value: JsonValue | undefined = args;
  for (const step of steps) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return false;
    value = (value as JsonObject)[step];
  }
  return true;
}

function tooLarge(outcome: ReturnType<SchemaChecker["check"]>): boolean {
  return !outcome.ok && outcome.violations.some(({ reason }) => reason === "TOO_LARGE");
}

interface Verdict {
  readonly schema: JsonObject;
  readonly args: JsonObject;
  readonly fits: boolean;
}

/** Ajv has no `bigint` and loses digits, so it judges arguments without. */
function judge(input: ArgumentsInput, { schema, args, fits }: Verdict, { judges, outcomes }: Parts): void {
  if (holdsBigint(args) || holdsBigint(schema) || hasDisputed(schema) || ajvErrs(input)) return;
  const compiled = compileWith(input.modern ? judges.modern : judges.draft07, schema);
  const expected = compiled === undefined ? undefined : verdict(compiled, args);
  if (expected === undefined) return;
  outcomes.count("judged");
  holds(fits === expected, "a verdict is the one of ajv", { ajv: expected, schema, args });
}

/** Names that ajv takes for something else, and what it counts as seen by a condition in a condition that fails. */
function ajvErrs({ schema, text }: ArgumentsInput): boolean {
  const nestsConditions = schema.includes('"unevaluated') && schema.split('"if"').length > 2;
  return nestsConditions || /__proto__|constructor|toString/.test(schema + text);
}

function compileWith(ajv: Ajv, schema: JsonObject): ValidateFunction | undefined {
  try {
    return ajv.compile(schema);
  } catch (error) {
    // What the checker understands and ajv does not, such as a reference to what stands under an unknown word.
    if (error instanceof Error) return undefined;
    throw error;
  } finally {
    // It would keep every schema it has seen.
    ajv.removeSchema(schema);
  }
}

function holdsNull(value: JsonValue): boolean {
  return value === null || (typeof value === "object" && Object.values(value).some(holdsNull));
}

function holdsBigint(value: JsonValue): boolean {
  return (
    typeof value === "bigint" || (typeof value === "object" && value !== null && Object.values(value).some(holdsBigint))
  );
}
