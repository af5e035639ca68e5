import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import type { RegistryEvent } from "../../src/core/registry.ts";
import { ChangeLog } from "../../src/registry/change-log.ts";
import { Snapshot } from "../../src/registry/snapshot.ts";
import type { Registry } from "../../src/registry/tool-registry.ts";
import { watchChanges } from "../../src/registry/watch-changes.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import {
  ANONYMOUS,
  declaration,
  OPEN_END,
  readEvents,
  registration,
  startRegistry,
  startWithClock,
  temporaryFolder,
  until,
} from "./support.ts";

const NOBODY = { id: "nobody", roles: [] };

const isSynced = (event: RegistryEvent): boolean => event.type === "synced";

async function register(registry: Registry, name: string, description = ""): Promise<number> {
  return (await registry.register(registration(declaration(name, description)), ANONYMOUS, OPEN_END)).revision;
}

async function unregister(registry: Registry, name: string): Promise<number> {
  return registry.unregister({ name, etag: undefined, allowMissing: false }, ANONYMOUS, OPEN_END);
}

function brief(events: readonly RegistryEvent[]): string[] {
  return events.map((event) => {
    switch (event.type) {
      case "upserted":
        return `+${event.view.definition.name}`;
      case "removed":
        return `-${event.name}`;
      case "problems":
        return `!${event.source}:${event.problems.length}`;
      default:
        return event.type;
    }
  });
}

test("a watch from 0 gives the present tools, then `synced`, then changes as they come", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  await register(registry, "a");
  await register(registry, "gone");
  await unregister(registry, "gone");
  await register(registry, "b");
  const events = registry.watch(0, ANONYMOUS, OPEN_END)[Symbol.asyncIterator]();
  const next = async (): Promise<string> => brief([(await events.next()).value])[0] ?? "";
  expect([await next(), await next(), await next()]).toEqual(["+a", "+b", "synced"]);
  const waiting = next();
  await register(registry, "c");
  expect(await waiting).toBe("+c");
  await unregister(registry, "a");
  expect(await next()).toBe("-a");
  await events.return?.();
});

test("a watch goes on after a revision, and its revisions ascend", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  await register(registry, "a");
  const seen = await register(registry, "b");
  await register(registry, "c");
  await unregister(registry, "a");
  const events = await readEvents(registry.watch(seen, ANONYMOUS, OPEN_END), isSynced);
  expect(brief(events)).toEqual(["+c", "-a", "synced"]);
  const revisions = events.map((event) => event.revision);
  expect(revisions).toEqual(revisions.toSorted((x, y) => x - y));
  expect(revisions.at(-1)).toBe(registry.list(ANONYMOUS).revision);
});

test("who breaks off in the middle of the first listing goes on after the last revision it saw", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  for (const name of ["c", "a", "b"]) await register(registry, name);
  const first = await readEvents(registry.watch(0, ANONYMOUS, OPEN_END), () => true);
  const rest = await readEvents(registry.watch(first[0]?.revision ?? 0, ANONYMOUS, OPEN_END), isSynced);
  expect(brief([...first, ...rest])).toEqual(["+c", "+a", "+b", "synced"]);
});

test("a revision of another run, or one that is not yet, is answered with `reset` and the whole list", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  const revision = await register(registry, "a");
  for (const unknown of [1, revision + 1]) {
    const events = await readEvents(registry.watch(unknown, ANONYMOUS, OPEN_END), isSynced);
    expect(brief(events)).toEqual(["reset", "+a", "synced"]);
    // To go on after it means to begin anew.
    expect(events[0]?.revision).toBe(0);
  }
});

test("revisions grow from run to run", async () => {
  const clock = createFakeClock();
  const folder = await temporaryFolder();
  const { registry: first } = await startWithClock(clock, folder);
  const last = await register(first, "a");
  await clock.advance(1);
  const { registry: second } = await startWithClock(clock, folder);
  expect(second.list(ANONYMOUS).revision).toBeGreaterThan(last);
});

test("a slow watcher gets the last state of each tool and not those in between", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  const events = registry.watch(registry.list(ANONYMOUS).revision, ANONYMOUS, OPEN_END)[Symbol.asyncIterator]();
  await events.next();
  for (let version = 0; version < 50; version++) await register(registry, "a", `version ${version}`);
  await register(registry, "b");
  const { value } = await events.next();
  expect(value).toMatchObject({ type: "upserted", view: { definition: { description: "version 49" } } });
  expect(brief([(await events.next()).value])).toEqual(["+b"]);
  await events.return?.();
});

