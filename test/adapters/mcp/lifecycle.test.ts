import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import type { TextCache } from "../../../src/core/store.ts";
import { startFakeHttp } from "./fake-http.ts";
import { allGone, call, openServer, testFolder, textOf } from "./fixture.ts";

const QUICKLY = { restart: { first: "50ms", max: "200ms" } };

test("a server that dies in a call fails it at once with its code and words, and the next call has another [M-D02] [R-D05]", async () => {
  await using folder = await testFolder();
  const mcp = { ...folder.fake(), ...QUICKLY, env: { TOKEN: { secret_ref: "SERVER_TOKEN" } } };
  const environment = { SERVER_TOKEN: "sk-live-0123456789" };
  await using server = await openServer({ mcp, environment });
  await server.ready();
  const { error } = await call(server, "crash");
  expect(error).toMatchObject({ reason: "UPSTREAM_ANSWER_LOST", effect: "unknown" });
  expect(error?.message).toContain("fake/crash: the server exited with code 3: ");
  expect(error?.message).toContain("Error: cannot go on");
  expect(error?.message).not.toContain("sk-live");
  expect(textOf(await call(server, "quick"))).toBe("ok");
  expect(folder.pids()).toHaveLength(2);
});

test("a server that dies while nobody calls is started again [M-D02]", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: { ...folder.fake(), ...QUICKLY } });
  await server.ready();
  process.kill(folder.pids()[0] ?? 0, "SIGKILL");
  await server.until(() => server.upstream.availability().state === "unavailable");
  expect(server.upstream.availability().reason).toMatch(/^failed: the server was ended by SIGKILL/);
  expect(server.names()).toContain("quick");
  await server.ready();
  expect(textOf(await call(server, "quick"))).toBe("ok");
});

test("a server that dies as it starts is told with its words, and left alone more and more [M-D02] [M-D24] [R-D01] [R-D09]", async () => {
  await using folder = await testFolder();
  const fake = folder.fake({ failAtStart: "Error: Cannot find module ./x.js\n    at load" });
  const mcp = { ...fake, restart: { first: "20ms", max: "40ms", attempts: 3 } };
  const clock = holdingClock(60_000);
  await using server = await openServer({ mcp, clock });
  await server.until(() => server.upstream.availability().reason.startsWith("failed"));
  expect(server.upstream.availability()).toMatchObject({
    state: "unavailable",
    reason: "failed: the server exited with code 1: Error: Cannot find module ./x.js | at load",
  });
  await server.until(() => clock.held.length > 0);
  expect(folder.pids()).toHaveLength(3);
  const { error } = await call(server, "quick");
  expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none" });
  expect(error?.retryAfterMs).toBeGreaterThan(100_000);
  expect(folder.pids()).toHaveLength(3);
});

test("a command that is not there is said so [M-D24]", async () => {
  await using server = await openServer({ mcp: { command: "no-such-server-of-mcp" } });
  await server.until(() => server.upstream.availability().reason.startsWith("failed"));
  const report = await server.upstream.probe(new AbortController().signal);
  expect(report).toMatchObject({ ok: false });
  expect(report.message).toContain("`command` no-such-server-of-mcp is not in PATH");
});

test("a server that dies soon after it started counts as failing", async () => {
  await using folder = await testFolder();
  const mcp = { ...folder.fake(), restart: { first: "20ms", max: "20ms", attempts: 2 } };
  await using server = await openServer({ mcp });
  for (const _attempt of [1, 2]) {
    await server.ready();
    process.kill(folder.pids().at(-1) ?? 0, "SIGKILL");
    await server.until(() => server.upstream.availability().reason.includes("ended by SIGKILL"));
  }
  expect((await call(server, "quick")).error?.retryAfterMs).toBeGreaterThan(100_000);
});

