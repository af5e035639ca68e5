import { execFileSync } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type FolderScan, scanFolder } from "../../src/registry/folder-scan.ts";
import { ANONYMOUS, declaration, startRegistry, temporaryFolder, toolNames } from "./support.ts";

async function write(folder: string, ...paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    await mkdir(join(folder, path, ".."), { recursive: true });
    await writeFile(join(folder, path), declaration("t"));
  }
}

function files(scan: FolderScan): string[] {
  return [...scan.files.keys()].toSorted();
}

test("a scan lists files in all folders, but for hidden and temporary ones", async () => {
  const folder = await temporaryFolder();
  await write(folder, "a.yaml", "x/b.yaml", "x/y/c.yaml", ".git/d.yaml", "..data/e.yaml", "x/.f.yaml", "x/g.yaml~");
  const scan = await scanFolder(folder);
  expect(files(scan)).toEqual(["a.yaml", "x/b.yaml", "x/y/c.yaml"]);
  expect([...scan.folders.keys()]).toEqual(["", "x", "x/y"]);
  expect(scan.faults.size).toBe(0);
});

test("links to folders are followed inside the tools folder, each folder once, and not outside", async () => {
  const folder = await temporaryFolder();
  const outside = await temporaryFolder();
  await write(outside, "far.yaml");
  await write(folder, "real/a.yaml", "..data/mounted/b.yaml");
  await symlink("real", join(folder, "again"));
  await symlink("..", join(folder, "real", "loop"));
  await symlink("..data/mounted", join(folder, "mounted"));
  await symlink(outside, join(folder, "outside"));
  await symlink(join(outside, "far.yaml"), join(folder, "far.yaml"));
  await symlink("nowhere.yaml", join(folder, "dangling.yaml"));
  const scan = await scanFolder(folder);
  expect(files(scan)).toEqual(["far.yaml", "mounted/b.yaml", "real/a.yaml"]);
  expect([...scan.faults]).toEqual([
    [
      "outside",
      {
        message: "ignored: a link to a folder outside the tools folder is not followed; link its files one by one",
        note: true,
      },
    ],
  ]);
});

test("a scan has a depth and a number of files at which it stops and says so", async () => {
  const folder = await temporaryFolder();
  await write(folder, "1/2/3/4/5/6/7/8/deep.yaml", "1/2/3/4/5/6/7/8/9/deeper.yaml");
  const scan = await scanFolder(folder);
  expect(files(scan)).toEqual(["1/2/3/4/5/6/7/8/deep.yaml"]);
  expect(scan.faults.get("1/2/3/4/5/6/7/8/9")?.message).toBe("is nested deeper than 8 levels and not read");
  await write(folder, "a/1.yaml", "b/1.yaml", "b/2.yaml");
  const bounded = await scanFolder(folder, { maxEntries: 4 });
  expect(bounded.faults.get("")?.message).toMatch(/^holds more than 4 files/);
});

test("a folder that is a file, or is not there, is a fault that says the mend", async () => {
  const folder = await temporaryFolder();
  await write(folder, "a.yaml");
  expect((await scanFolder(join(folder, "a.yaml"))).faults.get("")?.message).toBe(
    `${join(folder, "a.yaml")} is no folder: set tools.folder to a folder`,
  );
  expect((await scanFolder(join(folder, "none"))).faults.get("")?.message).toMatch(/does not exist: create it/);
});

test.skipIf(process.platform === "win32")("pipes and sockets are noted and never waited for", async () => {
  const folder = await temporaryFolder();
  execFileSync("mkfifo", [join(folder, "pipe.yaml")]);
  const server = createServer();
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(join(folder, "socket.yaml"), resolve));
  await write(folder, "a.yaml");
  const { registry } = await startRegistry({ folder });
  expect(toolNames(registry)).toEqual(["t"]);
  const problems = registry.list(ANONYMOUS).problems.map(({ source, message, note }) => ({ source, message, note }));
  expect(problems).toEqual([
    { source: "file:pipe.yaml", message: "ignored: it is no regular file", note: true },
    { source: "file:socket.yaml", message: "ignored: it is no regular file", note: true },
  ]);
});

test.skipIf(process.platform === "win32" || process.getuid?.() === 0)(
  "a folder that cannot be read is a problem and its tools keep serving",
  async () => {
    const folder = await temporaryFolder();
    await write(folder, "sub/a.yaml");
    const { registry } = await startRegistry({ folder });
    execFileSync("chmod", ["000", join(folder, "sub")]);
    onTestFinished(() => void execFileSync("chmod", ["755", join(folder, "sub")]));
    const scan = await scanFolder(folder);
    expect(scan.faults.get("sub")?.message).toMatch(/EACCES/);
    expect(toolNames(registry)).toEqual(["t"]);
  },
);
