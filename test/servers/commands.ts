import { fileURLToPath } from "node:url";

const LOOPBACK = fileURLToPath(new URL("loopback.ts", import.meta.url));

/** How a server is started that is a program for Node: with nothing but loopback in its reach. */
export function node(
  script: string,
  ...args: readonly string[]
): { readonly command: string; readonly args: readonly string[] } {
  return { command: process.execPath, args: ["--import", LOOPBACK, script, ...args] };
}
