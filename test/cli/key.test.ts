import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Ran, type RunSetup, runInProcess } from "./test-host.ts";

/** A folder with a gateway.yaml, in which a command line runs. */
async function folderWith(settings: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-key-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "gateway.yaml"), settings);
  return folder;
}

const run = (cwd: string, argv: readonly string[], setup: RunSetup = {}): Promise<Ran> =>
  runInProcess(argv, { cwd, home: cwd, ...setup });

test("a key is printed once, alone on stdout, and listed without what it is", async () => {
  const cwd = await folderWith("identity: {api_keys: true}\n");
  const made = await run(cwd, [
    "key",
    "create",
    "--name",
    "ci",
    "--role",
    "reader",
    "--role",
    "ops",
    "--expires",
    "90d",
  ]);
  expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^tg_[a-z0-9]{12}_[\w-]{43}\n$/) });
  expect(made.stderr).toMatch(/^key \w{12} of "ci", with the roles reader, ops, valid until 20\d\d-/);
  const key = made.stdout.trim();
  expect(made.stderr).not.toContain(key);
  const listed = await run(cwd, ["key", "list"]);
  expect(listed.stdout).toMatch(/^ID +NAME +STATE +ROLES +CREATED +EXPIRES\n\w{12} +ci +active +reader,ops +20/);
  // The secret is base64url and may hold a "_" itself: its length finds it, not its separator.
  expect(listed.stdout).not.toContain(key.slice(-43));
  const json = await run(cwd, ["key", "list", "--output", "json"]);
  expect(JSON.parse(json.stdout)).toMatchObject({ keys: [{ name: "ci", state: "active", roles: ["reader", "ops"] }] });
});

test("a key is revoked by its id, all of a name by the name, and what is not there is told", async () => {
  const cwd = await folderWith("identity: {api_keys: true}\nstate: {folder: kept}\n");
  const ids: string[] = [];
  for (const name of ["a", "b", "b"]) {
    const { stdout } = await run(cwd, ["key", "create", "--name", name, "--output", "json"]);
    ids.push((JSON.parse(stdout) as { id: string }).id);
  }
  expect(await run(cwd, ["key", "revoke", ids[0] ?? ""])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('"a" is revoked'),
  });
  const both = await run(cwd, ["key", "revoke", "b"]);
  expect(both.stderr.trim().split("\n")).toHaveLength(2);
  expect(await run(cwd, ["key", "revoke", "b"])).toMatchObject({
    code: 3,
    stderr: expect.stringContaining("toolgate key list"),
  });
  const { stdout } = await run(cwd, ["key", "list"]);
  expect(stdout.match(/revoked/g)).toHaveLength(3);
});

test("who makes a key that no gateway takes yet is told so, and a wrong line ends with 2", async () => {
  const cwd = await folderWith("");
  const made = await run(cwd, ["key", "create", "--name", "ci"]);
  expect(made.stderr).toContain("identity: { api_keys: true }");
  for (const argv of [["--name", "a b"], [], ["--name", "a", "--expires", "90"], ["--name", "a", "--expires", "0d"]]) {
    expect(await run(cwd, ["key", "create", ...argv])).toMatchObject({ code: 2, stdout: "" });
  }
});

test("a key on the command line is refused, since everybody can read it there", async () => {
  const ran = await runInProcess(["tool", "list", "--api-key", "tg_abc", "--address", "127.0.0.1:1"]);
  expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining("takes a file, not the key itself") });
  const cwd = await folderWith("");
  await writeFile(join(cwd, "two"), "tg_a tg_b\n");
  expect(await run(cwd, ["tool", "list", "--api-key", join(cwd, "two")])).toMatchObject({ code: 2 });
});

test("doctor finds what is weak: plaintext outside, operators without a name, expired keys, keys that cannot be read", async () => {
  const cwd = await folderWith(
    "listen: 0.0.0.0:7433\nidentity:\n  api_keys: true\n  anonymous_roles: [operator]\n  jwt: [{issuer: i, audiences: [a], jwks_file: none.json}]\n",
  );
  const state = join(cwd, "state");
  await mkdir(state);
  const key = { id: "a".repeat(12), name: "old", roles: [], salt: "0".repeat(32), hash: "0".repeat(64) };
  const keys = [{ ...key, create_time_ms: 1, expire_time_ms: 2 }];
  await writeFile(join(state, "api-keys.json"), JSON.stringify({ version: 1, keys }));
  const argv = ["doctor", "--address", "127.0.0.1:1"];
  const { code, stdout } = await run(cwd, argv);
  expect(code).toBe(1);
  expect(stdout).toContain("look at  transport: 0.0.0.0:7433 can be reached from outside without TLS");
  expect(stdout).toContain("broken   anonymous callers: callers that show nothing have the role `operator`");
  expect(stdout).toContain('look at  API key aaaaaaaaaaaa of "old": has expired');
  expect(stdout).toMatch(/broken {3}jwks_file .*none\.json: no such file or folder/);
  await writeFile(join(state, "api-keys.json"), "{");
  expect((await run(cwd, argv)).stdout).toMatch(/broken {3}API keys: the file of API keys .* is damaged/);
});
