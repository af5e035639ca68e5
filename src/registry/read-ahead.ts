import { setImmediate } from "node:timers/promises";
import { type DocumentOutcome, readDocument } from "../config/parse-document.ts";
import type { Clock } from "../core/clock.ts";
import { isJsonArray, isJsonObject, type JsonValue } from "../core/json.ts";
import type { DeclarationGrammar } from "./declaration-grammar.ts";
import type { ReadAhead } from "./declaration-source.ts";
import { KeyedLock } from "./keyed-lock.ts";
import { Pacer } from "./pacer.ts";

/** Patterns that are compiled in one go, in 10 ms at most: a declaration of no more is read at once. */
const FEW_PATTERNS = 8;

/** Most patterns that are compiled ahead, and most work of them, in microseconds: a schema with more is refused. */
const MAX_PATTERNS = 100;
const MAX_WORK = 20_000;

/** Longest text that is read in one go whatever is in it, in UTF-16 code units. */
const SHORT_TEXT = 4_000;

/** What reading ahead works with. */
export interface ReadAheadDeps {
  readonly clock: Clock;
  /** Documents are left there for who reads the declaration. */
  readonly grammar: Pick<DeclarationGrammar, "documents" | "parts">;
  /** Compiles a pattern and remembers it. Returns about how many microseconds that takes. */
  compilePattern(source: string): number;
}

/**
 * Makes what reads the document of a long declaration and compiles its patterns before it is checked, in slices between
 * which others have their turn: a pattern takes up to a millisecond where it is the first of its kind, and a declaration
 * may have 100 of them. One declaration at a time, so that no other's patterns make those be forgotten that were compiled
 * for it.
 */
export function createReadAhead({ clock, grammar, compilePattern }: ReadAheadDeps): ReadAhead {
  const lock = new KeyedLock();
  const readInSlices = async (text: string, format: "yaml" | "json"): Promise<DocumentOutcome> => {
    const reading = readDocument(text, format, { parts: grammar.parts });
    const pacer = new Pacer(clock);
    for (;;) {
      const step = reading.next();
      if (step.done === true) return step.value;
      await pacer.turn();
    }
  };
  const compile = async (sources: Iterable<string>): Promise<void> => {
    await setImmediate();
    const pacer = new Pacer(clock);
    let work = 0;
    for (const source of sources) {
      work += compilePattern(source);
      if (work > MAX_WORK) return;
      await pacer.turn();
    }
    // Reading it is a turn of its own.
    await setImmediate();
  };
  return {
    async declaration(text, format) {
      const hasPatterns = mentions(text, "pattern", FEW_PATTERNS);
      if (!hasPatterns && text.length <= SHORT_TEXT) return;
      await lock.run("", async () => {
        const read = await readInSlices(text, format);
        if (hasPatterns && read.ok) await compile(patternsIn(read.document.value));
        // Checking it is a turn of its own.
        else await setImmediate();
        grammar.documents.keep(text, format, read);
      });
    },
    async schemas(schemas) {
      const patterns = patternsIn(schemas);
      if (patterns.size > FEW_PATTERNS) await lock.run("", () => compile(patterns));
    },
  };
}

/** Whether a word stands in a text more often than so many times. */
function mentions(text: string, word: string, times: number): boolean {
  let count = 0;
  for (let at = text.indexOf(word); at >= 0 && count <= times; at = text.indexOf(word, at + word.length)) count++;
  return count > times;
}

/** The first patterns of all that may be a schema in a declaration, in order. */
function patternsIn(value: JsonValue): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (part: JsonValue): void => {
    if (found.size > MAX_PATTERNS) return;
    if (isJsonArray(part)) part.forEach(visit);
    else if (isJsonObject(part)) for (const key of Object.keys(part)) member(key, part[key] ?? null);
  };
  const member = (key: string, part: JsonValue): void => {
    if (key === "pattern" && typeof part === "string") found.add(part);
    if (key === "patternProperties" && isJsonObject(part)) for (const source of Object.keys(part)) found.add(source);
    visit(part);
  };
  visit(value);
  return found;
}
