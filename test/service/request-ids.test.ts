import { expect, test } from "vitest";
import { RequestIds } from "../../src/service/request-ids.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { gatewayError } from "../wire/errors.ts";

const request = { principalId: "p", requestId: "r", digest: "d" };

/** Work that counts how often it was done. */
function counting(): { readonly work: () => Promise<number>; readonly done: () => number } {
  let done = 0;
  return { work: async () => ++done, done: () => done };
}

test("an answer is remembered for ten minutes", async () => {
  const clock = createFakeClock();
  const ids = new RequestIds<number>(clock);
  const { work } = counting();
  expect(await ids.answer(request, work)).toBe(1);
  await clock.advance(599_999);
  expect(await ids.answer(request, work)).toBe(1);
  await clock.advance(2);
  expect(await ids.answer(request, work)).toBe(2);
});

test("a request without an id is never remembered", async () => {
  const ids = new RequestIds<number>(createFakeClock());
  const { work } = counting();
  await ids.answer({ ...request, requestId: "" }, work);
  expect(await ids.answer({ ...request, requestId: "" }, work)).toBe(2);
});

test("a duplicate of a running request waits for its answer", async () => {
  const ids = new RequestIds<number>(createFakeClock());
  const { work, done } = counting();
  const go = Promise.withResolvers<void>();
  const first = ids.answer(request, () => go.promise.then(work));
  const second = ids.answer(request, work);
  go.resolve();
  expect(await Promise.all([first, second])).toEqual([1, 1]);
  expect(done()).toBe(1);
});

test("a failed request is forgotten, so that it can be tried again", async () => {
  const ids = new RequestIds<number>(createFakeClock());
  await expect(ids.answer(request, () => Promise.reject(new Error("disk")))).rejects.toThrow("disk");
  expect(await ids.answer(request, async () => 7)).toBe(7);
});

test("another request under the same id is refused", async () => {
  const ids = new RequestIds<number>(createFakeClock());
  await ids.answer(request, async () => 1);
  expect(gatewayError(() => ids.answer({ ...request, digest: "other" }, async () => 2)).reason).toBe(
    "REQUEST_ID_REUSED",
  );
});

test("at most 1,000 answers are remembered: the oldest goes first", async () => {
  const ids = new RequestIds<number>(createFakeClock());
  for (let i = 0; i < 1001; i++) await ids.answer({ ...request, requestId: `r${i}` }, async () => i);
  expect(await ids.answer({ ...request, requestId: "r1000" }, async () => -1)).toBe(1000);
  expect(await ids.answer({ ...request, requestId: "r0" }, async () => -1)).toBe(-1);
});
