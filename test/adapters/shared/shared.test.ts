import { expect, test } from "vitest";
import { cancellable } from "../../../src/adapters/shared/cancellable.ts";
import { endedCall } from "../../../src/adapters/shared/ended-call.ts";
import { LineSplitter } from "../../../src/adapters/shared/line-splitter.ts";
import { textPieces } from "../../../src/adapters/shared/text-pieces.ts";
import { Watchdog } from "../../../src/adapters/shared/watchdog.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { createFakeClock } from "../../core/fake-clock.ts";

const limit = { maxLength: 5, exceeded: () => new GatewayError("RESULT_TOO_LARGE", "too long") };

test("text is cut into lines whatever its pieces are", () => {
  const lines = new LineSplitter("lf", limit);
  expect(lines.push("a\nb")).toEqual(["a"]);
  expect(lines.push("")).toEqual([]);
  expect(lines.push("c\r\n\n")).toEqual(["bc\r", ""]);
  expect(lines.push("rest")).toEqual([]);
  expect(lines.end()).toBe("rest");
  expect(lines.end()).toBeUndefined();
});

test("a line over the limit is refused, finished or not", () => {
  expect(() => new LineSplitter("lf", limit).push("123456")).toThrow("too long");
  expect(() => new LineSplitter("lf", limit).push("123456\n")).toThrow("too long");
  const lines = new LineSplitter("any", limit);
  expect(lines.push("12345")).toEqual([]);
  expect(() => lines.push("6\r")).toThrow("too long");
});

test("pieces of a text fit a message and hold whole characters", () => {
  expect(textPieces("short")).toEqual(["short"]);
  for (const text of ["😀".repeat(40_000), `a${"😀".repeat(40_000)}`, "订".repeat(50_000)]) {
    const pieces = textPieces(text);
    expect(pieces.join("")).toBe(text);
    for (const piece of pieces) {
      expect(piece.isWellFormed()).toBe(true);
      expect(Buffer.byteLength(piece)).toBeLessThanOrEqual(64 * 1024);
    }
  }
});

test("a watchdog watches the limit set last, with one timer", async () => {
  const clock = createFakeClock();
  const spent: string[] = [];
  const watchdog = new Watchdog<"a" | "b">(clock, (name) => spent.push(name));
  watchdog.watch("a", 100);
  await clock.advance(60);
  watchdog.watch("b", 100);
  expect(clock.pending).toBe(1);
  await clock.advance(99);
  expect(spent).toEqual([]);
  await clock.advance(1);
  expect(spent).toEqual(["b"]);
  expect(clock.pending).toBe(0);
});

test("a sooner limit counts at its time, and none while the watchdog rests or when it is disposed", async () => {
  const clock = createFakeClock();
  const spent: string[] = [];
  const watchdog = new Watchdog<"long" | "short">(clock, (name) => spent.push(name));
  watchdog.watch("long", 1_000);
  watchdog.watch("short", 10);
  await clock.advance(10);
  expect(spent).toEqual(["short"]);
  watchdog.watch("long", 1_000);
  watchdog.rest();
  await clock.advance(2_000);
  watchdog.watch("short", 10);
  watchdog[Symbol.dispose]();
  watchdog[Symbol.dispose]();
  await clock.advance(2_000);
  expect(spent).toEqual(["short"]);
  expect(clock.pending).toBe(0);
});

test("return() cancels what a generator waits for", async () => {
  const waiting = Promise.withResolvers<never>();
  async function* events(): AsyncGenerator<number, void, undefined> {
    yield 1;
    yield await waiting.promise;
  }
  const iterator = cancellable(events(), () => waiting.reject(new Error("cancelled")))[Symbol.asyncIterator]();
  expect(await iterator.next()).toEqual({ done: false, value: 1 });
  const next = iterator.next();
  const failed = expect(next).rejects.toThrow("cancelled");
  expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
  await failed;
});

test("the reason of an ended call says what may have happened", () => {
  const reason = new GatewayError("CALL_DEADLINE_EXCEEDED", "took longer than 1 s", {
    modelMessage: "too slow",
    retryAfterMs: 5,
  });
  expect(endedCall(reason, "none")).toBe(reason);
  expect(endedCall(reason, "unknown")).toMatchObject({
    reason: "CALL_DEADLINE_EXCEEDED",
    message: "took longer than 1 s",
    modelMessage: "too slow",
    effect: "unknown",
    retryable: false,
    retryAfterMs: 5,
    cause: reason,
  });
  expect(endedCall(new Error("x"), "unknown")).toMatchObject({ reason: "INTERNAL", effect: "unknown" });
});
