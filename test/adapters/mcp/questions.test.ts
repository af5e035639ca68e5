import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createMcpAdapter } from "../../../src/adapters/mcp/index.ts";
import type { AdapterDeps, Upstream } from "../../../src/core/adapter.ts";
import type { CallContext, ToolCall, UpstreamResult } from "../../../src/core/call.ts";
import { systemClock } from "../../../src/core/clock.ts";
import type { InputAnswer } from "../../../src/core/input-request.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { createEnvironmentSecrets } from "../../../src/secrets/environment-secrets.ts";
import { SecretMemory } from "../../../src/secrets/secret-memory.ts";
import { makeContext } from "../../pipeline/fixtures.ts";

const PROGRAM = fileURLToPath(new URL("asking-program.ts", import.meta.url));

interface Asking extends AsyncDisposable {
  readonly upstream: Upstream;
  call(tool: string, more?: Partial<ToolCall>, context?: Partial<CallContext>): Promise<UpstreamResult>;
  answer(asked: UpstreamResult, answer: InputAnswer, tool?: string): Promise<UpstreamResult>;
  /** What the server was told, all of it in one text. */
  told(): Promise<string>;
}

/** Opens a server that asks, once it is ready. */
async function openAsking(revision: "2025-11-25" | "2026-07-28", readOnly = false): Promise<Asking> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-asking-"));
  const file = join(folder, "log");
  const adapter = createMcpAdapter({ environment: { PATH: process.env["PATH"] }, folder });
  const keys = {
    mcp: {
      command: process.execPath,
      args: [PROGRAM, revision, file],
      env: { NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "" },
      protocol: revision === "2026-07-28" ? revision : "legacy",
    },
  };
  const tool = {
    name: "shop",
    title: "",
    description: "",
    kind: "mcp",
    inputSchema: { type: "object" },
    outputSchema: undefined,
    hints: { readOnly },
    labels: {},
    delivery: "conclusive",
    enabled: true,
  } as const;
  const configured = adapter.configure(keys, tool, {
    timeouts: { connectMs: 10_000, readMs: 60_000, idleMs: 60_000 },
    maxResponseBytes: 1024 * 1024,
    format: "auto",
    pool: {},
    reach: "all",
  });
  if (!configured.ok) throw new Error(JSON.stringify(configured.issues));
  const { promise: ready, resolve: changed } = Promise.withResolvers<void>();
  const deps: AdapterDeps = {
    clock: systemClock,
    logger: silentLogger,
    secrets: createEnvironmentSecrets({}, new SecretMemory()),
    changed: () => {
      if (upstream.offer?.() !== undefined) changed();
    },
  };
  const upstream = await adapter.open(configured.config, deps, new AbortController().signal);
  await ready;
  const asking: Asking = {
    upstream,
    async call(name, more = {}, context = {}) {
      const call = { tool: name, arguments: { n: 1 }, validateOnly: false, maxLength: undefined, ...more };
      let result: UpstreamResult | undefined;
      for await (const event of upstream.invoke(call, makeContext({ deadlineMs: Date.now() + 60_000, ...context }))) {
        if (event.type === "upstream-result") result = event.result;
      }
      if (result === undefined) throw new Error("no result");
      return result;
    },
    answer: (asked, answer, name = "ask") => {
      const id = [...(asked.needsInput?.requests.keys() ?? [])][0] ?? "";
      const continuation = { state: asked.needsInput?.state ?? "", answers: new Map([[id, answer]]) };
      return asking.call(name, { acceptsInput: true, continuation });
    },
    told: () => readFile(file, "utf8"),
    async [Symbol.asyncDispose]() {
      await upstream[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    },
  };
  return asking;
}

function textOf({ content }: UpstreamResult): string {
  return content.map((part) => (part.type === "text" ? part.text : "")).join();
}

const YES = { action: "accept", content: { size: 42 } } as const;

test("a server that asks in the middle of a call gets its caller's answer, and goes on with the same call", async () => {
  await using asking = await openAsking("2025-11-25");
  const asked = await asking.call("ask", { acceptsInput: true });
  expect(asked).toMatchObject({ content: [], effect: "unknown" });
  expect([...(asked.needsInput?.requests.values() ?? [])]).toMatchObject([
    { kind: "form", message: "Which size?", schema: { properties: { size: { type: "integer" } } } },
  ]);
  const done = await asking.answer(asked, YES);
  expect(done).toMatchObject({ effect: "committed" });
  expect(JSON.parse(textOf(done))).toEqual({ action: "accept", content: { size: 42 } });
  expect((await asking.told()).match(/tools\/call/g)).toHaveLength(1);
  await expect(asking.answer(asked, YES)).rejects.toMatchObject({ reason: "CONTINUATION_NOT_FOUND" });
});

test("a caller says no, and the server hears it as its protocol has it", async () => {
  await using asking = await openAsking("2025-11-25");
  const form = await asking.answer(await asking.call("ask", { acceptsInput: true }), { action: "decline" });
  expect(JSON.parse(textOf(form))).toEqual({ action: "decline" });
  const sampling = await asking.call("sample", { acceptsInput: true });
  expect([...(sampling.needsInput?.requests.values() ?? [])]).toMatchObject([{ kind: "sampling" }]);
  const said = await asking.answer(sampling, { action: "decline" }, "sample");
  expect(JSON.parse(textOf(said))).toMatchObject({ code: -1 });
});

