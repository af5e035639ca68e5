import { expect, test } from "vitest";
import { parseDocument } from "../../src/config/parse-document.ts";
import type { SourceDocument } from "../../src/config/source-document.ts";
import { cpuMs } from "./cpu-time.ts";
import { problemLines } from "./problem-lines.ts";

function read(text: string): SourceDocument {
  const outcome = parseDocument(text, "yaml");
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.document;
}

test("a mapping is read with the values of the YAML 1.2 core schema", () => {
  const text =
    "a: text\nb: 1\nc: 1.5\nd: true\ne: null\nf: [x, {y: z}]\ng:\n  - h\ni: yes\nj: 2024-01-01\nk: |\n  two\n  lines\n";
  expect(read(text).value).toEqual({
    a: "text",
    b: 1,
    c: 1.5,
    d: true,
    e: null,
    f: ["x", { y: "z" }],
    g: ["h"],
    i: "yes",
    j: "2024-01-01",
    k: "two\nlines\n",
  });
});

test("integers beyond 2^53 keep their digits [Y-D04]", () => {
  expect(read("a: 871234567890123457\nb: -9223372036854775808\nc: 9007199254740991\n").value).toEqual({
    a: 871234567890123457n,
    b: -9223372036854775808n,
    c: 9007199254740991,
  });
});

test("numbers that JSON does not have stay text", () => {
  expect(read("a: .inf\nb: .nan\nc: 1e999\n").value).toEqual({ a: ".inf", b: ".nan", c: "1e999" });
});

test("a scalar without quotes still knows its source text, one with quotes or a tag has none", () => {
  const document = read("a: 007\nb: '007'\nc: !!str 007\nd: [1e3, 0o755]\ne: |\n  7\nf:\n");
  expect(document.scalarSource("/a")).toBe("007");
  expect(document.scalarSource("/b")).toBeUndefined();
  expect(document.scalarSource("/c")).toBeUndefined();
  expect(document.scalarSource("/d/0")).toBe("1e3");
  expect(document.scalarSource("/d/1")).toBe("0o755");
  expect(document.scalarSource("/d/2")).toBeUndefined();
  expect(document.scalarSource("/e")).toBeUndefined();
  expect(document.scalarSource("/f")).toBe("");
});

test("keys and list entries know their place, and what is absent has that of its nearest ancestor", () => {
  const document = read("name: t\nparams:\n  - name: a\n    type: string\n  - {name: b, type: integer}\na/b: {~: 1}\n");
  expect(document.position("")).toEqual({ line: 1, column: 1 });
  expect(document.position("/params")).toEqual({ line: 2, column: 1 });
  expect(document.position("/params/0/type")).toEqual({ line: 4, column: 5 });
  expect(document.position("/params/1")).toEqual({ line: 5, column: 5 });
  expect(document.position("/params/1/type")).toEqual({ line: 5, column: 15 });
  expect(document.position("/params/1/default/x")).toEqual({ line: 5, column: 5 });
  expect(document.position("/a~1b/~0")).toEqual({ line: 6, column: 7 });
  expect(document.position("/nothing")).toEqual({ line: 1, column: 1 });
  expect(document.has("/params/1/name")).toBe(true);
  expect(document.has("/params/2")).toBe(false);
  expect(document.has("/params/length")).toBe(false);
});

test("a key written twice is refused with the key and both lines [Y-D01]", () => {
  expect(problemLines("name: order_status\ntype: http\nmethod: GET\nmethod: DELETE\n")).toEqual([
    "4:1 key `method` is written twice, on lines 3 and 4: keep one",
  ]);
  expect(problemLines("a: {b: 1, c: {d: 1, d: 2}, b: 3}\n")).toEqual([
    "1:21 key `d` is written twice on line 1: keep one",
    "1:28 key `b` is written twice on line 1: keep one",
  ]);
});

test("a byte order mark and CRLF line ends change nothing [Y-D05]", () => {
  const text = "name: t\ndescription: |\n  first\n  second\nlast: 1\n";
  const windows = read(`\ufeff${text.replaceAll("\n", "\r\n")}`);
  expect(windows.value).toEqual(read(text).value);
  expect(windows.value["description"]).toBe("first\nsecond\n");
  expect(windows.position("/last")).toEqual({ line: 5, column: 1 });
});

