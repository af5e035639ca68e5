import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import type { RegistrationStore, StoredRegistration } from "../../src/core/store.ts";
import { createMemoryRegistrations } from "../../src/stores/memory-registrations.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import {
  ANONYMOUS,
  callTool,
  declaration,
  descriptionOf,
  OPEN_END,
  registration,
  startRegistry,
  startWithClock,
  temporaryFolder,
  toolNames,
} from "./support.ts";

/** A store whose writes a test can hold up or fail. */
function createSteeredStore(initial: readonly StoredRegistration[] = []) {
  const memory = createMemoryRegistrations(initial);
  const steered = {
    fails: false,
    gate: Promise.resolve(),
    puts: 0,
    store: {
      ...memory,
      async put(entry: StoredRegistration) {
        await steered.gate;
        if (steered.fails) throw new GatewayError("STORE_FAILED", "registrations cannot be written");
        steered.puts += 1;
        await memory.put(entry);
      },
      async remove(name: string) {
        if (steered.fails) throw new GatewayError("STORE_FAILED", "registrations cannot be deleted");
        await memory.remove(name);
      },
    } satisfies RegistrationStore,
    kept: async () => (await memory.load(() => undefined)).map((entry) => entry.name),
  };
  return steered;
}

function stored(name: string, more: Partial<StoredRegistration> = {}): StoredRegistration {
  return {
    name,
    text: declaration(name, "kept"),
    format: "yaml",
    principal: "anonymous",
    createTimeMs: 1_000,
    updateTimeMs: 2_000,
    leaseExpireTimeMs: undefined,
    ...more,
  };
}

test("a registration is visible at once, with its revision and notes, and is kept", async () => {
  const { store, kept } = createSteeredStore();
  const { registry } = await startRegistry({ folder: await temporaryFolder(), store });
  const text = declaration("a", "one", "note: say more\n");
  const made = await registry.register(registration(text), ANONYMOUS, OPEN_END);
  expect(made.tools.map((tool) => tool.definition)).toMatchObject([{ name: "a", source: "api", description: "one" }]);
  expect(made.warnings).toEqual(["line 1, column 1: say more"]);
  expect(made.revision).toBe(registry.list(ANONYMOUS).revision);
  expect(await callTool(registry, "a")).toBe("one");
  expect(await kept()).toEqual(["a"]);
  expect(registry.list(ANONYMOUS).problems).toMatchObject([{ source: "api:a", message: "say more", note: true }]);
});

test("what is invalid is refused with each place, and nothing is changed", async () => {
  const { store, kept } = createSteeredStore();
  const { registry } = await startRegistry({ folder: await temporaryFolder(), store });
  const attempt = registry.register(registration("what\nname x\n"), ANONYMOUS, OPEN_END);
  await expect(attempt).rejects.toMatchObject({
    reason: "DECLARATION_INVALID",
    message: 'the declaration is refused: line 1, column 1: cannot read "what"; write key: value (and 2 more)',
    violations: [
      { field: "declaration_yaml", description: 'line 1, column 1: cannot read "what"; write key: value' },
      { field: "declaration_yaml", description: 'line 2, column 1: cannot read "name x"; write key: value' },
      { field: "declaration_yaml", description: "line 1, column 1: `name` is missing" },
    ],
  });
  const huge = registry.register(registration("#".repeat(1024 * 1024 + 1)), ANONYMOUS, OPEN_END);
  await expect(huge).rejects.toMatchObject({ reason: "DECLARATION_INVALID" });
  expect(await kept()).toEqual([]);
  expect(toolNames(registry)).toEqual([]);
  expect(registry.list(ANONYMOUS).problems).toEqual([]);
});

test("validate_only checks all and changes nothing", async () => {
  const { store, kept } = createSteeredStore();
  const { registry, adapter } = await startRegistry({ folder: await temporaryFolder(), store });
  const { revision } = registry.list(ANONYMOUS);
  const options = { ...registration(declaration("a.b", "one")), validateOnly: true };
  const would = await registry.register(options, ANONYMOUS, OPEN_END);
  expect(would.tools.map(({ definition, availability }) => [definition.alias, availability.state])).toEqual([
    ["a_b", "ready"],
  ]);
  expect(would.revision).toBe(revision);
  expect(registry.list(ANONYMOUS)).toMatchObject({ revision, tools: [] });
  expect(adapter.opened).toEqual([]);
  expect(await kept()).toEqual([]);
  await registry.register(registration(declaration("a.b")), ANONYMOUS, OPEN_END);
  await expect(registry.register({ ...options, mustNotExist: true }, ANONYMOUS, OPEN_END)).rejects.toMatchObject({
    reason: "TOOL_EXISTS",
  });
});

