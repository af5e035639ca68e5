import { createHash } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import {
  ANONYMOUS,
  callContext,
  createDemoAdapter,
  createDemoParse,
  type DemoAdapter,
  declaration,
  demoCompose,
  descriptionOf,
  makeRegistry,
  OPEN_END,
  registration,
  startRegistry,
  startWithClock,
  temporaryFolder,
  toolCall,
  toolNames,
  until,
} from "./support.ts";

/** Lets upstreams that are opened from now on wait until the returned function is called. */
function holdOpening(adapter: DemoAdapter): () => void {
  let release = (): void => undefined;
  adapter.gate = new Promise((resolve) => {
    release = resolve;
  });
  return () => release();
}

/** One turn of the event loop. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test("an unknown tool names the nearest ones", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "a.yaml"), declaration("order_status"));
  const { registry } = await startRegistry({ folder });
  const attempt = (): unknown => registry.acquire("order_statsu", ANONYMOUS);
  expect(attempt).toThrow(GatewayError);
  expect(attempt).toThrow(
    expect.objectContaining({
      reason: "TOOL_NOT_FOUND",
      message: 'no tool "order_statsu"; did you mean "order_status"?',
      metadata: { tool: "order_statsu", nearest: "order_status" },
    }),
  );
});

test("names of Object's prototype are names like any other [X-D02]", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  for (const name of ["__proto__", "constructor", "toString"]) {
    expect(() => registry.get(name, ANONYMOUS)).toThrow(`no tool "${name}"`);
    await registry.register(registration(declaration(name)), ANONYMOUS, OPEN_END);
    expect(registry.get(name, ANONYMOUS).definition.name).toBe(name);
  }
});

test("a disabled tool is listed with its reason, opens nothing, and is not called", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "a.yaml"), declaration("a", "", "enabled: false\n"));
  const { registry, adapter } = await startRegistry({ folder });
  expect(registry.get("a", ANONYMOUS).availability).toEqual({
    state: "disabled",
    reason: "`enabled: false` in file:a.yaml",
  });
  expect(() => registry.acquire("a", ANONYMOUS)).toThrow(expect.objectContaining({ reason: "TOOL_DISABLED" }));
  expect(adapter.opened).toHaveLength(0);
  expect(registry.explain("a", ANONYMOUS).steps).toEqual([]);

  await writeFile(join(folder, "a.yaml"), declaration("a"));
  await until(registry, () => registry.get("a", ANONYMOUS).availability.state === "ready");
  const lease = registry.acquire("a", ANONYMOUS);
  await writeFile(join(folder, "a.yaml"), declaration("a", "", "enabled: false\n"));
  await until(registry, () => registry.get("a", ANONYMOUS).availability.state === "disabled");
  expect(adapter.opened[0]?.disposals).toBe(0);
  lease[Symbol.dispose]();
  expect(adapter.opened[0]?.disposals).toBe(1);
});

test("an edit without effect keeps version, upstream, times and revision", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "a.yaml"), declaration("a"));
  const { registry, adapter, parsed, logger } = await startRegistry({ folder });
  const before = registry.list(ANONYMOUS);
  await writeFile(join(folder, "a.yaml"), `# a comment\n${declaration("a")}`);
  await writeFile(join(folder, "b.yaml"), declaration("b"));
  await until(registry, () => toolNames(registry).includes("b"));
  expect(parsed.filter((source) => source === "file:a.yaml")).toHaveLength(2);
  expect(logger.lines.filter((line) => line.fields["source"] === "file:a.yaml")).toHaveLength(2);
  expect(registry.list(ANONYMOUS).revision).toBe(before.revision + 1);
  expect(registry.get("a", ANONYMOUS).definition).toEqual(before.tools[0]?.definition);
  expect(adapter.opened).toHaveLength(2);
});

test("the contract digest follows what a model sees, the etag every change", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  const register = async (text: string) => {
    const { tools } = await registry.register(registration(text), ANONYMOUS, OPEN_END);
    return tools[0]?.definition;
  };
  const first = await register(declaration("a", "one"));
  const second = await register(declaration("a", "one", "retries: 3\n"));
  const third = await register(declaration("a", "two"));
  const contract = '{"description":"one","hints":{},"inputSchema":{"type":"object"},"name":"a","outputSchema":null}';
  expect(first?.contractDigest).toBe(createHash("sha256").update(contract).digest("hex"));
  expect(second?.etag).not.toBe(first?.etag);
  expect(second?.contractDigest).toBe(first?.contractDigest);
  expect(third?.contractDigest).not.toBe(first?.contractDigest);
});

test("create time stays and update time moves when a declaration changes", async () => {
  const clock = createFakeClock();
  const { registry } = await startWithClock(clock, await temporaryFolder());
  const times = async (text: string): Promise<number[]> => {
    const made = await registry.register(registration(text), ANONYMOUS, OPEN_END);
    return made.tools.flatMap(({ definition }) => [definition.createTimeMs, definition.updateTimeMs]);
  };
  const start = clock.now();
  expect(await times(declaration("a", "one"))).toEqual([start, start]);
  await clock.advance(1_000);
  expect(await times(declaration("a", "one"))).toEqual([start, start]);
  expect(await times(declaration("a", "two"))).toEqual([start, start + 1_000]);
});

test("an upstream that cannot be opened is a problem; the last good version keeps serving", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "a.yaml"), declaration("a", "good"));
  await writeFile(join(folder, "b.yaml"), declaration("b", "never", "open: fail\n"));
  const { registry, logger } = await startRegistry({ folder });
  expect(toolNames(registry)).toEqual(["a"]);
  await writeFile(join(folder, "a.yaml"), declaration("a", "bad", "open: fail\n"));
  await until(registry, () => registry.list(ANONYMOUS).problems.length === 2);
  expect(descriptionOf(registry, "a")).toBe("good");
  const message = "cannot be opened because of a fault in the gateway; the log line upstream-open-failed has the cause";
  expect(registry.list(ANONYMOUS).problems).toEqual([
    { source: "file:a.yaml", line: 0, column: 0, message, lastGoodServing: true, note: false },
    { source: "file:b.yaml", line: 0, column: 0, message, lastGoodServing: false, note: false },
  ]);
  expect(logger.lines).toContainEqual(expect.objectContaining({ message: "upstream-open-failed" }));
  await writeFile(join(folder, "a.yaml"), declaration("a", "better"));
  await until(registry, () => descriptionOf(registry, "a") === "better");
  expect(registry.list(ANONYMOUS).problems).toHaveLength(1);
});

test("an upstream that does not open in time holds up nobody else, and is disposed when it comes late", async () => {
  const clock = createFakeClock();
  const folder = await temporaryFolder();
  const { registry, adapter } = await startWithClock(clock, folder);
  const release = holdOpening(adapter);
  const slow = registry.register(registration(declaration("slow")), ANONYMOUS, OPEN_END);
  const refused = expect(slow).rejects.toMatchObject({ reason: "UPSTREAM_TIMEOUT" });
  await clock.advance(0);
  const gate = adapter.gate;
  adapter.gate = Promise.resolve();
  await registry.register(registration(declaration("quick")), ANONYMOUS, OPEN_END);
  expect(toolNames(registry)).toEqual(["quick"]);
  await clock.advance(10_000);
  await refused;
  release();
  await gate;
  await clock.advance(0);
  expect(adapter.opened.map((upstream) => upstream.disposals)).toEqual([0, 1]);
  expect(toolNames(registry)).toEqual(["quick"]);
});

test("a version that was overtaken while it opened is disposed and never serves", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "a.yaml"), declaration("a", "one"));
  const { registry, adapter } = await startRegistry({ folder });
  const openTwo = holdOpening(adapter);
  await writeFile(join(folder, "a.yaml"), declaration("a", "two"));
  await writeFile(join(folder, "marker.yaml"), "broken\n");
  await until(registry, () => registry.list(ANONYMOUS).problems.length > 0);
  await writeFile(join(folder, "a.yaml"), declaration("a", "three"));
  await rm(join(folder, "marker.yaml"));
  await until(registry, () => registry.list(ANONYMOUS).problems.length === 0);
  const openThree = holdOpening(adapter);
  openTwo();
  while (adapter.opened.length < 2) await turn();
  await turn();
  expect(descriptionOf(registry, "a")).toBe("one");
  openThree();
  await until(registry, () => descriptionOf(registry, "a") === "three");
  const ends = adapter.opened.map((upstream) => [upstream.fields.get("description"), upstream.disposals]);
  expect(ends).toEqual([
    ["one", 1],
    ["two", 1],
    ["three", 0],
  ]);
});

test("a tool's path is composed at its first call, once per version", async () => {
  const composed: string[] = [];
  const { registry } = await startRegistry({
    folder: await temporaryFolder(),
    compose: (given, definition, upstream) => {
      composed.push(definition.description);
      return demoCompose(given, definition, upstream);
    },
  });
  await registry.register(registration(declaration("a-b", "one")), ANONYMOUS, OPEN_END);
  expect(composed).toEqual([]);
  registry.acquire("a-b", ANONYMOUS)[Symbol.dispose]();
  registry.acquire("a-b", ANONYMOUS)[Symbol.dispose]();
  expect(registry.explain("a-b", ANONYMOUS)).toMatchObject({
    definition: { name: "a-b" },
    values: [{ key: "timeout.total", value: "60s", origin: "default" }],
    steps: ["demo-step"],
  });
  // Another alias is no other version.
  await registry.register(registration(declaration("a_b", "other")), ANONYMOUS, OPEN_END);
  registry.acquire("a-b", ANONYMOUS)[Symbol.dispose]();
  expect(composed).toEqual(["one"]);
});

test("a lease that was given back runs nothing", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  await registry.register(registration(declaration("a")), ANONYMOUS, OPEN_END);
  const lease = registry.acquire("a", ANONYMOUS);
  lease[Symbol.dispose]();
  expect(() => lease.run(toolCall("a"), callContext())).toThrow(expect.objectContaining({ reason: "INTERNAL" }));
});

test("disposing the registry disposes every upstream once, and logs one that fails", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "a.yaml"), declaration("a", "", "dispose: fail\n"));
  await writeFile(join(folder, "b.yaml"), declaration("b"));
  const { registry, adapter, logger } = await startRegistry({ folder });
  const lease = registry.acquire("b", ANONYMOUS);
  await registry[Symbol.asyncDispose]();
  await registry[Symbol.asyncDispose]();
  lease[Symbol.dispose]();
  expect(adapter.opened.map((upstream) => upstream.disposals)).toEqual([1, 1]);
  expect(logger.lines).toContainEqual(expect.objectContaining({ message: "upstream-dispose-failed" }));
  expect(() => registry.acquire("b", ANONYMOUS)).toThrow(expect.objectContaining({ reason: "GATEWAY_STOPPING" }));
  await expect(registry.register(registration(declaration("c")), ANONYMOUS, OPEN_END)).rejects.toMatchObject({
    reason: "GATEWAY_STOPPING",
  });
});

test("a declaration that the parser stumbles over is a problem of its own and stops no other", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "bad.yaml"), declaration("bad"));
  await writeFile(join(folder, "good.yaml"), declaration("good"));
  const parse = createDemoParse(createDemoAdapter());
  const { registry, logger } = await startRegistry({
    folder,
    parse: (text, options) => {
      if (text.includes("bad")) throw new TypeError("secret detail");
      return parse(text, options);
    },
  });
  expect(toolNames(registry)).toEqual(["good"]);
  expect(registry.list(ANONYMOUS).problems).toMatchObject([
    {
      source: "file:bad.yaml",
      message: "cannot be read because of a fault in the gateway; the log line declaration-parse-failed has the cause",
    },
  ]);
  expect(logger.lines).toContainEqual(expect.objectContaining({ message: "declaration-parse-failed" }));
  const attempt = registry.register(registration(declaration("bad")), ANONYMOUS, OPEN_END);
  await expect(attempt).rejects.toMatchObject({ reason: "INTERNAL", message: "internal error" });
});

test("a registry that was disposed holds no timer", async () => {
  const clock = createFakeClock();
  const { registry } = await startWithClock(clock, await temporaryFolder());
  await registry.register({ ...registration(declaration("a")), leaseMs: 5_000 }, ANONYMOUS, OPEN_END);
  expect(clock.pending).toBeGreaterThan(0);
  await registry[Symbol.asyncDispose]();
  expect(clock.pending).toBe(0);
});

test("a start that is cancelled ends with the signal's reason", async () => {
  const { registry } = makeRegistry({ folder: await temporaryFolder() });
  const reason = new GatewayError("GATEWAY_STOPPING", "stopped");
  await expect(registry.start(AbortSignal.abort(reason))).rejects.toBe(reason);
});