test("a second byte order mark is named [Y-D05]", () => {
  expect(problemLines("\ufeff\ufeffname: t\n")[0]).toMatch(/^1:1 a byte order mark \(U\+FEFF\) inside the file/);
  expect(problemLines("name: t\n\ufefftype: http\n")[0]).toMatch(/^2:1 a byte order mark/);
});

test("several documents in one file are refused [Y-D06]", () => {
  expect(problemLines("name: tool_a\ntype: http\n---\nname: tool_b\ntype: http\n")).toEqual([
    "3:1 a second document begins here: multi-document files are not supported, write one file for each",
  ]);
  expect(read("---\nname: t\n...\n").value).toEqual({ name: "t" });
});

test("a tab as indentation is named with its line, wherever it stands [Y-D07]", () => {
  const tab = "a tab as indentation, which YAML does not allow: use spaces";
  expect(problemLines("name: t\nretry:\n\tmax_retries: 3\nendpoint: x\n")).toEqual([`3:1 ${tab}`]);
  expect(problemLines("a:\n  - b\n\t- c\n")).toEqual([`3:1 ${tab}`]);
  expect(problemLines("a:\n  b: 1\n \tc: 2\n")).toEqual([`3:1 ${tab}`]);
  expect(problemLines("a: {\n\tb: 1 }\n")).toEqual([`2:2 ${tab}`]);
  expect(read("a:\tb # a tab between words is fine\n").value).toEqual({ a: "b" });
});

test("aliases that blow up are refused at once and in little memory [Y-D08]", () => {
  const names = [..."abcdefghi"];
  const bomb = names.map((name, i) => {
    const entries = Array.from({ length: 9 }, () => (i === 0 ? "x" : `*${names[i - 1]}`));
    return `  ${name}: &${name} [${entries.join(", ")}]\n`;
  });
  const before = process.memoryUsage().heapUsed;
  let found: string[] = [];
  const spent = cpuMs(() => {
    found = problemLines(`name: t\ndescription:\n${bomb.join("")}`);
  });
  expect(found).toEqual(["1:1 with its aliases written out the document is longer than 1 MiB: use fewer aliases"]);
  expect(spent).toBeLessThan(1_000);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(50e6);
});

test("aliases, an alias to itself and one without an anchor", () => {
  expect(read("a: &x {b: 1}\nc: *x\nd: [*x]\n").value).toEqual({ a: { b: 1 }, c: { b: 1 }, d: [{ b: 1 }] });
  expect(read("a: &x 1\nb: &x 2\nc: *x\n").value).toEqual({ a: 1, b: 2, c: 2 });
  expect(problemLines("a: &x\n  b: *x\n")).toEqual(["2:6 alias `*x` stands inside the value it names"]);
  expect(problemLines("endpoint: *base\n")).toEqual([
    "1:11 alias `*base` has no anchor `&base` before it; quote the value if it is text",
  ]);
});

test("merge keys are applied: own entries win, then earlier ones [Y-D09]", () => {
  const document = read("x-net: &net {timeout: {connect: 1s, read: 2s}, enabled: true}\nenabled: false\n<<: *net\n");
  expect(document.value).toMatchObject({ enabled: false, timeout: { connect: "1s", read: "2s" } });
  expect(Object.keys(document.value)).not.toContain("<<");
  expect(document.position("/timeout/read")).toEqual({ line: 1, column: 37 });
  expect(
    read("a: &a {k: 1, l: 1}\nb: &b {k: 2, m: 2}\nc:\n  <<: [*a, *b]\nd:\n  <<: *b\n  <<: *a\n").value,
  ).toMatchObject({
    c: { k: 1, l: 1, m: 2 },
    d: { k: 2, m: 2, l: 1 },
  });
  expect(read("'<<': {a: 1}\n").value).toEqual({ "<<": { a: 1 } });
  expect(problemLines("<<: 3\n")).toEqual(["1:1 `<<` takes a mapping or a list of mappings, got number 3"]);
});