test("must_not_exist and etag guard against overwriting", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  const once = { ...registration(declaration("a", "one")), mustNotExist: true };
  const { tools } = await registry.register(once, ANONYMOUS, OPEN_END);
  const etag = tools[0]?.definition.etag;
  await expect(registry.register(once, ANONYMOUS, OPEN_END)).rejects.toMatchObject({ reason: "TOOL_EXISTS" });
  const second = { ...registration(declaration("a", "two")), etag };
  await registry.register(second, ANONYMOUS, OPEN_END);
  await expect(registry.register(second, ANONYMOUS, OPEN_END)).rejects.toMatchObject({ reason: "ETAG_MISMATCH" });
  const absent = { ...registration(declaration("b")), etag };
  await expect(registry.register(absent, ANONYMOUS, OPEN_END)).rejects.toMatchObject({
    reason: "ETAG_MISMATCH",
    message: 'tool "b" does not exist, so it has no etag; get the tool again',
  });
  const remove = { name: "a", etag, allowMissing: false };
  await expect(registry.unregister(remove, ANONYMOUS, OPEN_END)).rejects.toMatchObject({ reason: "ETAG_MISMATCH" });
  expect(descriptionOf(registry, "a")).toBe("two");
});

test("of many registrations of one new name with must_not_exist one wins", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  const attempts = Array.from({ length: 10 }, async (_, n) =>
    registry.register({ ...registration(declaration("a", `${n}`)), mustNotExist: true }, ANONYMOUS, OPEN_END),
  );
  const outcomes = await Promise.allSettled(attempts);
  expect(outcomes.filter((outcome) => outcome.status === "fulfilled")).toHaveLength(1);
});

test("unregistering removes, and says where there is nothing to remove", async () => {
  const { store, kept } = createSteeredStore();
  const { registry } = await startRegistry({ folder: await temporaryFolder(), store });
  const { revision } = await registry.register(registration(declaration("a")), ANONYMOUS, OPEN_END);
  const after = await registry.unregister({ name: "a", etag: undefined, allowMissing: false }, ANONYMOUS, OPEN_END);
  expect(after).toBe(revision + 1);
  expect(await kept()).toEqual([]);
  const again = registry.unregister({ name: "a", etag: undefined, allowMissing: false }, ANONYMOUS, OPEN_END);
  await expect(again).rejects.toMatchObject({ reason: "TOOL_NOT_FOUND" });
  expect(await registry.unregister({ name: "a", etag: undefined, allowMissing: true }, ANONYMOUS, OPEN_END)).toBe(
    after,
  );
});

test("a registration that cannot be written changes nothing", async () => {
  const steered = createSteeredStore();
  const { registry, adapter } = await startRegistry({ folder: await temporaryFolder(), store: steered.store });
  await registry.register(registration(declaration("a", "one")), ANONYMOUS, OPEN_END);
  const { revision } = registry.list(ANONYMOUS);
  steered.fails = true;
  for (const text of [declaration("a", "two"), declaration("b")]) {
    const attempt = registry.register(registration(text), ANONYMOUS, OPEN_END);
    await expect(attempt).rejects.toMatchObject({ reason: "STORE_FAILED" });
  }
  const removal = registry.unregister({ name: "a", etag: undefined, allowMissing: false }, ANONYMOUS, OPEN_END);
  await expect(removal).rejects.toMatchObject({ reason: "STORE_FAILED" });
  expect(toolNames(registry)).toEqual(["a"]);
  expect(descriptionOf(registry, "a")).toBe("one");
  expect(registry.list(ANONYMOUS).revision).toBe(revision);
  expect(adapter.opened.map((upstream) => upstream.disposals)).toEqual([0, 1, 1]);
  steered.fails = false;
  await registry.register(registration(declaration("b")), ANONYMOUS, OPEN_END);
  expect(toolNames(registry)).toEqual(["a", "b"]);
});

