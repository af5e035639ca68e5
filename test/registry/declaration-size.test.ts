import { expect, test } from "vitest";
import { declare, lines, ORDER_STATUS, parse } from "./declaration-fixture.ts";

// Whatever a declaration holds, reading it holds up the event loop for some 20 ms at most. Asserted is ten times that,
// in CPU time of this thread, since other work on the machine counts in part even there.

const MAX_CPU_MS = 200;

const HEAD = `name: big
description: A tool whose declaration is far too large
type: http
method: POST
endpoint: https://a.example/x
`;

function repeated(count: number, text: (i: number) => string): string {
  return Array.from({ length: count }, (_, i) => text(i)).join("");
}

function params(count: number, more: (i: number) => string): string {
  return `${HEAD}params:\n${repeated(count, (i) => `  - {name: p${i}, type: string${more(i)}}\n`)}`;
}

const HOSTILE: readonly (readonly [name: string, text: string, problem: RegExp, format?: "json"])[] = [
  ["10,000 parameters", params(10_000, () => ""), /more than 10000 lines in one document/],
  ["2,000 parameters", params(2_000, () => ""), /`params`: expected at most 1000 entries/],
  ["100,000 lines", `${HEAD}x-a:\n${repeated(100_000, () => "  - a: b\n")}`, /more than 10000 lines in one document/],
  ["a text of 400,000 lines", `${HEAD}x-a: |\n${" a\n".repeat(340_000)}`, /more than 10000 lines in one document/],
  ["100,000 empty lines of JSON", "\n".repeat(100_000), /more than 50000 lines/, "json"],
  [
    "a text of 300,000 characters in quotes over two lines",
    `${HEAD}x-a: "${"a".repeat(300_000)}\n b"\n`,
    /more than 262144 characters/,
  ],
  ["20,000 aliases in one line", `${HEAD}x-a: [&a 1${",*a".repeat(20_000)}]\n`, /more than 10000 words and signs/],
  ["a list of 500,000 numbers", `${HEAD}x-a: [${"1,".repeat(500_000)}1]\n`, /more than 262144 characters \(256 Ki\)/],
  ["a list of 50,000 numbers", `${HEAD}x-a: [${"1,".repeat(50_000)}1]\n`, /more than 10000 words and signs/],
  ["9,000 unknown keys", HEAD + repeated(9_000, (i) => `k${i}: b\n`), /^\d+:1 more than 200 keys in one declaration/],
  ["150,000 equal keys", HEAD + "a: b\n".repeat(150_000), /more than 10000 lines in one document/],
  ["100,000 levels", `${HEAD}x-a: ${"[".repeat(100_000)}\n`, /nested deeper than 128 levels/],
  [
    "aliases that multiply",
    `${HEAD}x-a: &a [1,1,1,1,1,1,1,1,1]\n${repeated(
      8,
      (i) =>
        `x-${i}: &a${i} [${Array(9)
          .fill(i === 0 ? "*a" : `*a${i - 1}`)
          .join(",")}]\n`,
    )}`,
    /aliases written out/,
  ],
  [
    "an endpoint of 160,000 references",
    HEAD.replace("/x", `/${"{a}".repeat(160_000)}`),
    /`endpoint`: expected at most 8192 characters/,
  ],
  [
    "5,000 headers",
    `${HEAD}headers:\n${repeated(5_000, (i) => `  X-h${i}: v\n`)}`,
    /`headers`: expected at most 256 entries/,
  ],
  [
    "a body of 200,000 references in one text",
    `${HEAD}params: [{name: a, type: string}]\nbody: {l: "${"$a ".repeat(200_000)}"}\n`,
    /holds more than 1000 references/,
  ],
  [
    "199 patterns",
    params(199, (i) => `, pattern: "^(?:[a-z]{1,30}[0-9]{1,${20 + i}}){1,2}$"`),
    /its patterns are more than 100, or too large together/,
  ],
  [
    "99 patterns of Unicode classes",
    params(99, (i) => `, pattern: '^\\p{L}{1,${20 + (i % 20)}}\\p{N}{${i}}$'`),
    /its patterns are more than 100, or too large together/,
  ],
  [
    "one pattern of many copies of a class",
    params(1, () => ", pattern: '^(?:\\p{L}{1,99}x){1,9}$'"),
    /its counts make it too large/,
  ],
  [
    "a mistake before patterns that take long",
    params(999, (i) => (i === 0 ? ", pattern: '['" : `, pattern: '^\\p{L}{1,20}${i}$'`)),
    /parameter `p0`.*not a regular expression/,
  ],
];

function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

for (const [name, text, problem, format = "yaml"] of HOSTILE) {
  test(`a declaration with ${name} is refused in a moment [X-D05]`, () => {
    declare(ORDER_STATUS);
    const spent = cpuMs(() => {
      const outcome = parse(text, { format });
      expect(outcome.ok ? "accepted" : lines(outcome.problems).join("\n")).toMatch(problem);
    });
    expect(spent).toBeLessThan(MAX_CPU_MS);
  });
}

test("a tool of 1,000 parameters, and one of 2,000 properties, are read in a moment", () => {
  declare(ORDER_STATUS);
  const properties = Object.fromEntries(
    Array.from({ length: 2_000 }, (_, i) => [`p${i}`, { type: "string", minLength: 1 }]),
  );
  const wide = {
    name: "wide",
    description: "A tool of many properties",
    type: "http",
    method: "POST",
    endpoint: "https://a.example/x",
    input_schema: { type: "object", properties },
  };
  expect(cpuMs(() => declare(params(1_000, () => ", description: One of very many")))).toBeLessThan(MAX_CPU_MS);
  expect(cpuMs(() => declare(JSON.stringify(wide), { format: "json" }))).toBeLessThan(MAX_CPU_MS);
});