test("a caller that does not accept input is not asked: the server is told no at once, and the failure says so", async () => {
  await using asking = await openAsking("2025-11-25");
  const result = await asking.call("ask");
  expect(result.failure).toMatchObject({ reason: "INPUT_REQUIRED" });
  expect(result.failure?.message).toContain('form "Which size?"');
  expect(JSON.parse(textOf(result))).toEqual({ action: "decline" });
  expect(result.effect).toBe("committed");
});

test("a question that may be another call's is nobody's: the server is told no", async () => {
  await using asking = await openAsking("2025-11-25");
  const asked = await asking.call("ask", { acceptsInput: true });
  const second = await asking.call("ask", { acceptsInput: true });
  expect(second.needsInput).toBeUndefined();
  expect(JSON.parse(textOf(second))).toEqual({ action: "decline" });
  expect(JSON.parse(textOf(await asking.answer(asked, YES)))).toMatchObject({ action: "accept" });
});

test("a call that waits outlives its first caller's signal, and ends with the one of the second", async () => {
  await using asking = await openAsking("2025-11-25");
  const first = new AbortController();
  const asked = await asking.call("ask", { acceptsInput: true }, { signal: first.signal });
  first.abort(new Error("gone"));
  expect(JSON.parse(textOf(await asking.answer(asked, YES)))).toMatchObject({ action: "accept" });
  const again = await asking.call("ask", { acceptsInput: true });
  const second = AbortSignal.abort(new Error("gone"));
  const continuation = { state: again.needsInput?.state ?? "", answers: new Map() };
  await expect(asking.call("ask", { continuation }, { signal: second })).rejects.toBeDefined();
  expect(await asking.call("plain")).toMatchObject({ effect: "committed" });
  await expect.poll(() => asking.told()).toContain("notifications/cancelled");
});

test("a server that is closed leaves no call waiting", async () => {
  const asking = await openAsking("2025-11-25");
  const asked = await asking.call("ask", { acceptsInput: true });
  await asking[Symbol.asyncDispose]();
  await expect(asking.answer(asked, YES)).rejects.toMatchObject({ reason: "GATEWAY_STOPPING" });
});

test("a server of the stateless era gets the answer with a call of its own, its state as it gave it", async () => {
  await using asking = await openAsking("2026-07-28", true);
  const asked = await asking.call("ask", { acceptsInput: true });
  expect(asked).toMatchObject({ content: [], effect: "none" });
  const done = await asking.answer(asked, YES);
  expect(JSON.parse(textOf(done))).toEqual({
    inputResponses: { q1: { action: "accept", content: { size: 42 } } },
    requestState: expect.stringMatching(/^state of \d+$/),
    arguments: { n: 1 },
  });
});

test("a server of the stateless era learns for each call whether its caller can be asked", async () => {
  await using asking = await openAsking("2026-07-28");
  await asking.call("plain");
  await asking.call("plain", { acceptsInput: true });
  const calls = (await asking.told()).split("\n").filter((line) => line.includes("tools/call"));
  const capabilities = calls.map((line) => {
    const meta = JSON.parse(line).params._meta;
    return meta["io.modelcontextprotocol/clientCapabilities"];
  });
  expect(capabilities).toEqual([{}, { elicitation: { form: {}, url: {} }, sampling: {} }]);
});

test("of several calls of one caller the one that accepts input is asked", async () => {
  await using asking = await openAsking("2025-11-25");
  const other = asking.call("wait");
  await expect.poll(() => asking.told()).toContain('"wait"');
  const asked = await asking.call("ask", { acceptsInput: true });
  expect(JSON.parse(textOf(await asking.answer(asked, YES)))).toEqual({ action: "accept", content: { size: 42 } });
  await asking.call("release");
  expect(await other).not.toHaveProperty("notices");
});

test("a question that may be another caller's is told no, and every call that it may be of says so", async () => {
  await using asking = await openAsking("2025-11-25");
  const principal = { id: "key:other", roles: [] };
  const other = asking.call("wait", {}, { principal });
  await expect.poll(() => asking.told()).toContain('"wait"');
  const done = await asking.call("ask", { acceptsInput: true });
  expect(JSON.parse(textOf(done))).toEqual({ action: "decline" });
  const notices = [
    { reason: "QUESTION_DECLINED", message: expect.stringMatching(/^shop\/ask: the server asked .* told no/) },
  ];
  expect(done).toMatchObject({ notices });
  expect(done.failure).toBeUndefined();
  await asking.call("release");
  expect((await other).notices).toMatchObject([{ reason: "QUESTION_DECLINED" }]);
});

test("a question that names its call goes to that call's caller, whoever else calls", async () => {
  await using asking = await openAsking("2025-11-25");
  const principal = { id: "key:other", roles: [] };
  const other = asking.call("wait", { acceptsInput: true }, { principal });
  await expect.poll(() => asking.told()).toContain('"wait"');
  const asked = await asking.call("ask_named", { acceptsInput: true });
  const done = await asking.answer(asked, YES, "ask_named");
  expect(JSON.parse(textOf(done))).toEqual({ action: "accept", content: { size: 42 } });
  await asking.call("release");
  expect(await other).not.toHaveProperty("notices");
});
