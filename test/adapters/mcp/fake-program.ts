// A fake MCP server over its standard streams. Arguments: its options as JSON, and a file in which it notes its process
// id and every message it gets.
import { appendFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { type FakeOptions, FakeServer, type Message } from "./fake-behaviour.ts";

/** What a fake program is told besides. */
interface ProgramOptions extends FakeOptions {
  /** Ends at once, with these words. */
  readonly failAtStart?: string;
  /** Neither the end of its input nor TERM ends it. */
  readonly stubborn?: boolean;
  /** Starts another process, which lives on by itself. */
  readonly child?: boolean;
}

const options = JSON.parse(process.argv[2] ?? "{}") as ProgramOptions;
const file = process.argv[3] ?? "/dev/null";
const note = (text: string): void => appendFileSync(file, `${text}\n`);

note(`start ${process.pid}`);
if (options.failAtStart !== undefined) {
  process.stderr.write(options.failAtStart);
  process.exit(1);
}
if (options.stubborn === true) {
  process.on("SIGTERM", () => note("TERM"));
  setInterval(() => undefined, 1_000);
}
if (options.child === true) {
  const { spawn } = await import("node:child_process");
  const child = spawn(process.execPath, ["-e", "process.on('SIGTERM',()=>{});setInterval(()=>{},1000)"], {
    stdio: "ignore",
  });
  note(`child ${child.pid}`);
  child.unref();
}
process.stderr.write("fake server: ready\n");

const server = new FakeServer(options);
const output = {
  send: (message: unknown): void => void process.stdout.write(`${JSON.stringify(message)}\n`),
  raw: (text: string): void => void process.stdout.write(text),
  die: (words = ""): void => {
    writeSync(2, `${words}\nsecret ${process.env["TOKEN"] ?? ""}\n`);
    process.exit(3);
  },
};
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const message = JSON.parse(line) as Message;
  note(line);
  server.take(message, output);
});
lines.on("close", () => server.close());
