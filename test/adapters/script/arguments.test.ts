import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { JsonObject, JsonValue } from "../../../src/core/json.ts";
import { callOnce, problemsOf, type ToolOptions, testFolder, textOf } from "./fixture.ts";

/** A program that prints its arguments, each in brackets. */
const SHOW = ["-c", 'for a in "$@"; do printf "[%s]" "$a"; done', "show"];

const TEXT = { type: "string" };

function shown(args: readonly JsonValue[], options: Partial<ToolOptions> = {}): ToolOptions {
  return { ...options, keys: { command: "sh", args: [...SHOW, ...args], ...options.keys } };
}

async function run(args: readonly JsonValue[], options: Partial<ToolOptions>, values: JsonObject): Promise<string> {
  const outcome = await callOnce(shown(args, options), values);
  return outcome.error?.message ?? textOf(outcome);
}

test("each placeholder stays within one entry, whatever it holds [S2-34] [S-D09]", async () => {
  const options = { params: { a: TEXT, b: TEXT } };
  expect(await run(["--to={a}", "x {b} y"], options, { a: "1 2\n3", b: "'$(id)' `id` \"; rm -rf *" })).toBe(
    "[--to=1 2\n3][x '$(id)' `id` \"; rm -rf * y]",
  );
  expect(await run(["{a}", "{b}"], options, { a: "", b: "订单 🙂" })).toBe("[][订单 🙂]");
});

test("an absent argument drops its entry, and its whole group", async () => {
  const options = { params: { a: TEXT, n: { type: "integer" } }, required: [] };
  const args = ["{a}", ["--limit", "{n}"], "end"];
  expect(await run(args, options, {})).toBe("[end]");
  expect(await run(args, options, { a: "x", n: 12345678901234567890n })).toBe(
    "[x][--limit][12345678901234567890][end]",
  );
});

test("a list alone becomes an entry for each of its values", async () => {
  const options = { params: { tags: { type: "array" } } };
  expect(await run(["{tags}", "end"], options, { tags: ["a b", 1, true] })).toBe("[a b][1][true][end]");
  expect(await run(["{tags}", "end"], options, { tags: [] })).toBe("[end]");
  expect(await run(["{tags}"], options, { tags: [["x"]] })).toContain("argument `tags` an argument takes text");
  expect(problemsOf(shown(["x{tags}"], options))).toEqual([
    "/args/3 parameter `tags` is an array, and text in an argument takes only text, numbers and booleans",
  ]);
});

