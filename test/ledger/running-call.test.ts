import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import { type CallReader, RunningCall } from "../../src/ledger/running-call.ts";
import { TEXTS, textLog } from "./fixtures.ts";

const gone = new GatewayError("CALL_CANCELLED", "gone");

interface Work {
  readonly call: RunningCall<string>;
  /** Events the work has given. */
  given(): number;
  /** Reason the work was ended with. */
  ended(): unknown;
}

/** A call that gives so many texts of 1,000 characters, and then "last", or waits at its end. */
function start(count: number, options: { readonly waits?: boolean; readonly heldBytes?: number } = {}): Work {
  let given = 0;
  let reason: unknown;
  const call = new RunningCall<string>({
    async *run(signal) {
      try {
        for (; given < count; ) yield `${++given} `.padEnd(1_000, ".");
        if (options.waits === true) await aborted(signal);
        signal.throwIfAborted();
        yield "last";
      } finally {
        if (signal.aborted) reason = signal.reason;
      }
    },
    log: textLog({ memoryBytes: 50_000, diskBytes: 1_000_000 }),
    bytesOf: TEXTS.bytesOf,
    isLast: (text) => text === "last",
    heldBytes: options.heldBytes ?? 200_000,
  });
  return { call, given: () => given, ended: () => reason };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

async function read(reader: CallReader<string>, count = Number.POSITIVE_INFINITY): Promise<number[]> {
  const sequences: number[] = [];
  if (count === 0) return sequences;
  for await (const { sequence } of reader) if (sequences.push(sequence) >= count) break;
  return sequences;
}

/** Long enough for all that can happen to happen. */
async function settle(): Promise<void> {
  for (let i = 0; i < 500; i++) await new Promise((resolve) => setImmediate(resolve));
}

const upTo = (first: number, last: number): number[] => Array.from({ length: last - first + 1 }, (_, i) => first + i);

test("every reader gets every event, from where it begins, once and in order", async () => {
  const { call, given } = start(300);
  const readers = [call.attach(0), call.attach(0), call.attach(0)].map((reader) => read(reader));
  for (const sequences of await Promise.all(readers)) expect(sequences).toEqual(upTo(1, 301));
  expect(given()).toBe(300);
  expect(await read(call.attach(290))).toEqual(upTo(291, 301));
});

test("the work waits for its quickest reader, and a slow one loses nothing", async () => {
  const { call, given } = start(300);
  const slow = call.attach(0);
  const quick = call.attach(0);
  await settle();
  expect(given()).toBeLessThan(70);
  expect(await read(quick, 100)).toEqual(upTo(1, 100));
  await settle();
  expect(given()).toBeGreaterThanOrEqual(100);
  expect(given()).toBeLessThan(170);
  expect(await read(slow, 50)).toEqual(upTo(1, 50));
});

test("while nobody reads and somebody holds it, the work goes on until so much has piled up", async () => {
  const { call, given } = start(1_000);
  const reader = call.attach(0);
  expect(await read(reader, 10)).toEqual(upTo(1, 10));
  call.hold();
  reader.leave(gone);
  await settle();
  expect(given()).toBeGreaterThanOrEqual(200);
  expect(given()).toBeLessThan(220);
  expect(await read(call.attach(10), 50)).toEqual(upTo(11, 60));
});

test("a reader that leaves while others read ends with its reason, and the work goes on", async () => {
  const { call, ended } = start(10, { waits: true });
  const [first, second] = [call.attach(0), call.attach(0)];
  const leaving = read(first);
  const staying = read(second);
  await settle();
  first.leave(gone);
  await expect(leaving).rejects.toBe(gone);
  expect(ended()).toBeUndefined();
  second.leave(new GatewayError("CALL_DEADLINE_EXCEEDED", "late"));
  await expect(staying).rejects.toMatchObject({ reason: "CALL_DEADLINE_EXCEEDED" });
  expect(ended()).toMatchObject({ reason: "CALL_DEADLINE_EXCEEDED" });
});

test("the last reader that leaves ends the work and hears what became of it", async () => {
  const failure = new GatewayError("UPSTREAM_ANSWER_LOST", "lost", { effect: "unknown" });
  const call = new RunningCall<string>({
    async *run(signal) {
      await aborted(signal);
      yield "before its end";
      throw failure;
    },
    log: textLog({ memoryBytes: 1_000, diskBytes: 1_000 }),
    bytesOf: TEXTS.bytesOf,
    isLast: () => false,
    heldBytes: 100,
  });
  const reader = call.attach(0);
  const reading = read(reader);
  await settle();
  reader.leave(gone);
  reader.leave(gone);
  await expect(reading).rejects.toBe(failure);
  await call.done;
  await expect(read(call.attach(0))).rejects.toBe(failure);
});

test("a call that is held ends when it is let go and nobody reads, and not while somebody does", async () => {
  const { call, ended } = start(3, { waits: true });
  const reader = call.attach(0);
  const hold = call.hold();
  reader.leave(gone);
  await settle();
  expect(ended()).toBeUndefined();
  const back = call.attach(0);
  hold.letGo(gone);
  hold.letGo(gone);
  await settle();
  expect(ended()).toBeUndefined();
  back.leave(gone);
  await call.done;
  expect(ended()).toBe(gone);
});

test("a call whose readers never read ends with them", async () => {
  const { call, ended } = start(1_000);
  const readers = [call.attach(0), call.attach(0)];
  await settle();
  for (const reader of readers) reader.leave(gone);
  await call.done;
  expect(ended()).toBe(gone);
});

test("what is noted from outside is numbered like all else, and of no use after the end", async () => {
  const { call } = start(2, { waits: true });
  const reader = call.attach(0);
  expect(await read(reader, 2)).toEqual([1, 2]);
  call.note("alive");
  const events = call.attach(2)[Symbol.asyncIterator]();
  expect((await events.next()).value).toEqual({ sequence: 3, event: "alive" });
  call.abort(gone);
  await call.done;
  call.note("too late");
  await expect(read(call.attach(3))).rejects.toBe(gone);
});

test("an event that is no longer kept is an error that says so", async () => {
  const call = new RunningCall<string>({
    async *run() {
      for (let i = 0; i < 500; i++) yield "x".repeat(1_000);
    },
    log: textLog({ memoryBytes: 10_000, diskBytes: 50_000 }),
    bytesOf: TEXTS.bytesOf,
    isLast: () => false,
    heldBytes: 10_000,
  });
  await read(call.attach(0));
  await expect(read(call.attach(0))).rejects.toMatchObject({ reason: "RESUME_EXPIRED" });
  expect(await read(call.attach(call.first - 1))).toEqual(upTo(call.first, 500));
});

test("work that fails in a way of its own is a fault of the gateway", async () => {
  const call = new RunningCall<string>({
    async *run() {
      throw new TypeError("oops");
    },
    log: textLog({ memoryBytes: 1_000, diskBytes: 1_000 }),
    bytesOf: TEXTS.bytesOf,
    isLast: () => false,
    heldBytes: 100,
  });
  await expect(read(call.attach(0))).rejects.toMatchObject({ reason: "INTERNAL" });
});