test("a slow server is waited for as long as start_timeout says, and no longer [M-D07]", async () => {
  await using folder = await testFolder();
  const slow = folder.fake({ initializeMs: 1_000 });
  await using patient = await openServer({ mcp: { ...slow, start_timeout: "30s" } });
  await using hasty = await openServer({ mcp: { ...slow, start_timeout: "200ms" } });
  expect(patient.upstream.availability().reason).toBe("starting");
  await hasty.until(() => hasty.upstream.availability().reason.startsWith("failed"));
  expect(hasty.upstream.availability().reason).toBe("failed: no initialize within 0.2 s (start_timeout)");
  await patient.ready();
  expect(textOf(await call(patient, "quick"))).toBe("ok");
});

test("all of a server's processes are gone once it is closed, however they take it [M-D21]", async () => {
  await using folder = await testFolder();
  const server = await openServer({ mcp: folder.fake({ child: true }) });
  await server.ready();
  const shell = folder.fake({}, "shell");
  const words = [process.execPath, ...(shell["args"] as string[])].map((word) => `'${word}'`).join(" ");
  const wrapped = await openServer({ mcp: { command: "sh", args: ["-c", `${words}; true`], protocol: "legacy" } });
  await wrapped.ready();
  expect(folder.pids()).toHaveLength(2);
  await Promise.all([server[Symbol.asyncDispose](), wrapped[Symbol.asyncDispose]()]);
  await allGone([...folder.pids(), ...folder.pids("shell")]);
});

test("a server that ignores the end of its input and TERM is killed [M-D21]", async () => {
  await using folder = await testFolder();
  const server = await openServer({ mcp: folder.fake({ stubborn: true }) });
  await server.ready();
  await server[Symbol.asyncDispose]();
  expect(folder.lines()).toContain("TERM");
  await allGone(folder.pids());
});

test("a server that failed as often as it may is tried again after five minutes [R-D01]", async () => {
  await using folder = await testFolder();
  const clock = holdingClock(60_000);
  const fake = folder.fake();
  const words = [process.execPath, ...(fake["args"] as string[])].map((word) => `'${word}'`).join(" ");
  const mcp = { command: "sh", args: ["-c", `test -e mended && exec ${words}; exit 1`], protocol: "legacy" };
  await using server = await openServer({
    mcp: { ...mcp, restart: { attempts: 1 }, start_timeout: "50s" },
    folder: folder.path,
    clock,
  });
  await server.until(() => server.upstream.availability().reason.startsWith("failed"));
  const parked = clock.held.at(-1);
  expect(parked?.delayMs).toBeGreaterThanOrEqual(225_000);
  expect(parked?.delayMs).toBeLessThanOrEqual(375_000);
  await writeFile(join(folder.path, "mended"), "");
  parked?.fire();
  await server.ready();
  expect(textOf(await call(server, "quick"))).toBe("ok");
});

test("tools that are others now are read again, and calls go on [M-D04]", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  await server.ready();
  expect(server.names()).not.toContain("added");
  await call(server, "change");
  await server.until(() => server.names().includes("added"));
  expect(server.names()).not.toContain("huge");
});

test("all pages of a list are read [M-D05]", async () => {
  await using folder = await testFolder();
  const tools = Array.from({ length: 73 }, (_, i) => ({ name: `tool_${i}`, inputSchema: { type: "object" } }));
  await using server = await openServer({ mcp: folder.fake({ tools, pageSize: 30 }) });
  await server.ready();
  expect(server.names()).toHaveLength(73);
  expect(textOf(await call(server, "tool_72"))).toBe("ok");
});

test("a list that does not end is read once, and said so [M-D06]", async () => {
  await using folder = await testFolder();
  const tools = Array.from({ length: 6 }, (_, i) => ({ name: `tool_${i}`, inputSchema: { type: "object" } }));
  for (const [pages, notes] of [
    ["same", 1],
    ["new-cursor", 1],
    ["empty-cursor", 0],
  ] as const) {
    await using server = await openServer({ mcp: folder.fake({ tools, pages }) });
    await server.ready();
    expect(server.names()).toHaveLength(6);
    expect(server.upstream.offer?.()?.notes).toHaveLength(notes);
  }
  await using broken = await openServer({ mcp: folder.fake({ tools, pages: "error", pageSize: 3 }) });
  await broken.until(() => broken.upstream.availability().reason.startsWith("failed"));
  expect(broken.upstream.availability().reason).toContain("the server answered with error -32603: no second page");
  expect(broken.upstream.offer?.()).toBeUndefined();
});

