import { execFile } from "node:child_process";
import { access, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Where servers are kept from run to run, beside no package of ours. */
const CACHE = process.env["TOOLGATE_SERVERS_CACHE"] ?? join(homedir(), ".cache", "toolgate", "mcp-servers");

/** A registry may be slow for a moment. */
const ATTEMPTS = 3;

/** What to install. */
export interface ServerPackage {
  /** Name and exact version, such as `mcp-sqlite@1.0.9`. */
  readonly spec: string;
  /** Versions of packages below it, where its own choice would have to be compiled. */
  readonly overrides?: Readonly<Record<string, string>>;
}

/**
 * The folder of an npm package, installed with all it needs into the cache, without running a script of anybody's. It is
 * there as a whole or not at all, whoever else installs it at the same time.
 */
export async function installed({ spec, overrides = {} }: ServerPackage): Promise<string> {
  const home = join(CACHE, spec.replaceAll("/", "+"));
  const folder = join(home, "node_modules", spec.slice(0, spec.lastIndexOf("@")));
  if (await exists(join(home, "complete"))) return folder;
  const work = `${home}.${process.pid}`;
  await rm(work, { recursive: true, force: true });
  await mkdir(work, { recursive: true });
  await writeFile(join(work, "package.json"), JSON.stringify({ private: true, overrides }));
  await install(work, spec);
  await writeFile(join(work, "complete"), "");
  await rm(home, { recursive: true, force: true });
  await rename(work, home);
  return folder;
}

async function install(cwd: string, spec: string): Promise<void> {
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--save-exact"];
  for (let attempt = 1; ; attempt += 1) {
    try {
      await run("npm", ["install", ...flags, spec], { cwd });
      return;
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
