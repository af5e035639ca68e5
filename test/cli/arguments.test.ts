import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fileText, type GivenArguments, toolArguments } from "../../src/cli/arguments.ts";
import { CliError } from "../../src/cli/cli-error.ts";
import type { JsonObject } from "../../src/core/json.ts";

const SCHEMA: JsonObject = {
  type: "object",
  properties: {
    order_id: { type: "string" },
    count: { type: "integer" },
    price: { type: "number" },
    urgent: { type: "boolean" },
    tags: { type: "array", items: { type: "string" } },
    address: { type: "object" },
    note: { type: ["string", "null"] },
    limit: { type: ["integer", "null"] },
    size: { enum: ["s", "m"] },
    level: { enum: [1, 2] },
    mode: { const: "fast" },
    any: {},
    ref: { $ref: "#/$defs/id" },
    either: { anyOf: [{ type: "integer" }, { type: "boolean" }] },
    loop: { $ref: "#/$defs/loop" },
  },
  $defs: { id: { type: "string" }, loop: { anyOf: [{ $ref: "#/$defs/loop" }, { $ref: "#/$defs/loop" }] } },
};

function read(given: Partial<GivenArguments>, stdin = ""): Promise<JsonObject> {
  const all = { params: [], json: undefined, ...given };
  return toolArguments(
    all,
    () => Promise.resolve(SCHEMA),
    () => Promise.resolve(stdin),
  );
}

async function refusal(given: Partial<GivenArguments>, stdin = ""): Promise<CliError> {
  const error: unknown = await read(given, stdin).catch((reason: unknown) => reason);
  if (error instanceof CliError) return error;
  throw new Error("expected a CliError");
}

test("a param is text where the schema takes a string and JSON otherwise", async () => {
  const cases: [string, unknown][] = [
    ["order_id=007", { order_id: "007" }],
    ["order_id=true", { order_id: "true" }],
    ["order_id=a=b", { order_id: "a=b" }],
    ["order_id=", { order_id: "" }],
    ["count=5", { count: 5 }],
    ["count=9007199254740993", { count: 9_007_199_254_740_993n }],
    ["price=1.50", { price: 1.5 }],
    ["urgent=true", { urgent: true }],
    ['tags=["a","b"]', { tags: ["a", "b"] }],
    ['address={"zip":"04109"}', { address: { zip: "04109" } }],
    ["note=null", { note: "null" }],
    ["limit=null", { limit: null }],
    ["size=m", { size: "m" }],
    ["level=2", { level: 2 }],
    ["mode=fast", { mode: "fast" }],
    ["ref=12", { ref: "12" }],
    ["either=false", { either: false }],
    ["any=12", { any: 12 }],
    ["any=abc", { any: "abc" }],
    ['any="abc"', { any: '"abc"' }],
    ["loop=1", { loop: 1 }],
    ["unheard_of=5", { unheard_of: 5 }],
    ["__proto__=x", JSON.parse('{"__proto__":"x"}')],
  ];
  for (const [param, expected] of cases) expect(await read({ params: [param] }), param).toEqual(expected);
});

test("text that is no JSON goes as it stands, so that the gateway can say what it expected", async () => {
  expect(await read({ params: ["count=five", "urgent=yes", "level=x"] })).toEqual({
    count: "five",
    urgent: "yes",
    level: "x",
  });
});

test("a list or object that is no JSON is refused with how to write it", async () => {
  const error = await refusal({ params: ["tags=a,b"] });
  expect(error.exitCode).toBe(2);
  expect(error.message).toBe("--param tags must be JSON, got a,b");
  expect(error.mend).toContain("--param 'tags=[1, 2]'");
  expect((await refusal({ params: ["address=zip"] })).mend).toContain(`'address={"key": 1}'`);
});

test("a param without a name or given twice is refused", async () => {
  expect((await refusal({ params: ["order_id"] })).message).toBe('--param takes name=value, got "order_id"');
  expect((await refusal({ params: ["=x"] })).exitCode).toBe(2);
  expect((await refusal({ params: ["count=1", "count=2"] })).message).toBe("--param count is given twice");
});

test("values come from files with @, and @@ stands for one @", async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-arguments-"));
  try {
    const file = join(folder, "value.txt");
    await writeFile(file, "line one\nline two\n");
    expect(await read({ params: [`order_id=@${file}`] })).toEqual({ order_id: "line one\nline two\n" });
    expect(await read({ params: ["order_id=@@alice"] })).toEqual({ order_id: "@alice" });
    await writeFile(file, '{"order_id":"x","count":9007199254740993}');
    expect(await read({ json: `@${file}` })).toEqual({ order_id: "x", count: 9_007_199_254_740_993n });
    const missing = await refusal({ params: [`order_id=@${file}.gone`] });
    expect(missing.message).toBe(`--param order_id: cannot read ${file}.gone: no such file or folder`);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("--json reads text, a file or stdin, and params win over it", async () => {
  expect(await read({ json: '{"count":1,"order_id":"a"}', params: ["count=2"] })).toEqual({ count: 2, order_id: "a" });
  expect(await read({ json: "-" }, '{"count":3}')).toEqual({ count: 3 });
  expect((await refusal({ json: "{count:1}" })).message).toBe(
    '--json is not valid JSON at character 2: expected a name in double quotes, got "count:1}"',
  );
  expect((await refusal({ json: '{"a":1,"a":2}' })).message).toContain('--json has the name "a" twice');
  expect((await refusal({ json: "[1]" })).message).toBe("--json must be one JSON object, the arguments by name");
});

test("without params the tool's schema is not asked for", async () => {
  const schema = (): Promise<JsonObject> => Promise.reject(new Error("must not be asked"));
  const noStdin = (): Promise<string> => Promise.reject(new Error("must not be read"));
  const given = { params: [], json: '{"a":1}' };
  expect(await toolArguments(given, schema, noStdin)).toEqual({ a: 1 });
  expect(await toolArguments({ params: [], json: undefined }, schema, noStdin)).toEqual({});
});

test("a file that is no UTF-8 is refused instead of being sent with its characters replaced", async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-encoding-"));
  const path = join(folder, "latin1.yaml");
  await writeFile(path, Buffer.from("name: caf\xe9\n", "latin1"));
  await expect(fileText(path, "--file")).rejects.toThrow(`--file: ${path} is no UTF-8 text`);
  await writeFile(path, "name: café\n");
  expect(await fileText(path, "--file")).toBe("name: café\n");
  await rm(folder, { recursive: true });
});
