import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startFakeHttp } from "../adapters/mcp/fake-http.ts";
import { type Authority, startAuthority } from "../adapters/mcp/login-authority.ts";
import { followed, openLoginDesk, redirectedTo } from "../adapters/mcp/login-desk.ts";
import { type RunSetup, runInProcess, startCli } from "./test-host.ts";

interface Place {
  readonly authority: Authority;
  readonly folder: string;
  readonly setup: RunSetup;
}

/** A folder with a gateway.yaml and a server to log in at. */
async function place(): Promise<Place> {
  const authority = await startAuthority({ life: () => undefined });
  let url = "";
  const fake = await startFakeHttp({
    authorization: () => authority.header(),
    documents: (path) =>
      path.startsWith("/.well-known/") ? { resource: url, authorization_servers: [authority.origin] } : undefined,
  });
  ({ url } = fake);
  const desk = await openLoginDesk({ mcp: { url, auth: { oauth: {} } }, name: "notes" });
  onTestFinished(async () => {
    await Promise.all([authority, fake, desk].map((each) => each[Symbol.asyncDispose]()));
  });
  return { authority, folder: desk.folder, setup: { cwd: desk.folder, home: desk.folder } };
}

/** Runs `toolgate login` with the gateway's settings. */
const login = (...more: string[]): string[] => ["login", "notes", "--config", "gateway.yaml", ...more];

/** The address that was printed. */
function addressIn(text: string): string {
  return text.split("\n").find((line) => line.startsWith("http://")) ?? "";
}

test("a login prints the address, opens it when asked to, and says what came of it without a token", async () => {
  const { authority, folder, setup } = await place();
  const opened: string[] = [];
  const browser = (address: string): void => {
    opened.push(address);
    void followed(address);
  };
  const { code, stdout, stderr } = await runInProcess(login("--open"), { ...setup, browser });
  expect([code, stdout]).toEqual([0, ""]);
  expect(opened).toEqual([addressIn(stderr)]);
  expect(stderr).toContain(`logged in at notes: ${authority.origin}\n`);
  const json = await runInProcess(login("--open", "--output", "json"), { ...setup, browser });
  expect(JSON.parse(json.stdout)).toEqual({
    server: "notes",
    issuer: authority.origin,
    resource: expect.stringMatching(/\/mcp$/),
    scopes: [],
    renewable: true,
  });
  const kept = await readFile(join(folder, "state", "logins", "notes.json"), "utf8");
  expect(kept).toContain(authority.lastAccess);
  for (const secret of [authority.lastAccess, authority.lastRefresh]) {
    expect(stdout + stderr + json.stdout + json.stderr).not.toContain(secret);
  }
});

test("without --open nothing is opened, and the address that the browser ends at can be pasted", async () => {
  const { authority, setup } = await place();
  const running = startCli(login("--paste"), {
    ...setup,
    browser: () => expect.unreachable("nobody asked for it"),
  });
  await running.stderr.has("Then paste");
  running.stdin.write(`${await redirectedTo(addressIn(running.stderr.text))}\n`);
  expect(await running.ended).toMatchObject({ code: 0, stderr: expect.stringContaining("logged in at notes") });
  expect(authority.requests).toHaveLength(1);
});

test("Ctrl-C ends a login at once, and so does the time that a person has", async () => {
  const { authority, setup } = await place();
  const running = startCli(login(), setup);
  await running.stderr.has("/authorize?");
  running.signal("SIGINT");
  expect(await running.ended).toMatchObject({ code: 130, stderr: expect.stringContaining("interrupted") });
  const late = await runInProcess(login("--timeout", "1s", "--output", "json"), setup);
  expect(late.code).toBe(6);
  expect(JSON.parse(late.stderr.slice(late.stderr.indexOf("{")))).toMatchObject({
    error: { message: "nobody logged in within 1s", exitCode: 6 },
  });
  expect(authority.requests).toEqual([]);
});

test("what is in the way of a login is said with the mend", async () => {
  const { authority, setup } = await place();
  const unknown = await runInProcess(["login", "other", "--config", "gateway.yaml"], setup);
  expect(unknown).toMatchObject({ code: 3, stderr: expect.stringContaining('declares an MCP server "other"') });
  expect(unknown.stderr).toContain("tools.folder");
  await authority[Symbol.asyncDispose]();
  const gone = await runInProcess(login(), setup);
  expect(gone).toMatchObject({ code: 5, stderr: expect.stringContaining("notes: no login: no connection") });
});

test("a logout forgets the login and revokes it; a second one finds nothing", async () => {
  const { authority, setup } = await place();
  await runInProcess(login("--open"), { ...setup, browser: (address) => void followed(address) });
  const argv = ["logout", "notes", "--config", "gateway.yaml"];
  expect(await runInProcess(argv, setup)).toMatchObject({
    code: 0,
    stderr: `logged out at notes: ${authority.origin}, its tokens are revoked\n`,
  });
  expect(authority.revoked).toEqual([authority.lastRefresh]);
  expect(await runInProcess(argv, setup)).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('nobody is logged in at "notes"'),
  });
  await runInProcess(login("--open"), { ...setup, browser: (address) => void followed(address) });
  const json = await runInProcess([...argv, "--output", "json"], setup);
  expect(JSON.parse(json.stdout)).toEqual({ server: "notes", issuer: authority.origin, revoked: true });
});