test("what is no tool is left out and named, and the rest is served", async () => {
  await using folder = await testFolder();
  const tools = [{ name: "good", inputSchema: {} }, { name: "bad", inputSchema: 7 }, "none", { name: "" }];
  await using server = await openServer({ mcp: folder.fake({ tools }) });
  await server.ready();
  expect(server.names()).toEqual(["good"]);
  expect(server.upstream.offer?.()?.notes.map(({ tool }) => tool)).toEqual(["bad", undefined, undefined]);
});

test("a lazy server is started by its first call, once its tools are known, and stops when nobody calls", async () => {
  await using folder = await testFolder();
  const cache = memoryCache();
  const mcp = { ...folder.fake(), start: "lazy", idle_timeout: "10m" };
  {
    await using first = await openServer({ mcp, cache });
    await first.ready();
  }
  expect(folder.pids()).toHaveLength(1);
  const clock = holdingClock(600_000);
  await using server = await openServer({ mcp, cache, clock });
  await server.ready();
  expect(folder.pids()).toHaveLength(1);
  expect(server.names()).toContain("quick");
  expect(textOf(await call(server, "quick"))).toBe("ok");
  const pid = folder.pids()[1] ?? 0;
  clock.held.at(-1)?.fire();
  await allGone([pid]);
  expect(server.upstream.availability().state).toBe("ready");
  expect(textOf(await call(server, "quick"))).toBe("ok");
  expect(folder.pids()).toHaveLength(3);
});

test("what is remembered and cannot be read is learnt again", async () => {
  await using folder = await testFolder();
  const cache: TextCache = { read: () => Promise.resolve('{"form":1,"tools":'), write: () => Promise.resolve() };
  await using server = await openServer({ mcp: { ...folder.fake(), start: "lazy" }, cache });
  await server.ready();
  expect(folder.pids()).toHaveLength(1);
});

test("the era is asked of a process of its own, whatever that does, and remembered", async () => {
  await using folder = await testFolder();
  for (const [discover, version] of [
    ["unknown", "2025-11-25"],
    ["die", "2025-11-25"],
    ["modern", "2026-07-28"],
  ] as const) {
    const cache = memoryCache();
    const mcp = { ...folder.fake({ discover }, discover), protocol: "auto" };
    for (const starts of [2, 3]) {
      await using server = await openServer({ mcp, cache });
      await server.ready();
      expect(textOf(await call(server, "quick"))).toBe("ok");
      const report = await server.upstream.probe(new AbortController().signal);
      expect(report.message).toContain(`speaks MCP ${version}`);
      expect(folder.pids(discover)).toHaveLength(starts);
    }
  }
});

test("a server that never answers what it does not know is taken for one of the older era", async () => {
  await using folder = await testFolder();
  const mcp = { ...folder.fake({ discover: "silent" }), protocol: "auto" };
  const clock = holdingClock(3_000);
  await using server = await openServer({ mcp, clock });
  await folder.waitFor("server/discover");
  clock.held.find(({ delayMs }) => delayMs === 3_000)?.fire();
  await server.ready();
  expect(textOf(await call(server, "quick"))).toBe("ok");
});

test("older revisions are spoken, and one that nobody knows is refused with both named [M-D20]", async () => {
  await using folder = await testFolder();
  for (const version of ["2024-11-05", "2025-03-26"]) {
    await using server = await openServer({ mcp: folder.fake({ version }) });
    await server.ready();
    const report = await server.upstream.probe(new AbortController().signal);
    expect(report.message).toContain(`speaks MCP ${version}`);
  }
  await using strange = await openServer({ mcp: folder.fake({ version: "1987-06-05" }) });
  await strange.until(() => strange.upstream.availability().reason.startsWith("failed"));
  expect(strange.upstream.availability().reason).toMatch(/the server speaks MCP 1987-06-05, the gateway .*2025-11-25/);
});

