import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { copyExamples, type ExamplesCopy, type ExamplesProcess, startExamples } from "./examples-process.ts";
import { REPOSITORY, START_TIMEOUT_MS } from "./spawned.ts";

interface Command {
  /** What is typed, a here-document included. */
  readonly text: string;
  readonly output: string;
}

const running = new AsyncDisposableStack();
let copy: ExamplesCopy;
let examples: ExamplesProcess;

beforeAll(async () => {
  copy = running.use(await copyExamples());
  examples = running.use(await startExamples(copy));
}, START_TIMEOUT_MS);

afterAll(async () => {
  await running.disposeAsync();
});

/** Commands and outputs of the ```console blocks, in order. */
function commandsOf(markdown: string): Command[] {
  const blocks = [...markdown.matchAll(/^```console\n([^]*?)^```$/gm)].map(([, text]) => text ?? "");
  return blocks.flatMap((block) =>
    block.split(/^\$ /m).flatMap((entry): Command[] => {
      if (entry === "") return [];
      const [, heredoc] = /<<'(\w+)'\n/.exec(entry) ?? [];
      const end = heredoc === undefined ? entry.indexOf("\n") : entry.indexOf(`\n${heredoc}\n`) + heredoc.length + 1;
      return [{ text: entry.slice(0, end), output: entry.slice(end + 1) }];
    }),
  );
}

/** Runs a command of the page against the copy. stderr comes behind stdout, since pipes keep no order between them. */
function run(command: string): Promise<string> {
  const here = command
    .replaceAll("npx toolgate", "node src/main.ts")
    .replaceAll("npx buf", "node node_modules/@bufbuild/buf/bin/buf")
    .replaceAll("127.0.0.1:7433", `127.0.0.1:${examples.port}`)
    .replaceAll("127.0.0.1:7434", `127.0.0.1:${copy.upstreamPort}`)
    .replaceAll("examples/tools", join(copy.folder, "tools"))
    .replaceAll("examples/registered.yaml", join(copy.folder, "registered.yaml"));
  const env = { ...process.env, TOOLGATE_ADDRESS: `127.0.0.1:${examples.port}`, NO_COLOR: "1" };
  return new Promise((resolve) => {
    // A refusal is a result as well, so the exit code does not matter here.
    execFile("sh", ["-c", here], { cwd: REPOSITORY, env }, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
}

/** Replaces what differs from one run to the next, and puts lines into an order that does not depend on pipes. */
function comparable(output: string): string[] {
  return output
    .replaceAll(`127.0.0.1:${copy.upstreamPort}`, "127.0.0.1:7434")
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, "CALL")
    .replace(/\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT|\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
    .replace(/\b[\d.]+ ?m?s\b/g, "N ms")
    .replace(/[0-9a-f]{64}/g, "DIGEST")
    .replace(/(?<=timeout-ms: )\d+/g, "N")
    .replace(/revision \d+/g, "revision N")
    .split("\n")
    .filter((line) => line !== "" && line !== ">")
    .toSorted();
}

/** A line that a terminal cut short stands for every line that begins like it. */
function expectLines(actual: readonly string[], expected: readonly string[]): void {
  const cut = (line: string, i: number): string => {
    const prefix = expected[i]?.endsWith("…") === true ? expected[i].slice(0, -1) : undefined;
    return prefix !== undefined && line.startsWith(prefix) ? `${prefix}…` : line;
  };
  expect(actual.map(cut)).toEqual(expected);
}

// The commands are for a POSIX shell.
test.skipIf(process.platform === "win32")(
  "every command of README.md prints what README.md says [S2-31, S2-32, S2-84, S2-85, S2-86, S2-87]",
  { timeout: 6 * START_TIMEOUT_MS },
  async () => {
    const commands = commandsOf(await readFile(join(REPOSITORY, "README.md"), "utf8"));
    expect(commands.length).toBeGreaterThan(15);
    const hasCurl = (await run("command -v curl")) !== "";
    for (const { text, output } of commands) {
      if (text.startsWith("curl ") && !hasCurl) continue;
      const actual = comparable(await run(text));
      // A file that was written takes a moment to be read.
      if (text.includes("examples/tools/")) await delay(1_000);
      expectLines(actual, comparable(output));
    }
  },
);

test("the programs that README.md shows are those of examples/clients", async () => {
  const page = await readFile(join(REPOSITORY, "README.md"), "utf8");
  const shown = [...page.matchAll(/^```(js|ts)\n([^]*?)^```$/gm)];
  expect(shown).toHaveLength(2);
  for (const [, language, code] of shown) {
    const file = language === "js" ? "grpc-js.js" : "toolgate-client.ts";
    expect(await readFile(join(REPOSITORY, "examples/clients", file), "utf8")).toContain(code);
  }
});