test("a template without quotes is named with its field and the mend [Y-D14]", () => {
  expect(problemLines("endpoint: {base}/orders\nrequest_body: {id: {order_id}}\n")).toEqual([
    '1:11 `endpoint` is a mapping here, not text: quote the template, "{base}/orders"',
    '2:20 `request_body.id` is a mapping here, not text: quote the template, "{order_id}"',
  ]);
  expect(problemLines("headers:\n  X-Id: {id}\n")).toEqual([
    '2:9 `headers.X-Id` is a mapping here, not text: quote the template, "{id}"',
  ]);
  expect(problemLines("{base}/orders: 1\n")).toEqual([
    '1:1 a key must be text, got a mapping: quote the template, "{base}/orders"',
  ]);
  expect(read("body: {id: $order_id}\n").value).toEqual({ body: { id: "$order_id" } });
});

test("half files are refused where they end [Y-D11]", () => {
  expect(problemLines("name: t\nallowed_roles: [ops\n")).toEqual(["2:16 this `[` is not closed by `]`"]);
  expect(problemLines("name: t\nbody: {id: 1\nnext: 2\n")).toEqual(["2:7 this `{` is not closed by `}`"]);
  expect(problemLines('name: t\ntitle: "abc\nnext: 2\n')).toEqual(["2:8 this double quote is not closed"]);
  expect(problemLines("name: t\ntitle: 'it''\nnext: 2\n")).toEqual(["2:8 this single quote is not closed"]);
  expect(problemLines("name: t\nmeth")).toEqual([
    "2:1 `meth` is no `key: value`: is the `:` missing, or the file half written?",
  ]);
});

test("an empty file, a list and a mere text are no mappings", () => {
  expect(problemLines("")).toEqual(["1:1 the file is empty"]);
  expect(problemLines("# only a comment\n\n")).toEqual(["1:1 the file is empty"]);
  expect(problemLines("---\n")).toEqual(["1:1 the file is empty"]);
  expect(problemLines("- a\n")).toEqual(["1:1 expected a mapping of keys to values, got a list"]);
  expect(problemLines("hello\n")).toEqual(['1:1 expected a mapping of keys to values, got text "hello"']);
});

test("slips in layout are told in words that help", () => {
  expect(problemLines("description: find foo: bar\n")).toEqual([
    "1:14 a second `: ` in one value makes it a nested key: quote the value, or begin the mapping on its own line",
  ]);
  expect(problemLines("a:\n   b: 1\n  c: 2\n")).toEqual([
    "3:1 the indentation does not fit: entries of one mapping or list begin in the same column",
  ]);
  expect(problemLines("a:\n  - b\n - c\n")).toEqual([
    "3:1 this list entry does not begin in the column of the ones above it",
  ]);
  expect(problemLines("a: 1\n  b: 2\n")[0]).toMatch(/^1:4 the lines from here on read as one key/);
  expect(problemLines("a:1\nb: 2\n")[0]).toMatch(/^1:1 the lines from here on read as one key/);
  expect(problemLines("a: - b\n")).toEqual(["1:4 a list begins on the line below its key"]);
  expect(problemLines("a: {b: 1 c: 2}\n")[0]).toMatch(/separated by commas/);
  expect(problemLines("a: [1,,2]\n")).toEqual(["1:7 a comma with nothing before it"]);
  expect(problemLines("listen: [::1]:7433\n")).toEqual([
    "1:14 `:7433` follows the `]` that ends the value: quote the whole value",
  ]);
  expect(problemLines("a: @x\n")).toEqual(["1:4 a value cannot begin with `@`: quote it"]);
  expect(problemLines('a: "\\d+"\n')[0]).toMatch(/^1:5 an unknown escape in double quotes/);
  expect(problemLines('a: "x"# y\n')).toEqual(["1:7 a comment needs a space before its `#`"]);
});

test("tags, directives and keys that are no text are refused", () => {
  expect(problemLines("a: !ruby/object x\n")[0]).toMatch(/^1:4 the tag `!ruby\/object` is not supported/);
  expect(problemLines("a: !!binary aGk=\n")[0]).toMatch(/^1:4 the tag `!!binary` is not supported/);
  expect(problemLines("a: !!int abc\n")[0]).toMatch(/does not fit the value/);
  expect(problemLines("%YAML 1.1\n---\na: yes\n")).toEqual([
    "1:1 directives (lines that begin with %) are not supported: remove the line",
  ]);
  expect(problemLines("? [a]\n: 1\n")).toEqual(["1:3 a key must be text: quote it"]);
  expect(read("1: a\ntrue: b\nnull: c\n007: d\n").value).toEqual({ "1": "a", true: "b", null: "c", "007": "d" });
});

