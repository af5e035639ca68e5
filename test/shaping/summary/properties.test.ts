import { expect, test } from "vitest";
import { largeTexts } from "../../../bench/summary/large.ts";
import { type JsonValue, stringifyJson } from "../../../src/core/json.ts";
import { codePointCount } from "../../../src/core/text.ts";
import { jsonTree } from "../../../src/shaping/summary/json-tree.ts";
import { NO_QUESTION } from "../../../src/shaping/summary/question.ts";
import { summarizeText } from "../../../src/shaping/summary/summarize.ts";
import { finish, finishUnhurried } from "../../../src/shaping/summary/work.ts";
import { jsonValue, seeded, summaryOf, TEXTS } from "./fixtures.ts";

const BUDGETS = [40, 41, 60, 85, 120, 200, 333, 500, 900, 1_500, 2_000, 4_000, 9_000, 20_000];
const QUESTIONS = ["", "total of harbor", "state open 512", "what failed in app.js"];
const SEEDS = [1, 2, 3, 4];

/** Runs of digits. */
function digitsOf(text: string): Set<string> {
  return new Set(text.match(/\d+/g));
}

/** The parts of a summary whose numbers are counts and means, and say so. */
const AGGREGATES =
  /×\d+|mean -?[\d.]+(?:e[+-]\d+)?|\d+ distinct|\d+\+? (?:rows|fields|items|lines|patterns|parts|values|readable)|\{\d+ fields\}|\[\d+ items\]|\d+ of \d+|list of \d+|summary of \d+ characters|… \d+ (?:items|lines)|\[\d+\]|table \d+|#\d+/g;

for (const [kind, make] of Object.entries(TEXTS)) {
  test(`a summary of ${kind} is within its limit, well-formed, the same each time, and its own summary`, {
    timeout: 180_000,
  }, () => {
    for (const seed of SEEDS) {
      const text = make(seeded(seed));
      for (const [i, limit] of BUDGETS.entries()) {
        if (i % 2 === seed % 2) continue;
        const question = QUESTIONS[(i + seed) % QUESTIONS.length] ?? "";
        const summary = summaryOf(text, limit, question);
        expect(codePointCount(summary), `${kind} ${seed} ${limit}`).toBeLessThanOrEqual(limit);
        expect(summary.isWellFormed()).toBe(true);
        expect(summary).toBe(summaryOf(text, limit, question));
        expect(summaryOf(summary, limit, question)).toBe(summary);
        if (codePointCount(text) <= limit) expect(summary).toBe(text);
      }
    }
  });

  test(`every number of a summary of ${kind} stands in the source, or is named as a count or a mean`, {
    timeout: 180_000,
  }, () => {
    for (const seed of SEEDS) {
      const text = make(seeded(seed));
      const source = digitsOf(text.replace(/&#\d+;/g, ""));
      for (const limit of BUDGETS.slice(3 + (seed % 2)).filter((_, i) => i % 2 === 0)) {
        const summary = summaryOf(text, limit, QUESTIONS[seed % QUESTIONS.length]);
        if (summary === text) continue;
        // Line and row numbers stand at the beginning of a line and are places.
        const body = summary.replace(AGGREGATES, " ").replace(/^ *(?:×\d+ )?\d+[:\t]/gm, " ");
        const places = /^(?:#\t|\d+: )/m.test(summary);
        for (const digits of digitsOf(body)) {
          expect(
            source.has(digits) || (places && Number(digits) < 100_000),
            `${kind} ${seed} ${limit}: ${digits} in\n${summary}`,
          ).toBe(true);
        }
      }
    }
  });
}

test("work lets others have their turn in between", async () => {
  const text = `id,name\n${Array.from({ length: 30_000 }, (_, i) => `${i},name ${i % 97}`).join("\n")}`;
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  try {
    const made = await finishUnhurried(summarizeText(text, { limit: 2_000, question: "name 17" }));
    expect(made?.text).toBe(summaryOf(text, 2_000, "name 17"));
    expect(turns).toBeGreaterThan(0);
  } finally {
    clearInterval(timer);
  }
});

test("a text of 1 MB is never worked on in one piece, whatever it is", () => {
  for (const [kind, text] of Object.entries(largeTexts())) {
    const work = summarizeText(text, { limit: 4_000, question: "total of harbor 512" });
    let pieces = 1;
    while (work.next().done !== true) pieces++;
    expect(pieces, kind).toBeGreaterThanOrEqual(8);
  }
});

test("counts, least and greatest values and means of columns are those that another count gives", () => {
  for (const seed of SEEDS) {
    const random = seeded(seed);
    const rows = Array.from({ length: 50 }, (_, i) => ({
      key: `k${i}`,
      size: Math.floor(random() * 9_000),
      price: Math.round(random() * 1e5) / 100,
      state: ["open", "shut", "lost"][Math.floor(random() * 3)] ?? "open",
    }));
    const summary = summaryOf(JSON.stringify(rows), 1_500);
    expect(summary).toContain("50 rows, 4 fields");
    for (const field of ["size", "price"] as const) {
      const values = rows.map((row) => row[field]);
      const mean = Number((values.reduce((sum, value) => sum + value, 0) / values.length).toPrecision(5));
      expect(summary).toContain(`${field}: min ${Math.min(...values)}, max ${Math.max(...values)}, mean ${mean}`);
    }
    const counts = Map.groupBy(rows, ({ state }) => state);
    for (const [state, of] of counts) expect(summary).toContain(`${state} ×${of.length}`);
  }
});

test("a summary of JSON names no key that the source does not have", () => {
  for (const seed of SEEDS) {
    const value = jsonValue(seeded(seed + 100), 4);
    const json = stringifyJson(value);
    const keys = new Set(["every row", "value", "…"]);
    const collect = (part: JsonValue): void => {
      if (typeof part !== "object" || part === null) return;
      for (const [key, item] of Object.entries(part)) {
        keys.add(key);
        collect(item);
      }
    };
    collect(value);
    const leaves = finish(jsonTree(value, { budget: 3_000, question: NO_QUESTION, elsewhere: () => undefined })).text;
    for (const [, label = ""] of leaves.matchAll(/(?:^|[\n{,]) *([^\s:,{}"]+):(?= |$)/gm)) {
      for (const name of label.split(/\.|\[[\d*]+\]/))
        if (name !== "") expect(keys, `${label} of ${json.slice(0, 200)}`).toContain(name);
    }
  }
});