test.for(["--version", "-rf", "--output=/work", "-"])(
  "a value that begins with a dash is no option: %s [S-D09]",
  async (file) => {
    const options = { params: { file: TEXT } };
    expect(await run(["--", "{file}"], options, { file })).toBe(`[--][${file}]`);
    expect(await run(["--file={file}"], options, { file })).toBe(`[--file=${file}]`);
    const outcome = await callOnce(shown(["{file}"], options), { file });
    expect(outcome.error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", effect: "none" });
    expect(outcome.error?.message).toBe(
      "run_report: argument `file` begins with `-`, which the program could take for an option; the program was not started",
    );
    expect(outcome.error?.violations).toMatchObject([{ field: "/file" }]);
  },
);

test("`allow_dash` lets values begin with a dash, and so does an `enum` that has them [S-D09]", async () => {
  const free = { command: "sh", args: [...SHOW, "{n}"], allow_dash: ["n"] };
  const options: ToolOptions = { params: { n: { type: "integer" } }, keys: free, format: "text" };
  expect(textOf(await callOnce(options, { n: -5 }))).toBe("[-5]");
  const order = { params: { order: { type: "string", enum: ["-r", "-n"] } } };
  expect(await run(["{order}"], order, { order: "-r" })).toBe("[-r]");
  expect(problemsOf({ keys: { command: "ls", allow_dash: ["x"] } })).toEqual(["/allow_dash/0 `x` is no parameter"]);
});

test("`@file` and other words are passed as they are [S-D09]", async () => {
  expect(await run(["{file}"], { params: { file: TEXT } }, { file: "@file" })).toBe("[@file]");
});

test("an argument with NUL is refused, and the gateway goes on [S-D12]", async () => {
  const outcome = await callOnce(shown(["{a}"], { params: { a: TEXT } }), { a: "x\0y" });
  expect(outcome.error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", effect: "none" });
  expect(outcome.error?.message).toContain("argument `a` contains NUL");
});

test("arguments that are too long for a command line are an error of their own [S-D12]", async () => {
  const outcome = await callOnce(shown(["{a}"], { params: { a: TEXT } }), { a: "x".repeat(3 * 1024 * 1024) });
  expect(outcome.error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", effect: "none", retryable: false });
  expect(outcome.error?.message).toMatch(/the arguments are too long for a command line \(31\d+ bytes\)/);
});

test("thousands of arguments are no trouble [S-D12]", async () => {
  const options: ToolOptions = {
    params: { a: { type: "array" } },
    keys: { command: "sh", args: ["-c", "echo $#", "n", "{a}"] },
  };
  expect(textOf(await callOnce(options, { a: Array.from({ length: 5_000 }, (_, i) => i) }))).toBe("5000\n");
});

test("no argument becomes code", () => {
  const params = { a: TEXT };
  const problem = (command: string, ...args: readonly string[]): string[] =>
    problemsOf({ params, keys: { command, args } });
  expect(problem("sh", "-c", "grep {a} file")).toEqual([
    "/args/1 `sh -c` would read the argument in it as code; write it as an entry of its own after it, which the code takes from its arguments",
  ]);
  expect(problem("/usr/bin/bash", "-lc", "{a}")).toHaveLength(1);
  expect(problem("python3", "-c", "print({a})")).toHaveLength(1);
  expect(problem("node", "-e", "{a}")).toHaveLength(1);
  expect(problem("sh", "-c", 'grep -- "$1" file', "sh", "{a}")).toEqual([]);
  expect(problem("grep", "-c", "{a}")).toEqual([]);
  expect(problem("{a}")).toEqual([
    "/command `{a}` stands in the command, and no argument may choose the program",
    "/args parameter `a` stands nowhere; write `{a}` in `args`, or `stdin: arguments`",
  ]);
});

test("what names no parameter, and a parameter that stands nowhere, are refused", () => {
  const params = { order_id: TEXT };
  expect(problemsOf({ params, keys: { command: "ls", args: ["{order_di}", "{order_id}"] } })).toEqual([
    "/args/0 `{order_di}` names no parameter; did you mean `order_id`?",
  ]);
  expect(problemsOf({ params, keys: { command: "ls", args: ["{"] } })[0]).toContain("`{` stands alone");
  expect(problemsOf({ params, keys: { command: "ls" } })).toEqual([
    "/command parameter `order_id` stands nowhere; write `{order_id}` in `args`, or `stdin: arguments`",
  ]);
  expect(problemsOf({ params, keys: { command: "ls", args: ["${order_id}", "${HOME}"] } })[0]).toContain(
    "environment variables",
  );
});

test("standard input is a text, JSON, or all arguments, and ends [S-D05]", async () => {
  const params = { id: { type: "integer" }, note: { type: "string" } };
  const input = async (stdin: JsonValue, args: JsonObject): Promise<string> => {
    const outcome = await callOnce({ params, required: ["id"], keys: { command: "cat", stdin }, format: "text" }, args);
    return outcome.error?.message ?? textOf(outcome);
  };
  expect(await input("arguments", { id: 12345678901234567890n, note: "订单" })).toBe(
    '{"id":12345678901234567890,"note":"订单"}\n',
  );
  expect(await input({ order: "$id", text: "note: $note" }, { id: 7, note: "a" })).toBe(
    '{"order":7,"text":"note: a"}\n',
  );
  expect(await input({ order: "$id", text: "$note" }, { id: 7 })).toBe('{"order":7}\n');
  expect(problemsOf({ params, keys: { command: "cat", stdin: "$id $other" } })).toEqual([
    "/stdin `$other` names no parameter; declared are: id, note (environment variables are never read here: what the program gets of them stands in `env` and `inherit_env`)",
    "/command parameter `note` stands nowhere; write `{note}` in `args`, or `stdin: arguments`",
  ]);
  const text = await callOnce(
    { params: { id: TEXT }, keys: { command: "cat", stdin: "id $id costs $$5" } },
    { id: "7" },
  );
  expect(textOf(text)).toBe("id 7 costs $5");
});

test("much input reaches a program, and one that reads none of it is no trouble", async () => {
  const params = { text: TEXT };
  const text = "x".repeat(3_000_000);
  const count = await callOnce({ params, keys: { command: "wc", args: ["-c"], stdin: "$text" } }, { text });
  expect(textOf(count).trim()).toBe("3000000");
  const blind = await callOnce({ params, keys: { command: "true", stdin: "$text" } }, { text });
  expect(blind.result).toMatchObject({ content: [], upstreamCode: 0 });
});

test("without `stdin` a program reads the end at once [S-D05]", async () => {
  const outcome = await callOnce({ keys: { command: "cat" } });
  expect(outcome.result).toEqual({ content: [], upstreamCode: 0, effect: "committed" });
});

test("a relative command begins at `cwd`, and a relative `cwd` at the watched folder [S2-34]", async () => {
  await using folder = await testFolder();
  await folder.program("where.sh", "#!/bin/sh\npwd\n");
  const inFolder = await callOnce({ folder: folder.path, keys: { command: "./where.sh" } });
  expect(textOf(inFolder)).toBe(`${folder.path}\n`);
  const elsewhere = await callOnce({ folder: "/", keys: { command: "./where.sh", cwd: folder.path.slice(1) } });
  expect(textOf(elsewhere)).toBe(`${folder.path}\n`);
});

test("a shell is run only where the operator allows it, and arguments reach it as values [S2-40]", async () => {
  await using folder = await testFolder();
  await writeFile(join(folder.path, "data"), "one\ntwo three\n");
  const params = { word: TEXT };
  const command = 'grep -c -- {word} data | sed "s/^/{word}: /"';
  const keys = { command, shell: true };
  expect(problemsOf({ params, keys })).toEqual([
    "/shell a shell is not allowed on this gateway; set `scripts.shell: allow` in gateway.yaml, or write the program into `command` and its `args`",
  ]);
  const options: ToolOptions = { params, keys, shell: true, folder: folder.path };
  expect(textOf(await callOnce(options, { word: "two three" }))).toBe("two three: 1\n");
  const hostile = "x'; touch broken; $(touch broken) `touch broken` \"";
  const outcome = await callOnce(
    { ...options, keys: { shell: true, command: 'printf %s {word}; printf %s "{word}"' } },
    { word: hostile },
  );
  expect(textOf(outcome)).toBe(hostile + hostile);
  expect(await folder.lines("broken")).toEqual([]);
  const dash = await callOnce({ ...options, keys: { shell: true, command: "ls {word}" } }, { word: "-la" });
  expect(dash.error?.reason).toBe("TEMPLATE_VALUE_REFUSED");
});

test("a placeholder stands nowhere in a command line where a shell would not fill it in, or take it apart", () => {
  const problem = (command: string, keys: JsonObject = {}): string[] =>
    problemsOf({ params: { a: TEXT }, keys: { command, shell: true, ...keys }, shell: true });
  expect(problem("echo '{a}'")).toEqual([
    "/command `{a}` stands in single quotes, where a shell fills nothing in; remove them",
  ]);
  expect(problem('echo "$(ls {a})"')).toEqual([
    "/command `{a}` stands in a command in double quotes; write it outside of them",
  ]);
  expect(problem("echo \\' {a} \"it's\" {a}")).toEqual([]);
  expect(problem("echo {a}", { args: ["x"] })).toEqual([
    "/args with `shell: true` the command line stands in `command` alone",
  ]);
  expect(
    problemsOf({ params: { a: TEXT }, required: [], keys: { command: "ls {a}", shell: true }, shell: true }),
  ).toEqual(["/command parameter `a` stands in a command line, so it must be required or have a default"]);
});
