#!/usr/bin/env node
// The command `toolgate`. npm may run it on any Node.js, so it is plain JavaScript that old ones can read: it looks for
// a Node.js that the gateway runs on, and runs the program there.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const NEEDED = "^22.23.3 || >=24.18.1";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const version = process.versions.node;

if (isSupported()) runHere();
else runOnAnotherNode();

/** Same rule as src/cli/runtime-version.ts, which an old Node.js cannot load; a test holds the two together. */
function isSupported() {
  const [major, minor, patch] = version.split(".").map(Number);
  const atLeast = (minMinor, minPatch) => minor > minMinor || (minor === minMinor && patch >= minPatch);
  return major > 24 || (major === 24 && atLeast(18, 1)) || (major === 22 && atLeast(23, 3));
}

function runHere() {
  const source = join(root, "src", "main.ts");
  const built = join(root, "dist", "src", "main.js");
  // A checkout runs from its source, so that what was built once does not hide what was changed since. Node.js 22
  // cannot read the source, and none reads TypeScript below node_modules.
  const readsSource = Number.parseInt(version, 10) >= 24 && !root.split(sep).includes("node_modules");
  if (readsSource && existsSync(source)) void import(pathToFileURL(source).href);
  else if (existsSync(built)) void import(pathToFileURL(built).href);
  else fail(`toolgate is not built, and Node.js ${version} cannot run its source: npm run build, or use Node.js 24`);
}

function runOnAnotherNode() {
  // What was found before is not looked for again: it may be too old as well.
  const node = process.env.TOOLGATE_LAUNCHED ? undefined : nodeBeside();
  if (node === undefined) {
    fail(`toolgate needs Node.js ${NEEDED}, and this is ${version}: install a newer one`);
    return;
  }
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: "inherit",
    env: { ...process.env, TOOLGATE_LAUNCHED: "1" },
  });
  child.on("error", (error) => fail(`toolgate cannot start ${node}: ${error.message}`));
  child.on("exit", (code, signal) => {
    process.exitCode = signal === null ? code : 128 + constants.signals[signal];
  });
  // A terminal sends Ctrl-C to both; passed on as well, it would count as the second one, which ends at once.
  const hasTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  process.on("SIGINT", () => hasTerminal || child.kill("SIGINT"));
  process.on("SIGTERM", () => child.kill("SIGTERM"));
}

/** The Node.js that npm put beside this package, or beside a package that has this one. */
function nodeBeside() {
  const windows = process.platform === "win32";
  const name = `node-${windows ? "win" : process.platform}-${process.arch}`;
  let folder = root;
  while (true) {
    const node = join(folder, "node_modules", name, "bin", windows ? "node.exe" : "node");
    if (existsSync(node)) return node;
    if (dirname(folder) === folder) return undefined;
    folder = dirname(folder);
  }
}

function fail(text) {
  console.error(text);
  process.exitCode = 1;
}
