import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { type Slot, type SlotRefusal, Slots, type SlotWait } from "../../src/core/slots.ts";
import { createFakeClock } from "./fake-clock.ts";

class Refused extends Error {
  readonly refusal: SlotRefusal;

  constructor(refusal: SlotRefusal) {
    super(refusal.why);
    this.refusal = refusal;
  }
}

function waitOf(signal = new AbortController().signal, maxWaitMs?: number): SlotWait {
  return { signal, refused: (refusal) => new Refused(refusal), ...(maxWaitMs === undefined ? {} : { maxWaitMs }) };
}

test("a free slot is given at once, without a wait for the event loop", () => {
  const slots = new Slots({ limit: 1, maxWaiting: 0 }, createFakeClock());
  const slot = slots.take(waitOf());
  expect(slot).not.toBeInstanceOf(Promise);
  expect(slots.held).toBe(1);
});

test("slots go to those that wait in the order they came, and tell how long each waited", async () => {
  const clock = createFakeClock();
  const slots = new Slots({ limit: 1, maxWaiting: 10 }, clock);
  let held = await slots.take(waitOf());
  const order: string[] = [];
  const waits: number[] = [];
  const enter = async (name: string): Promise<void> => {
    held = await slots.take(waitOf());
    order.push(name);
    waits.push(held.waitedMs);
  };
  const all = [enter("a"), enter("b"), enter("c")];
  for (const _ of all) {
    await clock.advance(10);
    held[Symbol.dispose]();
    await clock.advance(0);
  }
  await Promise.all(all);
  expect(order).toEqual(["a", "b", "c"]);
  expect(waits).toEqual([10, 20, 30]);
});

test("who waits is not overtaken by a newcomer when a slot is free again", async () => {
  const slots = new Slots({ limit: 1, maxWaiting: 10 }, createFakeClock());
  const first = await slots.take(waitOf());
  const second = slots.take(waitOf());
  first[Symbol.dispose]();
  expect(slots.take(waitOf())).toBeInstanceOf(Promise);
  expect(await second).toMatchObject({ waitedMs: 0 });
});

test("a line that is full refuses at once and says the place the newcomer would have had", async () => {
  const slots = new Slots({ limit: 1, maxWaiting: 1 }, createFakeClock());
  await slots.take(waitOf());
  void slots.take(waitOf());
  expect(() => slots.take(waitOf())).toThrow(
    expect.objectContaining({ refusal: { why: "full", position: 2, limits: { limit: 1, maxWaiting: 1 } } }),
  );
});

test("a wait ends after its time, with the place it had come to", async () => {
  const clock = createFakeClock();
  const slots = new Slots({ limit: 1, maxWaiting: 5 }, clock);
  await slots.take(waitOf());
  const ahead = Promise.resolve(slots.take(waitOf()));
  const late = Promise.resolve(slots.take(waitOf(undefined, 100)));
  const outcome = late.catch((error: unknown) => error);
  await clock.advance(100);
  expect(await outcome).toMatchObject({ refusal: { why: "timeout", position: 2 } });
  expect(slots.waiting).toBe(1);
  void ahead;
});

test("one that is cancelled leaves the line at once, and its place goes to the next", async () => {
  const slots = new Slots({ limit: 1, maxWaiting: 5 }, createFakeClock());
  const first = await slots.take(waitOf());
  const leaving = new AbortController();
  const left = Promise.resolve(slots.take(waitOf(leaving.signal)));
  const next = Promise.resolve(slots.take(waitOf()));
  leaving.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  expect(slots.waiting).toBe(1);
  first[Symbol.dispose]();
  await next;
  expect([slots.held, slots.waiting]).toEqual([1, 0]);
});

test("a slot given back twice counts once", async () => {
  const slots = new Slots({ limit: 2, maxWaiting: 0 }, createFakeClock());
  const [a, b] = [await slots.take(waitOf()), await slots.take(waitOf())];
  a[Symbol.dispose]();
  a[Symbol.dispose]();
  expect(slots.held).toBe(1);
  b[Symbol.dispose]();
  expect(slots.held).toBe(0);
});

test("a higher limit lets those that wait in, a lower one waits for slots to come back", async () => {
  const slots = new Slots({ limit: 1, maxWaiting: 5 }, createFakeClock());
  const held: Slot[] = [await slots.take(waitOf())];
  const second = slots.take(waitOf());
  slots.setLimits({ limit: 2, maxWaiting: 5 });
  held.push(await second);
  slots.setLimits({ limit: 1, maxWaiting: 5 });
  const third = slots.take(waitOf());
  held[0]?.[Symbol.dispose]();
  expect([slots.held, slots.waiting]).toEqual([1, 1]);
  held[1]?.[Symbol.dispose]();
  await third;
  expect([slots.held, slots.waiting]).toEqual([1, 0]);
});

test("a wait leaves no listener and no timer behind, however it ends", async () => {
  const clock = createFakeClock();
  const slots = new Slots({ limit: 1, maxWaiting: 5 }, clock);
  const { signal } = new AbortController();
  const first = await slots.take(waitOf(signal, 50));
  const given = slots.take(waitOf(signal, 50));
  first[Symbol.dispose]();
  await given;
  const timedOut = Promise.resolve(slots.take(waitOf(signal, 50))).catch(() => "refused");
  await clock.advance(50);
  expect(await timedOut).toBe("refused");
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
  expect(clock.pending).toBe(0);
});

test("a signal that has aborted before gets no slot", () => {
  const slots = new Slots({ limit: 1, maxWaiting: 5 }, createFakeClock());
  expect(() => slots.take(waitOf(AbortSignal.abort(new Error("gone"))))).toThrow("gone");
  expect(slots.held).toBe(0);
});
