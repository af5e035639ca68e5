import { expect, onTestFinished, test } from "vitest";
import { ModelTurn, type TurnPlace } from "../../src/shaping/model-turn.ts";
import { ModelTurns } from "../../src/shaping/model-turns.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { createRandom } from "../core/random.ts";

const never = new AbortController().signal;

function makeTurn() {
  const clock = createFakeClock();
  onTestFinished(() => expect(clock.pending).toBe(0));
  return { clock, turn: new ModelTurn(clock) };
}

/** What a place is given of what it asks for, and takes. */
async function given(place: TurnPlace, part: number): Promise<number> {
  await place.claim(part, never);
  const { room } = place;
  place.take(room);
  place[Symbol.dispose]();
  return room;
}

test("results that wait together are shortened beginning with the largest, whichever comes first", async () => {
  for (const needs of [
    [0.2, 0.5, 0.5],
    [0.5, 0.2, 0.5],
    [0.5, 0.5, 0.2],
  ]) {
    const { turn } = makeTurn();
    const places = needs.map(() => turn.open());
    const parts = await Promise.all(places.map((place, i) => given(place, needs[i] ?? 0)));
    for (const [i, part] of parts.entries()) expect(part).toBeCloseTo(needs[i] === 0.2 ? 0.2 : 0.4, 6);
  }
});

test("what needs no more than its equal part is given at once, while others still run", async () => {
  const { turn } = makeTurn();
  const [small] = [turn.open(), turn.open(), turn.open()];
  expect(await given(small, 0.3)).toBeCloseTo(0.3, 6);
});

test("one that needs more waits for the others for a moment, and leaves them their part", async () => {
  const { clock, turn } = makeTurn();
  const [large, slow] = [turn.open(), turn.open()];
  const part = given(large, 0.9);
  await clock.advance(199);
  expect(await Promise.race([part, Promise.resolve("waits")])).toBe("waits");
  await clock.advance(1);
  expect(await part).toBeCloseTo(0.5, 6);
  expect(await given(slow, 0.9)).toBeCloseTo(0.5, 6);
});

test("one that waits has the rest as soon as the others have ended, and at once when its call is cancelled", async () => {
  const { turn } = makeTurn();
  const [large, other] = [turn.open(), turn.open()];
  const part = given(large, 0.9);
  other[Symbol.dispose]();
  expect(await part).toBeCloseTo(0.9, 6);

  const { turn: second } = makeTurn();
  const [cancelled] = [second.open(), second.open()];
  const caller = new AbortController();
  const claimed = cancelled.claim(0.9, caller.signal);
  caller.abort();
  await claimed;
  expect(cancelled.room).toBeCloseTo(0.5, 6);
});

test("what was given cannot be taken back: later calls have what is left, however little", async () => {
  const { turn } = makeTurn();
  expect(await given(turn.open(), 0.5)).toBeCloseTo(0.5, 6);
  expect(await given(turn.open(), 0.4)).toBeCloseTo(0.4, 6);
  expect(await given(turn.open(), 0.5)).toBeCloseTo(0.1, 6);
  expect(await given(turn.open(), 0.5)).toBeCloseTo(0, 6);
});

test("a stream has its equal part, and of what it took already nothing is given twice", async () => {
  const { turn } = makeTurn();
  const stream = turn.open();
  stream.take(0.45);
  const [a, b] = [turn.open(), turn.open()];
  expect(stream.room).toBe(0);
  const parts = await Promise.all([given(a, 0.5), given(b, 0.5), stream.claim(0, never)]);
  expect((parts[0] ?? 0) + (parts[1] ?? 0)).toBeCloseTo(0.55, 6);
  stream[Symbol.dispose]();
});

test("whatever comes in whatever order, a turn gives no more than it has, and a smaller need never less than a larger one is cut to", async () => {
  const random = createRandom(7);
  for (let round = 0; round < 200; round++) {
    const { clock, turn } = makeTurn();
    const needs = Array.from({ length: 1 + Math.floor(random() * 8) }, () => random() * 0.5);
    const places = needs.map(() => turn.open());
    const streamed = needs.map(() => 0);
    for (const [i, place] of places.entries()) {
      if (random() > 0.3) continue;
      streamed[i] = Math.min(place.room, random() * 0.2);
      place.take(streamed[i] ?? 0);
    }
    const pending = places.map((place, i) => given(place, needs[i] ?? 0));
    await clock.advance(200);
    const parts = await Promise.all(pending);
    const total = [...parts, ...streamed].reduce((sum, part) => sum + part, 0);
    expect(total).toBeLessThanOrEqual(1 + 1e-6);
    const cut = parts.flatMap((part, i) => (part < (needs[i] ?? 0) - 1e-6 ? [part + (streamed[i] ?? 0)] : []));
    for (const [i, part] of parts.entries()) {
      if (streamed[i] === 0 && cut.length > 0 && part >= (needs[i] ?? 0) - 1e-6) {
        expect(part).toBeLessThanOrEqual(Math.max(...cut) + 1e-6);
      }
    }
  }
});

function facts(principal: string, turnId: string | undefined, sessionId?: string) {
  return { principal: { id: principal, roles: [] }, turnId, sessionId };
}

test("a turn is one principal's and one session's", () => {
  const turns = new ModelTurns(createFakeClock());
  const turn = turns.of(facts("alice", "1"));
  expect(turns.of(facts("alice", "1"))).toBe(turn);
  expect(turns.of(facts("alice", "2"))).not.toBe(turn);
  expect(turns.of(facts("bob", "1"))).not.toBe(turn);
  expect(turns.of(facts("alice", "1", "s"))).not.toBe(turn);
  expect(turns.of(facts("alice", undefined))).toBeUndefined();
});

test("a turn is forgotten ten minutes after its last call, and not while one runs", async () => {
  const clock = createFakeClock();
  const turns = new ModelTurns(clock);
  const idle = turns.of(facts("alice", "idle"));
  const busy = turns.of(facts("alice", "busy"));
  const place = busy?.open();
  await clock.advance(9 * 60_000);
  expect(turns.of(facts("alice", "idle"))).toBe(idle);
  await clock.advance(10 * 60_000);
  expect(turns.of(facts("alice", "busy"))).toBe(busy);
  expect(turns.of(facts("alice", "idle"))).not.toBe(idle);
  place?.[Symbol.dispose]();
  await clock.advance(10 * 60_000);
  expect(turns.of(facts("alice", "busy"))).not.toBe(busy);
  expect(turns.size).toBe(1);
});

test("many turns of one principal cost it its own oldest ones, and of many principals the oldest of all", () => {
  const turns = new ModelTurns(createFakeClock());
  const bobs = turns.of(facts("bob", "1"));
  const first = turns.of(facts("alice", "0"));
  for (let i = 1; i <= 5_000; i++) turns.of(facts("alice", String(i)));
  expect(turns.size).toBe(5_001);
  expect(turns.of(facts("bob", "1"))).toBe(bobs);
  expect(turns.of(facts("alice", "0"))).not.toBe(first);
  for (let i = 0; i < 20_000; i++) turns.of(facts(`caller ${i}`, "1"));
  expect(turns.size).toBe(20_000);
});