test("a registration is on disk before it is visible", async () => {
  const steered = createSteeredStore();
  const { registry } = await startRegistry({ folder: await temporaryFolder(), store: steered.store });
  let release = (): void => undefined;
  steered.gate = new Promise((resolve) => {
    release = resolve;
  });
  const making = registry.register(registration(declaration("a")), ANONYMOUS, OPEN_END);
  await new Promise((resolve) => setImmediate(resolve));
  expect(toolNames(registry)).toEqual([]);
  release();
  await making;
  expect(toolNames(registry)).toEqual(["a"]);
});

test("a registration that nobody waits for any more ends at once for its caller", async () => {
  const steered = createSteeredStore();
  const { registry } = await startRegistry({ folder: await temporaryFolder(), store: steered.store });
  let release = (): void => undefined;
  steered.gate = new Promise((resolve) => {
    release = resolve;
  });
  const stop = new AbortController();
  const making = registry.register(registration(declaration("a")), ANONYMOUS, stop.signal);
  const waiting = registry.register(registration(declaration("a", "next")), ANONYMOUS, stop.signal);
  await new Promise((resolve) => setImmediate(resolve));
  const reason = new GatewayError("CALL_CANCELLED", "gone");
  stop.abort(reason);
  await expect(making).rejects.toBe(reason);
  await expect(waiting).rejects.toBe(reason);
  release();
  // What was being written is there; what had not begun is not.
  await registry.register(registration(declaration("b")), ANONYMOUS, OPEN_END);
  expect(steered.puts).toBe(2);
  expect(toolNames(registry)).toEqual(["a", "b"]);
});

test("registrations come back with their times, lapsed ones do not", async () => {
  const clock = createFakeClock();
  const steered = createSteeredStore([
    stored("stays"),
    stored("lapsed", { leaseExpireTimeMs: clock.now() - 1 }),
    stored("leased", { leaseExpireTimeMs: clock.now() + 60_000 }),
  ]);
  const { registry } = await startWithClock(clock, await temporaryFolder(), { store: steered.store });
  expect(toolNames(registry)).toEqual(["leased", "stays"]);
  expect(registry.get("stays", ANONYMOUS).definition).toMatchObject({ createTimeMs: 1_000, updateTimeMs: 2_000 });
  expect(await steered.kept()).toEqual(["stays", "leased"]);
  await clock.advance(60_000);
  expect(toolNames(registry)).toEqual(["stays"]);
  expect(await steered.kept()).toEqual(["stays"]);
});

test("a kept registration that no longer loads is a problem until it is registered again or removed", async () => {
  const { store, kept } = createSteeredStore([
    stored("a", { text: "old grammar\n" }),
    stored("b", { text: "name: c\n" }),
  ]);
  const { registry } = await startRegistry({ folder: await temporaryFolder(), store });
  expect(toolNames(registry)).toEqual([]);
  expect(registry.list(ANONYMOUS).problems.map((problem) => `${problem.source} ${problem.message}`)).toEqual([
    'api:a the registration kept on disk no longer loads, register the tool again: cannot read "old grammar"; write key: value',
    "api:a the registration kept on disk no longer loads, register the tool again: `name` is missing",
    'api:b the registration kept on disk no longer loads, register the tool again: it declares "c"',
  ]);
  await registry.register(registration(declaration("a")), ANONYMOUS, OPEN_END);
  await registry.unregister({ name: "b", etag: undefined, allowMissing: false }, ANONYMOUS, OPEN_END);
  expect(registry.list(ANONYMOUS).problems).toEqual([]);
  expect(await kept()).toEqual(["a"]);
});

test("damaged entries and a store that cannot be read are problems, and the rest starts", async () => {
  const memory = createMemoryRegistrations();
  const damaged: RegistrationStore = {
    ...memory,
    load: async (onDamaged) => {
      onDamaged("a", "the registration in /state/tool-a.json is damaged");
      return [stored("b")];
    },
  };
  const first = await startRegistry({ folder: await temporaryFolder(), store: damaged });
  expect(toolNames(first.registry)).toEqual(["b"]);
  expect(first.registry.list(ANONYMOUS).problems).toMatchObject([{ source: "api:a" }]);
  await first.registry.register(registration(declaration("a")), ANONYMOUS, OPEN_END);
  expect(first.registry.list(ANONYMOUS).problems).toEqual([]);

  const unreadable: RegistrationStore = {
    ...memory,
    load: () => Promise.reject(new GatewayError("STORE_FAILED", "registrations cannot be read")),
  };
  const second = await startRegistry({ folder: await temporaryFolder(), store: unreadable });
  expect(second.registry.list(ANONYMOUS).problems).toMatchObject([{ source: "api", lastGoodServing: false }]);
});