test("signs that no text file should hold are named", () => {
  expect(problemLines("a: b\u0000c\n")[0]).toMatch(/^1:5 a control character \(U\+0000\)/);
  expect(problemLines("a: 1\rb: 2\r")[0]).toMatch(/^1:5 a carriage return without a line feed/);
  expect(problemLines("a: \ud800\n")[0]).toMatch(/^1:4 half of a surrogate pair/);
  expect(problemLines('a: "\\ud800"\n')[0]).toMatch(/^1:4 half of a surrogate pair/);
  expect(read("a: 😀\nb: 订单\n").value).toEqual({ a: "😀", b: "订单" });
});

test("all problems of a file come back at once, in order, one a line", () => {
  const text = "a: 1\na: 2\nb: *none\nc: {id}\nd: @x\ne: !tag y\n";
  expect(problemLines(text).map((line) => line.split(" ")[0])).toEqual(["2:1", "3:4", "4:4", "5:4", "6:4"]);
});

test("a file with very many problems names the first and counts the rest", () => {
  const lines = problemLines(Array.from({ length: 90 }, () => "a: 1\n").join(""));
  expect(lines).toHaveLength(50);
  expect(lines.at(-1)).toMatch(/\(and 39 more problems in this file\)$/);
});

test("names such as __proto__ and constructor are keys like any other", () => {
  const document = read("__proto__: {admin: true}\nconstructor: 1\n");
  expect(Object.hasOwn(document.value, "__proto__")).toBe(true);
  expect(Object.getPrototypeOf(document.value)).toBe(Object.prototype);
  expect(({} as Record<string, unknown>)["admin"]).toBeUndefined();
  expect(document.position("/constructor")).toEqual({ line: 2, column: 1 });
});

test("a comment behind a scalar is known, one on the next line is not its", () => {
  const document = read("description: query order #42 style ids\nname: t\n# other\nlast: 1\n");
  expect(document.value["description"]).toBe("query order");
  expect(document.comment("/description")).toBe("42 style ids");
  expect(document.comment("/name")).toBeUndefined();
});

test("text over 1 MiB is refused by its bytes", () => {
  expect(problemLines(`a: ${"x".repeat(1_048_576)}`)).toEqual([
    "1:1 the text has 1048579 bytes, and 1048576 (1 MiB) are allowed",
  ]);
  expect(problemLines(`a: ${"订".repeat(400_000)}`)[0]).toMatch(/1 MiB/);
  expect(problemLines(`a: ${"x".repeat(1_000_000)}`)).toEqual([]);
});

test("a message is one line and never long, whatever the text", () => {
  const long = "k".repeat(900);
  for (const text of [
    `${long}: 1\n${long}: 2\n`,
    `a: {"x\\ny": 1, "x\\ny": 2}\n`,
    `a: *${long}\n`,
    `"a\\u0007": 1\n"a\\u0007": 2\n`,
  ]) {
    for (const line of problemLines(text)) {
      expect(line).not.toMatch(/[\p{Cc}]/u);
      expect(line.length).toBeLessThan(250);
    }
  }
});

test("small files are read in a moment", () => {
  const text =
    "name: t\ndescription: Find an order\ntype: http\nendpoint: http://127.0.0.1/{id}\nparams:\n  - {name: id, type: string, required: true}\n";
  const spent = cpuMs(() => {
    for (let i = 0; i < 250; i++) read(`${text}# ${i}\n`);
  });
  expect(spent).toBeLessThan(1_000);
});

test("half of a character is refused in a key as in a value", () => {
  const refused = ["1:1 half of a surrogate pair, which is no character: write the whole one"];
  expect(problemLines('"\\udffb": 5\n')).toEqual(refused);
});

test("a sign that nothing explains is shown without its control characters", () => {
  expect(problemLines(": ]\u0085\n")).toEqual(['1:3 unexpected "]"', String.raw`1:4 unexpected "\\u0085"`]);
});
