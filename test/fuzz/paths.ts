import { isJsonArray, isJsonObject, type JsonValue, parseJson } from "../../src/core/json.ts";
import { followPath, parseFieldPath } from "../../src/shaping/field-path.ts";
import { type Dice, HOSTILE_TEXTS } from "./dice.ts";
import { type FuzzTarget, holds, Outcomes, threadMs } from "./target.ts";

/** A path, and the answer it is followed through. */
export interface PathInput {
  readonly path: string;
  /** JSON text. */
  readonly answer: string;
}

/** Longest time that a path and an answer of some KB may take. */
const MOST_MS = 200;

const NAMES = ["a", "data", "0", "12", "__proto__", "constructor", "length", "键", "a b", "toString"];

/** Throws paths at answers: what is found must be what stands there, and nothing that the answer does not have itself. */
export function openPaths(): FuzzTarget<PathInput> {
  const outcomes = new Outcomes();
  return {
    outcomes,
    shrinks: true,
    make(dice) {
      const value = makeValue(dice, 4);
      const path = dice.oneIn(2) ? makePath(dice) : pathInto(value, dice);
      return { path, answer: JSON.stringify(value) ?? "null" };
    },
    check(input) {
      const ms = threadMs(() => checkInput(input, outcomes));
      outcomes.most("slowest-ms", ms);
      holds(ms < MOST_MS, "a path is followed at once", { ms });
    },
    settle: () => undefined,
    residentBytes: () => process.memoryUsage.rss(),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

function checkInput({ path: text, answer }: PathInput, outcomes: Outcomes): void {
  const path = parseFieldPath(text);
  const steps = stepsOf(text);
  holds((path === undefined) === (steps === undefined), "what is a path is one by its grammar", { text });
  if (path === undefined || steps === undefined) {
    outcomes.count("no-path");
    return;
  }
  const value = parseJson(answer);
  const found = followPath(value, path);
  const expected = lookedUp(value, steps);
  outcomes.count(found.found ? "found" : "not-found");
  holds(found.found === (expected !== undefined), "what is there is found, and nothing else", { text, answer });
  if (found.found) holds(found.value === expected, "what is found is what stands there", { text, answer });
  else holds(text.startsWith(found.at), "what exists of a path is its beginning", { text, at: found.at });
}

/** The grammar once more, taken off from the front; `undefined`: it is no path. */
function stepsOf(text: string): readonly (string | number)[] | undefined {
  const steps: (string | number)[] = [];
  // As if every name came after a dot.
  let rest = `.${text}`;
  while (rest !== "") {
    const index = steps.length === 0 ? undefined : /^\[([0-9]{1,9})\]/.exec(rest)?.[1];
    const name = rest.startsWith(".") ? (rest.slice(1).split(/[.[\]]/, 1)[0] ?? "") : "";
    if (index === undefined && name === "") return undefined;
    steps.push(index === undefined ? name : Number(index));
    rest = rest.slice(index === undefined ? name.length + 1 : index.length + 2);
  }
  return steps;
}

function lookedUp(value: JsonValue, steps: readonly (string | number)[]): JsonValue | undefined {
  let here: JsonValue | undefined = value;
  for (const step of steps) {
    if (here === undefined) return undefined;
    if (isJsonArray(here)) {
      const isIndex =
        typeof step === "number" || (step.length <= 9 && [...step].every((sign) => "0123456789".includes(sign)));
      here = isIndex ? here.find((_, index) => index === Number(step)) : undefined;
    } else if (isJsonObject(here) && typeof step === "string") {
      here = Object.entries(here).find(([name]) => name === step)?.[1];
    } else return undefined;
  }
  return here;
}

function makePath(dice: Dice): string {
  const word = (): string => {
    if (dice.number(8) === 0) return HOSTILE_TEXTS[dice.number(HOSTILE_TEXTS.length)] ?? "";
    return NAMES[dice.number(NAMES.length)] ?? "";
  };
  let path = word();
  for (let more = dice.number(5); more > 0; more--) {
    const kind = dice.number(6);
    if (kind < 3) path += `.${word()}`;
    else if (kind < 5) path += `[${dice.number(4)}]`;
    else path += ["..", "[", "]", "[-1]", "[1e3]", "[00000000001]", ".", "\n"][dice.number(8)] ?? "";
  }
  return path;
}

/** A path to something that is there, if anything is. */
function pathInto(value: unknown, dice: Dice): string {
  let here = value;
  let path = "";
  while (typeof here === "object" && here !== null && !(path !== "" && dice.oneIn(4))) {
    const names = Object.keys(here);
    if (names.length === 0) break;
    const name = dice.pick(names);
    path += Array.isArray(here) && path !== "" && dice.oneIn(2) ? `[${name}]` : `${path === "" ? "" : "."}${name}`;
    here = Reflect.get(here, name);
  }
  return path === "" ? makePath(dice) : path;
}

function makeValue(dice: Dice, depth: number): unknown {
  const kind = dice.number(depth === 0 ? 3 : 6);
  if (kind === 0) return dice.number(100);
  if (kind === 1) return dice.text();
  if (kind === 2) return null;
  if (kind === 3) return Array.from({ length: dice.number(4) }, () => makeValue(dice, depth - 1));
  const entries = Array.from({ length: dice.number(5) }, () => {
    return [NAMES[dice.number(NAMES.length)] ?? "", makeValue(dice, depth - 1)] as const;
  });
  return Object.fromEntries(entries);
}
