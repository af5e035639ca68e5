import type { JsonValue } from "../../../src/core/json.ts";
import { type Summary, summarizeText } from "../../../src/shaping/summary/summarize.ts";
import { finish } from "../../../src/shaping/summary/work.ts";

/** Numbers from 0 to 1, the same for a seed. */
export type Random = () => number;

/** A generator of numbers that gives the same ones for a seed. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

const WORDS =
  "amber basin cedar delta ember fjord grove harbor inlet jetty kelp lagoon mesa notch orchard prairie".split(" ");

/** One of the things. */
function pick<T>(random: Random, things: readonly T[]): T {
  const thing = things[Math.floor(random() * things.length)];
  if (thing === undefined) throw new Error("nothing to pick from");
  return thing;
}

/** Words of a small vocabulary. */
export function words(random: Random, count: number): string {
  return Array.from({ length: count }, () => pick(random, WORDS)).join(" ");
}

function scalar(random: Random): JsonValue {
  const values: (() => JsonValue)[] = [
    () => Math.floor(random() * 1e6),
    () => Math.round(random() * 1e5) / 100,
    () => words(random, 1 + Math.floor(random() * 4)),
    () => random() < 0.5,
    () => null,
    () => "",
    () => `https://host.example/${words(random, 1)}/${Math.floor(random() * 1e5)}`,
    () => `${words(random, 12)} 😀 e\u0301 👩‍👩‍👧 ${Math.floor(random() * 1e9)}`,
    () => BigInt("9007199254740993") + BigInt(Math.floor(random() * 1e6)),
    () => `2026-0${1 + Math.floor(random() * 9)}-11T10:0${Math.floor(random() * 9)}:00Z`,
  ];
  return pick(random, values)();
}

/** A JSON value of some depth. */
export function jsonValue(random: Random, depth: number): JsonValue {
  const kind = random();
  if (depth === 0 || kind < 0.2) return scalar(random);
  const size = Math.floor(random() * 7);
  if (kind < 0.4) return Array.from({ length: size }, () => jsonValue(random, depth - 1));
  if (kind < 0.6) return records(random, 1 + Math.floor(random() * 40));
  return Object.fromEntries(
    Array.from({ length: size + 1 }, (_, i) => [
      `${words(random, 1)}_${"abcdefgh"[i] ?? "z"}`,
      jsonValue(random, depth - 1),
    ]),
  );
}

/** A list of objects with the same fields, some of them missing. */
function records(random: Random, count: number): JsonValue {
  const fields = ["id", "name", "state", "total", "created_at", "owner", "notes"];
  return Array.from({ length: count }, (_, i) => ({
    id: i + 1000,
    ...Object.fromEntries(fields.slice(1).flatMap((field) => (random() < 0.1 ? [] : [[field, scalar(random)]]))),
    ...(random() < 0.5 ? { nested: { kind: pick(random, ["x", "y"]), size: Math.floor(random() * 50) } } : {}),
  }));
}

/** A text of each kind. */
export const TEXTS: Readonly<Record<string, (random: Random) => string>> = {
  json: (random) =>
    JSON.stringify(jsonValue(random, 4), (_key, value: unknown) => (typeof value === "bigint" ? Number(value) : value)),
  rows: (random) =>
    JSON.stringify({ items: records(random, 60) }, (_key, value: unknown) =>
      typeof value === "bigint" ? Number(value) : value,
    ),
  csv: (random) =>
    `id,name,state,total\n${Array.from({ length: 80 }, (_, i) => `${i + 500},"${words(random, 2)}, ""x""",${pick(random, ["open", "shut"])},${(random() * 900).toFixed(2)}`).join("\r\n")}`,
  log: (random) =>
    Array.from({ length: 90 }, (_, i) => {
      const time = `2026-03-0${1 + Math.floor(random() * 9)} 12:00:${String(10 + (i % 50))}`;
      if (random() < 0.05)
        return `${time} ERROR ${words(random, 3)} failed\n    at Thing.run (file.js:${i + 7}:3)\n    at main (app.js:1:1)`;
      return `${time} INFO ${words(random, 2)} took ${Math.floor(random() * 900)} ms`;
    }).join("\n"),
  markdown: (random) =>
    Array.from(
      { length: 14 },
      (_, i) =>
        `${"#".repeat(1 + (i % 3))} ${words(random, 3)}\n\n${words(random, 30)}. ${words(random, 20)} ${i * 37}.\n\n- ${words(random, 9)}\n- ${words(random, 9)}\n`,
    ).join("\n"),
  html: (random) =>
    `<!doctype html><html><head><title>${words(random, 3)}</title><script>var x = 1;</script></head><body>${Array.from({ length: 6 }, () => `<h2>${words(random, 2)}</h2><p>${words(random, 40)} &amp; &#8364;</p>`).join("")}<table><tr><th>name</th><th>size</th></tr>${Array.from({ length: 30 }, () => `<tr><td>${words(random, 1)}</td><td>${Math.floor(random() * 900)}</td></tr>`).join("")}</table></body></html>`,
  ndjson: (random) =>
    Array.from({ length: 60 }, (_, i) =>
      JSON.stringify({ n: i, level: pick(random, ["info", "warn"]), text: words(random, 5) }),
    ).join("\n"),
  text: (random) =>
    Array.from({ length: 20 }, () => `${words(random, 40)} 😀👍🏽 ${Math.floor(random() * 1e6)}.`).join("\n\n"),
  binary: (random) => Array.from({ length: 3000 }, () => String.fromCharCode(Math.floor(random() * 128))).join(""),
  digits: (random) => Array.from({ length: 60 }, () => String(random()).slice(2).repeat(6)).join(""),
};

/** The summary of a text, or the text itself where it is within the limit. */
export function summaryOf(text: string, limit: number, question = ""): string {
  const made: Summary | undefined = finish(summarizeText(text, { limit, question }));
  return made?.text ?? text;
}
