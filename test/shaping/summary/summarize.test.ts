import { expect, test } from "vitest";
import { seeded, summaryOf, TEXTS, words } from "./fixtures.ts";

test("a long JSON answer becomes few key lines: what it is, how it stands, and how long it was [S2-114]", () => {
  const answer = {
    order_id: "A-17",
    status: "delayed",
    customer: { name: "Ada", email: "ada@example.test", tier: "gold" },
    internal: Object.fromEntries(
      Array.from({ length: 150 }, (_, i) => [`trace_${i}`, `https://trace.example/spans/${i}/x`]),
    ),
  };
  const summary = summaryOf(JSON.stringify(answer), 400);
  expect(summary).toContain("order_id: A-17, status: delayed");
  expect(summary).toContain("name: Ada");
  expect(summary).toMatch(/\[summary of \d+ characters of JSON/);
});

test("a list of objects is told by columns and rows: extremes, rare values, first and last", () => {
  const rows = Array.from({ length: 300 }, (_, i) => ({
    id: 700 + i,
    state: i === 123 ? "lost" : "open",
    size: i === 211 ? 99_999 : (i * 7) % 90,
  }));
  const summary = summaryOf(JSON.stringify({ ok: true, items: rows }), 1_200);
  expect(summary).toContain("$.items: 300 rows, 3 fields");
  expect(summary).toContain("state: open ×299 | lost ×1");
  expect(summary).toContain("max 99999");
  for (const row of ["700\topen\t0", "823\tlost", "911\topen\t99999", "999\topen"]) expect(summary).toContain(row);
});

test("a question brings the rows it names, whatever the rest is like", () => {
  const rows = Array.from({ length: 400 }, (_, i) => ({
    code: `X-${i}`,
    city: `city ${i % 50}`,
    note: `plain note ${i % 9}`,
  }));
  const json = JSON.stringify(rows);
  expect(summaryOf(json, 900)).not.toContain("X-287");
  expect(summaryOf(json, 900, "what is the note of X-287?")).toMatch(/X-287\tcity 37\tplain note 8/);
});

test("a log is told by its errors, the lines that came once, and patterns with their counts", () => {
  const lines = Array.from(
    { length: 400 },
    (_, i) => `2026-05-01 10:00:${String(i % 60).padStart(2, "0")} INFO request ${i} served in ${i % 40} ms`,
  );
  lines[200] =
    "2026-05-01 10:03:20 ERROR cannot open ledger: disk full\n    at open (ledger.ts:10:3)\n    at main (main.ts:1:1)";
  lines[300] = "2026-05-01 10:05:00 INFO configuration reloaded from disk";
  const summary = summaryOf(lines.join("\n"), 900);
  expect(summary).toContain("ERROR cannot open ledger: disk full");
  expect(summary).toContain("at open (ledger.ts:10:3)");
  expect(summary).toContain("configuration reloaded from disk");
  expect(summary).toMatch(/×398 1: INFO request 0 served in 0 ms|×398/);
  expect(summary).toContain("402 lines");
});

test("Markdown keeps its headings and the first sentence below each", () => {
  const text = Array.from(
    { length: 12 },
    (_, i) => `## Part ${i}\n\nThis is what part ${i} is about. ${words(seeded(i), 90)}.\n`,
  ).join("\n");
  const summary = summaryOf(text, 1_400);
  for (let i = 0; i < 12; i++) {
    expect(summary).toContain(`## Part ${i}\n`);
    expect(summary).toContain(`This is what part ${i} is about.`);
  }
});

test("HTML loses its scripts and tags, and keeps the rows of its tables", () => {
  const summary = summaryOf(TEXTS["html"]?.(seeded(3)) ?? "", 1_500);
  expect(summary).not.toMatch(/<|var x/);
  expect(summary).toContain("table 1: 30 rows, 2 fields");
  expect(summary).toMatch(/^size: min \d+, max \d+/m);
});

test("a long text is shortened in its middle, around what is asked", () => {
  const text = `${words(seeded(1), 200)} the secret ingredient is cardamom ${words(seeded(2), 200)}`;
  const json = JSON.stringify({ name: "recipe", text });
  expect(summaryOf(json, 500, "which ingredient")).toContain("ingredient is cardamom");
});

test("an emoji, a family and an accent are never cut in two [A-D04]", () => {
  const text = `${"a".repeat(9)}😀😀 `.repeat(30) + "👩‍👩‍👧 e\u0301 ".repeat(50);
  for (let limit = 1; limit < 200; limit++) {
    const summary = summaryOf(text, limit);
    expect(summary.isWellFormed()).toBe(true);
    expect([...summary].length).toBeLessThanOrEqual(limit);
    expect(summary).not.toMatch(/\u200d(?:\n|…|$)|(?:^|…)[\u0301\u200d]/);
  }
});

test("lines of a build, which have no times, are told as a log: problems first, then what differs", () => {
  const lines = Array.from({ length: 300 }, (_, i) => `checking for ${words(seeded(i), 2).replace(" ", "_")}... yes`);
  lines[120] = "src/store.c:88:12: error: 'quota' undeclared (first use in this function)";
  lines[200] = "configuration written to build/config.h";
  const summary = summaryOf(lines.join("\n"), 900);
  expect(summary).toContain("300 lines");
  expect(summary).toContain("errors and warnings:\n121: src/store.c:88:12: error: 'quota' undeclared");
  expect(summary).toContain("201: configuration written to build/config.h");
});

test("an error of the same day as the first line stands with its time alone", () => {
  const lines = Array.from(
    { length: 200 },
    (_, i) => `2026-05-01 10:00:${String(i % 60).padStart(2, "0")} INFO ok ${i}`,
  );
  lines[77] = "2026-05-01 11:12:13 ERROR disk full";
  lines[78] = "2026-05-02 00:00:01 ERROR disk gone";
  const summary = summaryOf(lines.join("\n"), 600);
  expect(summary).toContain("78: 11:12:13 ERROR disk full");
  expect(summary).toContain("79: 2026-05-02 00:00:01 ERROR disk gone");
});

test("Markdown that begins with a tag is Markdown, and its tags are left out", () => {
  const parts = Array.from({ length: 9 }, (_, i) => `## Part ${i}\n\nPart ${i} says this. ${words(seeded(i), 60)}.`);
  const text = `<p align="center">\n  <img src="https://img.example/logo.svg" />\n</p>\n\n${parts.join("\n\n")}`;
  const summary = summaryOf(text, 1_200);
  for (let i = 0; i < 9; i++) expect(summary).toContain(`## Part ${i}\nPart ${i} says this.`);
  expect(summary).not.toContain("<");
});

test("room that is left goes to longer texts, and a long list of numbers is told by its extremes", () => {
  const numbers = Array.from({ length: 3_000 }, (_, i) => ((i * 37) % 900) + 100);
  const summary = summaryOf(JSON.stringify({ unit: "m", heights: numbers }), 1_000);
  expect(summary.length).toBeGreaterThan(700);
  expect(summary).toContain("… 3000 items, min 100, max 999]");
});

test("rows are never without the column that names them", () => {
  const rows = Array.from({ length: 90 }, (_, i) => ({
    month: `m-${i}`,
    ...Object.fromEntries(
      words(seeded(5), 16)
        .split(" ")
        .map((name, j) => [`${name}_total_${j}`, (i * 31 * (j + 3)) % 90_000]),
    ),
  }));
  expect(summaryOf(JSON.stringify(rows), 1_500)).toMatch(/^month\t/m);
});

test("cells of a row that repeat the one above are told by a sign, and equal rows share a line", () => {
  const rows = Array.from(
    { length: 120 },
    (_, i) => `${i < 60 ? "northern region" : "southern region"},${i % 20 < 18 ? 7 : i}`,
  );
  const text = `region,size\n${rows.join("\n")}`;
  const lines = summaryOf(text, 500).split("\n");
  const start = lines.indexOf("#\tregion\tsize");
  expect(lines[start + 1]).toBe("(〃: as above)");
  let above = "";
  let shown = 0;
  for (const line of lines.slice(start + 2, -1)) {
    const [numbers = "", region = "", size = ""] = line.split("\t");
    above = region === "〃" ? above : region;
    for (const row of numbers.split(",")) {
      expect(rows[Number(row)]).toBe(`${above},${size}`);
      shown++;
    }
  }
  expect(lines.at(-1)).toContain(`${shown} of 120 rows`);
  expect(lines.slice(start).join("\n")).toMatch(/^\d+(?:,\d+)+\t/m);
});

test("lists of the same length that hold something else are not told as the same in every row", () => {
  const rows = Array.from({ length: 30 }, (_, i) => ({
    id: i,
    parts: [{ name: `part ${i}`, size: i * 3 }],
    left: { a: 1, b: [{ x: i }], c: "same" },
    right: { a: 1, b: [{ x: -1 - i }], c: "same" },
    fixed: [{ kind: "box" }],
  }));
  const summary = summaryOf(JSON.stringify(rows), 900);
  expect(summary).not.toMatch(/part 0|same as/);
  expect(summary).toContain("parts: [1 items] ×30");
  expect(summary).toContain("fixed[0].kind: box");
});

test("short fields of a few items stand side by side, each name once, in the order of the items", () => {
  const items = ["open", "shut", "lost", "open"].map((state, i) => ({
    number: 700 + i,
    owner: { login: `user-${i}`, kind: "person" },
    state,
    text: words(seeded(i), 60),
  }));
  const summary = summaryOf(JSON.stringify({ items }), 900);
  expect(summary).toContain("[0] | [1] | [2] | [3]:");
  expect(summary).toContain("number: 700 | 701 | 702 | 703");
  expect(summary).toContain("state: open | shut | lost | open");
  expect(summary).toContain("owner.login: user-0 | user-1 | user-2 | user-3");
  expect(summary).toContain("owner.kind: person");
});

test("results of tests and listings, which have no times, are told as a log", () => {
  const lines = Array.from(
    { length: 120 },
    (_, i) =>
      `test/${words(seeded(i), 2).replace(" ", "/")}.spec > case ${i} ${i === 77 ? "FAILED" : "passed"} [${i} ms]`,
  );
  const summary = summaryOf(lines.join("\n"), 900);
  expect(summary).toContain("120 lines");
  expect(summary).toMatch(/errors and warnings:\n78: .* FAILED \[77 ms\]/);
});

test("a file whose name has a word of trouble in it is no error", () => {
  const lines = Array.from({ length: 90 }, (_, i) => ` src/part-${i}/errors.ts | ${i + 3} ++++----`);
  expect(summaryOf(lines.join("\n"), 700)).not.toContain("errors and warnings");
});

test("comments of several lines and lists of links to headings are no part of what Markdown says", () => {
  const parts = Array.from(
    { length: 10 },
    (_, i) =>
      `## Part ${i}\n\n<!-- YAML\nadded: v${i}.0.0\n-->\n\nor\n\nPart ${i} says this at some length. ${words(seeded(i), 60)}.`,
  );
  const contents = Array.from({ length: 10 }, (_, i) => `- [Part ${i}](#part-${i})`).join("\n");
  const summary = summaryOf(`# All\n\n${contents}\n\n${parts.join("\n\n")}`, 1_300);
  expect(summary).not.toMatch(/added:|-->|\]\(#/);
  for (let i = 0; i < 10; i++) expect(summary).toContain(`Part ${i} says this`);
});
