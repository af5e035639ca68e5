import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { textOf, valueOf } from "../e2e/gateway-client.ts";
import { type ServerBed, startBed } from "./bed.ts";
import { node } from "./commands.ts";
import { installed } from "./installed.ts";

const running = new AsyncDisposableStack();
let bed: ServerBed;
let folder: string;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "toolgate-servers-")));
  running.defer(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, "home"));
  await writeFile(join(folder, "note.txt"), "which one?\n");
  const everything = await installed({ spec: "@modelcontextprotocol/server-everything@2026.8.31" });
  const filesystem = await installed({ spec: "@modelcontextprotocol/server-filesystem@2026.8.31" });
  const commander = await installed({ spec: "@wonderwhy-er/desktop-commander@0.2.52" });
  bed = running.use(
    await startBed({
      everything: { mcp: node(`${everything}/dist/index.js`) },
      files: { mcp: node(`${filesystem}/dist/index.js`, folder) },
      commander: {
        mcp: { ...node(`${commander}/dist/index.js`, "--no-onboarding"), env: { HOME: join(folder, "home") } },
      },
    }),
  );
}, 600_000);

afterAll(async () => {
  await running.disposeAsync();
});

test("tools of one name at several servers are several tools, each with an alias of its own [M-D11]", async () => {
  const tools = [...(await bed.tools("everything")), ...(await bed.tools("files")), ...(await bed.tools("commander"))];
  const names = tools.map(({ name }) => name);
  expect(names).toContain("files/read_file");
  expect(names).toContain("commander/read_file");
  expect(new Set(names).size).toBe(names.length);
  const aliases = tools.map(({ alias }) => alias);
  expect(new Set(aliases).size).toBe(aliases.length);
  expect(aliases.filter((alias) => !/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(alias))).toEqual([]);
});

test("each of them is called at its own server", async () => {
  await bed.tools("files");
  await bed.tools("commander");
  const path = join(folder, "note.txt");
  const strict = await bed.call("files/read_file", { path });
  expect(valueOf(strict)).toEqual({ content: "which one?\n" });
  const loose = await bed.call("commander/read_file", { path });
  expect(textOf(loose)).toContain("which one?");
  const missing = await bed.call("commander/read_file", { path: join(folder, "gone.txt") });
  expect(missing.result?.failure).toBeDefined();
});

test("nothing of a server is left when the gateway has ended", async () => {
  expect(await bed.end()).toEqual([]);
});
