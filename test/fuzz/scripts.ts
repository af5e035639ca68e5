import { spawnSync } from "node:child_process";
import { assembleProgram, type ProgramCall } from "../../src/adapters/script/assemble.ts";
import { configureScript } from "../../src/adapters/script/configure.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { isJsonArray, isJsonObject, type JsonObject, ownValue, parseJson, stringifyJson } from "../../src/core/json.ts";
import type { Dice } from "./dice.ts";
import { type FuzzTarget, holds, Outcomes } from "./target.ts";
import {
  argument,
  braces,
  declaredTool,
  filled,
  makeParams,
  type Pieces,
  SETTINGS,
  type TemplateParams,
} from "./template-input.ts";

/** A command by its parts, so that what is to be run can be told without reading a template, and arguments. */
export interface ScriptInput extends TemplateParams {
  /** Words of a command line for a shell instead of a program's arguments. */
  readonly shell: boolean;
  /** Entries of the argument list. */
  readonly words: readonly Pieces[];
  /** Of a shell: whether the word is in double quotes. */
  readonly quoted: readonly boolean[];
}

/** What a shell would do if it read it; harmless where it does. */
const COMMANDS: readonly string[] = [
  "$(echo ran)",
  "`echo ran`",
  "; echo ran",
  "' ; echo ran #",
  '" ; echo ran "',
  "&& echo ran",
  "| cat",
  "> /dev/null",
  "*",
  "~",
  "$HOME",
  "${1}",
  "$0",
  "-n",
  "--",
  "-",
  "\\",
  "a\nb",
  "\n",
  "#",
  "! x",
  "{a,b}",
  "%s",
  "\t",
];

/** Throws arguments at the commands of script tools. What a shell would run, one runs. */
export function openScripts(): FuzzTarget<ScriptInput> {
  const outcomes = new Outcomes();
  return {
    outcomes,
    shrinks: true,
    make: makeInput,
    check: (input) => checkInput(input, outcomes),
    settle: () => undefined,
    residentBytes: () => process.memoryUsage.rss(),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

function makeInput(dice: Dice): ScriptInput {
  const shell = dice.oneIn(3);
  const params = makeParams(dice);
  const names = Object.keys(params);
  const literals = shell ? ["a", "b=", "--x=", "-"] : ["a", "--x=", "-", " ", "$HOME", "{", "}", "*", "\n", "é"];
  const words = dice.some(1, 4, () =>
    dice.some(1, 3, () => (dice.oneIn(2) ? dice.pick(literals) : ([dice.pick(names)] as const))),
  );
  const entries = names
    .filter(() => !dice.oneIn(12))
    .map((name) => [name, dice.oneIn(2) ? dice.pick(COMMANDS) + dice.pick(COMMANDS) : argument(dice, 2)] as const);
  const args = stringifyJson(Object.fromEntries(entries));
  return { shell, params, words, quoted: words.map(() => dice.oneIn(2)), args };
}

function declaredKeys({ shell, words, quoted }: ScriptInput): JsonObject {
  if (!shell) return { command: "tool", args: words.map(braces) };
  const line = words.map((word, i) => (quoted[i] === true ? `"${braces(word)}"` : braces(word)));
  // Each word with a sign behind it that hardly an argument holds.
  return { command: `printf '%s\\001' ${line.join(" ")}`, shell: true };
}

function checkInput(input: ScriptInput, outcomes: Outcomes): void {
  const options = { environment: {}, folder: "/", shell: true };
  const configured = configureScript(declaredKeys(input), declaredTool(input.params), SETTINGS, options);
  if (!configured.ok) {
    outcomes.count("refused-at-load");
    holds(
      configured.issues.every(({ message }) => message !== ""),
      "a declaration is refused in words",
    );
    return;
  }
  const args = parseJson(input.args);
  holds(isJsonObject(args), "the fuzzer makes objects");
  let call: ProgramCall;
  try {
    call = assembleProgram(configured.config, args);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    outcomes.count(error.reason);
    holds(error.reason === "TEMPLATE_VALUE_REFUSED", "a refusal has its reason", { reason: error.reason });
    holds(!/[\r\n]|undefined|\[object/.test(error.message), "a refusal is one line for people", error.message);
    return;
  }
  outcomes.count(input.shell ? "shell" : "program");
  if (input.shell) checkShell(call, input, args);
  else checkProgram(call, input, args);
}

function checkProgram(call: ProgramCall, input: ScriptInput, args: JsonObject): void {
  const expected = input.words.flatMap((word) => entriesOf(word, args));
  holds(call.file === "tool", "no argument chooses the program", { file: call.file });
  holds(stringifyJson(call.args) === stringifyJson(expected), "an argument list says what was given", {
    args: call.args,
    expected,
  });
  for (const [i, entry] of call.args.entries()) {
    holds(!entry.includes("\0"), "no argument is cut short", { entry });
    if (call.args.slice(0, i).includes("--") || !entry.startsWith("-")) continue;
    const literal = input.words.some(([first]) => typeof first === "string" && entry.startsWith(first));
    holds(literal, "no argument is taken for an option", { entry });
  }
}

/** The entries that a word becomes. */
function entriesOf(word: Pieces, args: JsonObject): readonly string[] {
  const [only] = word;
  const value = word.length === 1 && typeof only === "object" ? ownValue(args, only[0]) : undefined;
  if (isJsonArray(value)) return value.map(String);
  const text = filled(word, args);
  return text === undefined ? [] : [text];
}

function checkShell({ file, args: list }: ProgramCall, input: ScriptInput, args: JsonObject): void {
  const { stdout, stderr, status, error } = spawnSync(file, list, {
    encoding: "utf8",
    env: { HOME: "/nowhere" },
    cwd: "/",
  });
  // More than the system hands to a program: the call is refused when it is started.
  if (error !== undefined && "code" in error && error.code === "E2BIG") return;
  const expected = input.words.map((word) => `${filled(word, args) ?? ""}\u0001`).join("");
  // Halves of characters become the replacement character on the way out.
  holds(stdout === expected.toWellFormed(), "a shell hands on what was given, as one word", { stdout, expected });
  holds(status === 0 && stderr === "", "a shell runs what was declared and nothing else", { status, stderr });
}