test("a watcher that missed more removals than are remembered is told to drop its state", async () => {
  const log = new ChangeLog(1_000, 10);
  const problem = { source: "file:a.yaml", line: 1, column: 1, message: "no", lastGoodServing: false, note: false };
  const snapshot = Snapshot.empty.withProblems(new Map([["file:a.yaml", [problem]]]));
  const watch = (afterRevision: number): AsyncIterable<RegistryEvent> => {
    const signals = { signal: OPEN_END, stopped: OPEN_END };
    const options = { afterRevision, principal: ANONYMOUS, problems: true, ...signals, clock: createFakeClock() };
    return watchChanges({ log, snapshot }, options);
  };
  const before = log.append("problems", "file:a.yaml", false);
  const events = watch(before)[Symbol.asyncIterator]();
  expect(brief([(await events.next()).value])).toEqual(["synced"]);
  for (let n = 0; n < 10; n++) log.append("tool", `few${n}`, true);
  expect(brief([(await events.next()).value])).toEqual(["-few0"]);
  for (let n = 0; n < 30; n++) log.append("tool", `many${n}`, true);
  expect(brief([(await events.next()).value, (await events.next()).value])).toEqual(["reset", "!file:a.yaml:1"]);
  expect(brief([(await events.next()).value])).toEqual(["synced"]);
  expect(brief(await readEvents(watch(before), isSynced))).toEqual(["reset", "!file:a.yaml:1", "synced"]);
});

test("problems reach operators only", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "bad.yaml"), "bad\n");
  const { registry } = await startRegistry({ folder });
  expect(registry.list(NOBODY).problems).toEqual([]);
  expect(brief(await readEvents(registry.watch(0, NOBODY, OPEN_END), isSynced))).toEqual(["synced"]);
  const from = registry.list(ANONYMOUS).revision;
  expect(brief(await readEvents(registry.watch(0, ANONYMOUS, OPEN_END), isSynced))).toEqual([
    "!file:bad.yaml:2",
    "synced",
  ]);
  await rm(join(folder, "bad.yaml"));
  await until(registry, () => registry.list(ANONYMOUS).problems.length === 0);
  expect(brief(await readEvents(registry.watch(from, ANONYMOUS, OPEN_END), isSynced))).toEqual([
    "!file:bad.yaml:0",
    "synced",
  ]);
});

test("a changed availability is a change, and one that is as before is none", async () => {
  const { registry, adapter } = await startRegistry({ folder: await temporaryFolder() });
  const before = await register(registry, "a");
  const upstream = adapter.opened[0];
  upstream?.changed();
  expect(registry.list(ANONYMOUS).revision).toBe(before);
  const events = registry.watch(before, ANONYMOUS, OPEN_END)[Symbol.asyncIterator]();
  await events.next();
  const next = events.next();
  if (upstream !== undefined) upstream.state = { state: "unavailable", reason: "secret TOKEN is not set" };
  upstream?.changed();
  const availability = { state: "unavailable", reason: "secret TOKEN is not set" };
  expect((await next).value).toMatchObject({ type: "upserted", view: { availability } });
  expect(registry.get("a", ANONYMOUS).availability).toEqual(availability);
  expect(registry.list(ANONYMOUS).revision).toBe(before + 1);
  await events.return?.();
});

test("a watch without changes says every 30 s that it has missed nothing, and holds nothing once it ends", async () => {
  const clock = createFakeClock();
  const { registry } = await startWithClock(clock, await temporaryFolder());
  const idle = clock.pending;
  const stop = new AbortController();
  const events = registry.watch(registry.list(ANONYMOUS).revision, ANONYMOUS, stop.signal)[Symbol.asyncIterator]();
  await events.next();
  const mark = events.next();
  await clock.advance(30_000);
  expect((await mark).value).toMatchObject({ type: "synced", revision: registry.list(ANONYMOUS).revision });
  const last = events.next();
  expect(clock.pending).toBe(idle + 1);
  stop.abort(new GatewayError("CALL_CANCELLED", "done"));
  expect((await last).done).toBe(true);
  expect(clock.pending).toBe(idle);
});

test("a watch ends with GATEWAY_STOPPING when the registry is disposed", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  const events = registry.watch(0, ANONYMOUS, OPEN_END)[Symbol.asyncIterator]();
  await events.next();
  const waiting = events.next();
  await registry[Symbol.asyncDispose]();
  await expect(waiting).rejects.toMatchObject({ reason: "GATEWAY_STOPPING" });
});