test("a lease lapses by the clock, renewing moves its end, and one timer serves them all", async () => {
  const clock = createFakeClock();
  const { store, kept } = createSteeredStore();
  const { registry, adapter, logger } = await startWithClock(clock, await temporaryFolder(), { store });
  const idle = clock.pending;
  const lease = (name: string, leaseMs: number) =>
    registry.register({ ...registration(declaration(name)), leaseMs }, ANONYMOUS, OPEN_END);
  const { tools } = await lease("short", 5_000);
  expect(tools[0]?.definition.leaseExpireTimeMs).toBe(clock.now() + 5_000);
  for (let n = 0; n < 20; n++) await lease(`long${n}`, 20_000);
  expect(clock.pending).toBe(idle + 1);
  await clock.advance(4_000);
  await lease("short", 5_000);
  await clock.advance(4_999);
  expect(toolNames(registry)).toContain("short");
  await clock.advance(1);
  expect(toolNames(registry)).not.toContain("short");
  expect(await kept()).not.toContain("short");
  expect(adapter.opened.filter((upstream) => upstream.fields.get("name") === "short")).toHaveLength(1);
  expect(logger.lines.at(-1)).toMatchObject({
    message: "config reloaded",
    fields: { source: "api:short", removed: ["short"], cause: "lease-lapsed" },
  });
  await clock.advance(11_000);
  expect(toolNames(registry)).toEqual([]);
  expect(clock.pending).toBe(idle);
});

test("a renewal that is being written when the lease lapses wins", async () => {
  const clock = createFakeClock();
  const steered = createSteeredStore();
  const { registry } = await startWithClock(clock, await temporaryFolder(), { store: steered.store });
  const leased = { ...registration(declaration("a")), leaseMs: 5_000 };
  await registry.register(leased, ANONYMOUS, OPEN_END);
  let release = (): void => undefined;
  steered.gate = new Promise((resolve) => {
    release = resolve;
  });
  await clock.advance(4_999);
  const renewing = registry.register(leased, ANONYMOUS, OPEN_END);
  await clock.advance(1);
  release();
  await renewing;
  await clock.advance(4_998);
  expect(toolNames(registry)).toEqual(["a"]);
  await clock.advance(1);
  expect(toolNames(registry)).toEqual([]);
});

test("a registration without a lease ends the lease", async () => {
  const clock = createFakeClock();
  const { registry } = await startWithClock(clock, await temporaryFolder());
  await registry.register({ ...registration(declaration("a")), leaseMs: 5_000 }, ANONYMOUS, OPEN_END);
  await registry.register(registration(declaration("a")), ANONYMOUS, OPEN_END);
  await clock.advance(60_000);
  expect(toolNames(registry)).toEqual(["a"]);
});

test("a tool whose lease lapses goes even if the store does not let it be deleted", async () => {
  const clock = createFakeClock();
  const steered = createSteeredStore();
  const { registry, logger } = await startWithClock(clock, await temporaryFolder(), { store: steered.store });
  await registry.register({ ...registration(declaration("a")), leaseMs: 5_000 }, ANONYMOUS, OPEN_END);
  steered.fails = true;
  await clock.advance(5_000);
  expect(toolNames(registry)).toEqual([]);
  expect(logger.lines.at(-1)).toMatchObject({ level: "warn", message: "registration-remove-failed" });
});

test.for([999, 30 * 24 * 3_600_000 + 1, Number.NaN])("a lease of %d ms is refused", async (leaseMs) => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  const attempt = registry.register({ ...registration(declaration("a")), leaseMs }, ANONYMOUS, OPEN_END);
  await expect(attempt).rejects.toMatchObject({ reason: "REQUEST_INVALID", violations: [{ field: "lease" }] });
});
