import { appendFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startToolgate, toolgate } from "./cli-process.ts";
import { startEchoUpstream } from "./echo-upstream.ts";
import { openGateway, temporaryFolder } from "./effects-gateway.ts";

const SETUP = { timeout: 240_000 };

/** A state folder with some calls on record. */
async function recorded() {
  const running = new AsyncDisposableStack();
  const upstream = running.use(await startEchoUpstream());
  const { path: folder } = running.use(await temporaryFolder());
  const tool = (name: string): string =>
    JSON.stringify({
      name,
      description: "用于检查日志 shows what logs says",
      type: "http",
      endpoint: `http://127.0.0.1:${upstream.port}/echo/${name}`,
      params: [{ name: "order_no", type: "string" }],
    });
  const files = { "tools/one.yaml": tool("one"), "tools/two.yaml": tool("two") };
  const gateway = await openGateway({ folder, files, settings: { records: { session: true } } });
  const { service } = gateway.client;
  const first = await service.call({
    invocation: {
      name: "one",
      context: { sessionId: "s-1", turnId: "t-1" },
      arguments: { case: "argumentsJson", value: '{"order_no":"SO1"}' },
    },
  });
  await service.call({ invocation: { name: "two" } });
  await service.call({ invocation: { name: "one" } });
  await gateway[Symbol.asyncDispose]();
  const state = join(folder, "state");
  return { state, first: first.callId, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

test("`toolgate logs` lists calls, of a tool or a session, and shows the chain of one", SETUP, async () => {
  await using it = await recorded();
  const logs = async (...argv: string[]): Promise<string> => {
    const { stdout, stderr, code } = await toolgate(["logs", "--state", it.state, ...argv]);
    expect(stderr).toBe("");
    expect(code).toBe(0);
    return stdout;
  };
  expect((await logs()).trim().split("\n")).toHaveLength(3);
  expect((await logs("--limit", "1")).trim().split("\n")).toHaveLength(1);
  expect(await logs("--tool", "two")).toMatch(/^\S+Z {2}ok {9} {2}two {2}[\d.]+ ms {2}anonymous {2}\S+\n$/);
  expect(await logs("--session", "s-1")).toContain(it.first);
  const chain = await logs("--call", it.first);
  expect(chain).toMatch(/^call +\S+\ntime +\S+\ntool +one\ncaller +anonymous\nsession +session s-1, turn t-1\n/);
  expect(chain).toMatch(/arguments +\{"order_no":"SO1"\}\nvalidated +\{"order_no":"SO1"\}\n/);
  expect(chain).toMatch(/request +GET http:\S+order_no=SO1\nupstream +200 after [\d.]+ ms\nresult +\{/);
  expect(chain).toMatch(/outcome +ok, OK, upstream 200, effect none, 1 attempt\ntook +[\d.]+ ms \(queued 0 ms, /);
  const [said, call] = (await logs("--call", it.first, "--output", "json")).trim().split("\n");
  expect(JSON.parse(said ?? "")).toMatchObject({ message: "session-call", callId: it.first });
  expect(JSON.parse(call ?? "")).toMatchObject({ message: "tool-call", callId: it.first });
  expect(await logs("--audit")).toMatch(/done +gateway-start {2}gateway {2}version=\S+ {2}listen=/);
});

test("a call that is not on record is not found", SETUP, async () => {
  await using it = await recorded();
  const { code, stderr } = await toolgate(["logs", "--state", it.state, "--call", "nobody"]);
  expect(code).toBe(3);
  expect(stderr).toContain('no call "nobody" is on record');
});

test("`--follow` goes on with what comes, also when a file is closed and another one begun", SETUP, async () => {
  await using it = await recorded();
  const file = join(it.state, "records/gateway.jsonl");
  await using follower = startToolgate(["logs", "--state", it.state, "--follow", "--limit", "1"]);
  await follower.output("stdout", /one/);
  const line = (tool: string): string =>
    `${JSON.stringify({ message: "tool-call", outcome: "ok", tool, totalMs: 1 })}\n`;
  await appendFile(file, `${line("three")}{"half`);
  await follower.output("stdout", /three/);
  await rename(file, join(it.state, "records/gateway-2026-01-01T00-00-00.000Z.jsonl"));
  await appendFile(file, line("four"));
  await follower.output("stdout", /four/);
  follower.child.kill("SIGINT");
  expect((await follower.ended).code).toBe(130);
});

test("keys that are made and revoked are in the audit log with the user of the machine", SETUP, async () => {
  await using it = await recorded();
  const made = await toolgate(["key", "create", "--name", "ci", "--state", it.state]);
  await toolgate(["key", "revoke", "ci", "--state", it.state]);
  const { stdout } = await toolgate(["logs", "--audit", "--state", it.state]);
  expect(stdout).toMatch(/done +key-create {2}os:\S+ {2}id=\S+ {2}name=ci/);
  expect(stdout).toMatch(/done +key-revoke {2}os:\S+/);
  expect(stdout).not.toContain(made.stdout.trim());
});
