import { expect, test } from "vitest";
import type { RegistrationStore, StoredRegistration } from "../../src/core/store.ts";
import { sampleRegistration } from "./registration-sample.ts";

/** A store to examine. */
export interface StoreFixture {
  readonly store: RegistrationStore;
  /** The same store as the next run of the gateway finds it. */
  readonly reopen: () => Promise<RegistrationStore>;
}

async function loadAll(store: RegistrationStore): Promise<readonly StoredRegistration[]> {
  const kept = await store.load((entry, problem) => expect.fail(`${entry}: ${problem}`));
  return kept.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** What every store of registrations does. To be called at the top of a test file. */
export function storeConformance(makeStore: () => Promise<StoreFixture>): void {
  test("a new store keeps nothing and can be written", async () => {
    const { store } = await makeStore();
    await store.check();
    expect(await loadAll(store)).toEqual([]);
  });

  test("what was put comes back whole, in this run and in the next", async () => {
    const { store, reopen } = await makeStore();
    const kept = [
      sampleRegistration("a"),
      sampleRegistration("b", { format: "json", text: "{}", leaseExpireTimeMs: undefined }),
      sampleRegistration("empty", { text: "" }),
      sampleRegistration("large", { text: "x".repeat(1024 * 1024) }),
    ];
    for (const registration of kept) await store.put(registration);
    expect(await loadAll(store)).toEqual(kept);
    expect(await loadAll(await reopen())).toEqual(kept);
  });

  test("a later put replaces the earlier one, and leaves others alone", async () => {
    const { store, reopen } = await makeStore();
    await store.put(sampleRegistration("a"));
    await store.put(sampleRegistration("b"));
    const second = sampleRegistration("a", { text: "short", updateTimeMs: 3 });
    await store.put(second);
    expect(await loadAll(await reopen())).toEqual([second, sampleRegistration("b")]);
  });

  test("what was removed is gone, and removing it again is fine", async () => {
    const { store, reopen } = await makeStore();
    await store.put(sampleRegistration("a"));
    await store.put(sampleRegistration("b"));
    await store.remove("a");
    await store.remove("a");
    await store.remove("never");
    expect(await loadAll(await reopen())).toEqual([sampleRegistration("b")]);
  });

  test("every name has a place of its own, also where only case or odd characters differ", async () => {
    const { store, reopen } = await makeStore();
    const long = "n".repeat(129);
    const names = [
      "a",
      "A",
      ".",
      "..",
      "a.b",
      "a-b",
      "a_b",
      "a/b",
      "a%2fb",
      "con",
      "__proto__",
      "名",
      long,
      `${long}x`,
    ];
    const kept = names.toSorted().map((name) => sampleRegistration(name));
    await Promise.all(kept.map((registration) => store.put(registration)));
    expect(await loadAll(await reopen())).toEqual(kept);
    await store.remove("A");
    expect(await loadAll(await reopen())).toEqual(kept.filter((registration) => registration.name !== "A"));
  });

  test("many puts at once are all kept", async () => {
    const { store, reopen } = await makeStore();
    const kept = Array.from({ length: 200 }, (_, n) => sampleRegistration(`t${String(n).padStart(3, "0")}`));
    await Promise.all(kept.map((registration) => store.put(registration)));
    expect(await loadAll(await reopen())).toEqual(kept);
  });

  test("disposing waits for what is being written", async () => {
    const { store, reopen } = await makeStore();
    const putting = store.put(sampleRegistration("a"));
    await store[Symbol.asyncDispose]();
    expect(await loadAll(await reopen())).toEqual([sampleRegistration("a")]);
    await putting;
  });
}
