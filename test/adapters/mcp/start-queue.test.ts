import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { createIdleCores } from "../../../src/adapters/mcp/idle-cores.ts";
import { StartQueue, type StartTurn } from "../../../src/adapters/mcp/start-queue.ts";
import { createFakeClock } from "../../core/fake-clock.ts";

/** A line whose machine has so many idle cores, with the starts that have begun, in order. */
function line(atOnce: number, idleCores = 0) {
  const clock = createFakeClock();
  const machine = { idleCores };
  const queue = new StartQueue({ atOnce, idleCores: () => machine.idleCores });
  const begun: number[] = [];
  const turns: StartTurn[] = [];
  const enter = (count: number): void => {
    for (let i = 0; i < count; i++) {
      const turn = queue.enter(clock);
      const number = turns.push(turn) - 1;
      void turn.mine.then(() => begun.push(number));
    }
  };
  const end = async (number: number): Promise<void> => {
    turns[number]?.[Symbol.dispose]();
    await setImmediate();
  };
  return { clock, machine, begun, enter, end, turns };
}

test("no more starts go on than may, and each that ends lets in the next, in order", async () => {
  const { begun, enter, end, clock } = line(2);
  enter(4);
  await setImmediate();
  expect(begun).toEqual([0, 1]);
  await end(1);
  expect(begun).toEqual([0, 1, 2]);
  await end(0);
  await end(2);
  expect(begun).toEqual([0, 1, 2, 3]);
  await end(3);
  expect(clock.pending).toBe(0);
});

test("a start that takes longer makes room for the next, until five such for each place are slow, for 10 s", async () => {
  const { begun, enter, clock } = line(1);
  enter(8);
  await clock.advance(199);
  expect(begun).toEqual([0]);
  await clock.advance(1);
  expect(begun).toEqual([0, 1]);
  await clock.advance(1_000);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  await clock.advance(8_999);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  await clock.advance(1);
  expect(begun).toEqual([0, 1, 2, 3, 4, 5]);
});

test.for([
  ["busy", 0, 900],
  ["idle", 2, 400],
] as const)(
  "of 200 servers no sound one waits a second for the 67 that hang, on a machine that is %s",
  async ([, idleCores, limitMs]) => {
    const { begun, enter, end, clock } = line(16, idleCores);
    enter(200);
    const sound = (): number[] => begun.filter((number) => number % 3 !== 0);
    // What is sound is up at once, so that all that have a place in the end hang.
    for (let done = 0; sound().length < 133; ) {
      const now = sound();
      for (const number of now.slice(done)) await end(number);
      if (now.length === done) await clock.advance(50);
      done = now.length;
    }
    expect(clock.monotonicMs()).toBeLessThanOrEqual(limitMs);
  },
);

test("what has its place since the last look alone keeps it where the machine is idle", async () => {
  const { begun, enter, end, clock } = line(2, 2);
  enter(5);
  await clock.advance(25);
  await end(0);
  expect(begun).toEqual([0, 1, 2]);
  await clock.advance(25);
  expect(begun).toEqual([0, 1, 2, 3]);
});

test("one that somebody waits for goes first, those who hurry in their order, and one that leaves is passed over", async () => {
  const { begun, enter, end, turns } = line(1);
  enter(6);
  turns[4]?.hurry();
  turns[5]?.hurry();
  turns[4]?.hurry();
  turns[0]?.hurry();
  await end(1);
  for (const number of [0, 4, 5, 2]) await end(number);
  expect(begun).toEqual([0, 4, 5, 2, 3]);
  await end(3);
  await end(3);
});

test("the cores that have nothing to do are told from one asking to the next", () => {
  const idleCores = createIdleCores();
  expect(idleCores()).toBe(0);
  const beginMs = performance.now();
  while (performance.now() - beginMs < 50);
  const idle = idleCores();
  expect(idle).toBeGreaterThanOrEqual(0);
  expect(idle).toBeLessThan(1_000);
});