test("an era that was taken for want of an answer is not remembered, and asked for again", async () => {
  await using folder = await testFolder();
  const cache = memoryCache();
  const mcp = { ...folder.fake({ discover: "silent" }), protocol: "auto" };
  for (const starts of [2, 4]) {
    const clock = holdingClock(3_000);
    await using server = await openServer({ mcp, cache, clock });
    const asked = (): number => folder.lines().filter((line) => line.includes("server/discover")).length;
    await expect.poll(asked, { timeout: 30_000 }).toBe(starts / 2);
    clock.held.find(({ delayMs }) => delayMs === 3_000)?.fire();
    await server.ready();
    expect(folder.pids()).toHaveLength(starts);
  }
});

test.for(["program", "remote"] as const)(
  "a server of the stateless era (%s) that tells whoever listens that its tools changed has them read again [M-D04]",
  async (kind) => {
    await using folder = await testFolder();
    await using fake = await startFakeHttp({ discover: "modern", subscribes: true });
    const program = { ...folder.fake({ discover: "modern", subscribes: true }), protocol: "2026-07-28" };
    const mcp = kind === "program" ? program : { url: fake.url, protocol: "2026-07-28" };
    await using server = await openServer({ mcp });
    await server.ready();
    const listens =
      kind === "program"
        ? folder.waitFor("subscriptions/listen")
        : fake.until(() => fake.requests.some(({ message }) => message.method === "subscriptions/listen"));
    await listens;
    expect(server.names()).not.toContain("added");
    expect(textOf(await call(server, "change"))).toBe("changed");
    await server.until(() => server.names().includes("added"));
    expect(server.names()).not.toContain("huge");
    fake.cutAll();
    if (kind === "program") return;
    // A stream that broke off is opened again, and what was changed meanwhile is looked for.
    await fake.until(() => fake.requests.filter(({ message }) => message.method === "subscriptions/listen").length > 1);
  },
);

test("a server that is started fifty times over is one process at a time, and leaves no descriptor behind [S-D11]", async () => {
  await using folder = await testFolder();
  const log = join(folder.path, "log");
  const tiny = fileURLToPath(new URL("../../../bench/servers/tiny-mcp.sh", import.meta.url));
  const mcp = {
    command: "sh",
    args: ["-c", `echo "start $$" >>'${log}'; exec sh '${tiny}'`],
    protocol: "legacy",
    restart: { first: "1ms", max: "1ms", attempts: 100 },
  };
  await using server = await openServer({ mcp });
  await server.ready();
  const before = descriptors();
  for (let round = 1; round <= 50; round++) {
    const pid = folder.pids().at(-1) ?? 0;
    process.kill(pid, "SIGKILL");
    await server.until(() => folder.pids().length > round && server.upstream.availability().state === "ready");
    await allGone(folder.pids().slice(0, -1));
  }
  expect(folder.pids()).toHaveLength(51);
  expect(textOf(await call(server, "work"))).toBe("done");
  await expect.poll(descriptors).toBeLessThanOrEqual(before);
});

/** The real clock, but that waits of so long and more end when the test says so. */
function holdingClock(leastMs: number): Clock & { readonly held: { readonly delayMs: number; fire(): void }[] } {
  const held: { readonly delayMs: number; fire(): void }[] = [];
  return {
    ...systemClock,
    held,
    after(delayMs, task) {
      if (delayMs < leastMs) return systemClock.after(delayMs, task);
      held.push({ delayMs, fire: task });
      return { [Symbol.dispose]: () => undefined };
    },
  };
}

/** Descriptors of this process and its children, such as the one that starts programs; 0 where the system does not tell. */
function descriptors(): number {
  if (process.platform !== "linux") return 0;
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim().split(" ");
  const processes = ["self", ...children.filter((pid) => pid !== "")];
  return processes.reduce((sum, pid) => sum + readdirSync(`/proc/${pid}/fd`).length, 0);
}

function memoryCache(): TextCache {
  const texts = new Map<string, string>();
  return {
    read: (key) => Promise.resolve(texts.get(key)),
    write: (key, text) => {
      texts.set(key, text);
      return Promise.resolve();
    },
  };
}
