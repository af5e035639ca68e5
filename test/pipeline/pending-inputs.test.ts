import { expect, test } from "vitest";
import { PendingInputs } from "../../src/pipeline/pending-inputs.ts";

const CALLER = { principal: "a", tool: "shop/buy", arguments: {} } as const;

function needed(state = "s", expiresInMs?: number) {
  return { requests: new Map(), state, ...(expiresInMs === undefined ? {} : { expiresInMs }) };
}

function keepOne(pending: PendingInputs, changes: { readonly principal?: string; readonly expiresInMs?: number } = {}) {
  const { principal = "a", expiresInMs } = changes;
  return pending.keep({ principal, tool: "shop/buy", arguments: { n: 1 }, needed: needed("s", expiresInMs) }, 0);
}

function outcome(run: () => unknown): string {
  try {
    run();
    return "ok";
  } catch (error) {
    return String(Reflect.get(Object(error), "reason"));
  }
}

test("a state is of use to the caller it was given to, for its tool, with its arguments or none", () => {
  const pending = new PendingInputs();
  const { handle, expiresInMs } = keepOne(pending);
  expect(expiresInMs).toBe(600_000);
  expect(handle).toMatch(/^[\w-]{32}$/);
  const resume = (changes: object) =>
    outcome(() => pending.resume(handle, { ...CALLER, ...changes }, 1).settle("again"));
  expect([
    resume({}),
    resume({ arguments: { n: 1 } }),
    resume({ arguments: { n: 2 } }),
    resume({ principal: "b" }),
    resume({ tool: "shop/sell" }),
  ]).toEqual(["ok", "ok", "REQUEST_INVALID", "CONTINUATION_NOT_FOUND", "CONTINUATION_NOT_FOUND"]);
  expect(outcome(() => pending.resume("constructor", CALLER, 1))).toBe("CONTINUATION_NOT_FOUND");
});

test("a state is answered once, and one answer at a time", () => {
  const pending = new PendingInputs();
  const { handle } = keepOne(pending);
  const first = pending.resume(handle, CALLER, 1);
  expect([first.state, first.arguments]).toEqual(["s", { n: 1 }]);
  expect(outcome(() => pending.resume(handle, CALLER, 1))).toBe("CONTINUATION_NOT_FOUND");
  first.settle("over");
  expect(outcome(() => pending.resume(handle, CALLER, 1))).toBe("CONTINUATION_NOT_FOUND");
  expect(pending.size).toBe(0);
});

test("a state ends with its time, which its upstream may make shorter", () => {
  const pending = new PendingInputs();
  const short = keepOne(pending, { expiresInMs: 1_000 });
  expect(short.expiresInMs).toBe(1_000);
  expect(outcome(() => pending.resume(short.handle, CALLER, 1_000))).toBe("CONTINUATION_NOT_FOUND");
  const long = keepOne(pending, { expiresInMs: 1e9 });
  expect(long.expiresInMs).toBe(600_000);
  pending.keep({ ...CALLER, needed: needed() }, 700_000);
  expect(pending.size).toBe(1);
});

test("a caller that asks without end loses its own states, and others keep theirs", () => {
  const pending = new PendingInputs();
  const mine = keepOne(pending, { principal: "b" });
  const first = keepOne(pending);
  for (let i = 0; i < 100; i++) keepOne(pending);
  expect(pending.size).toBe(101);
  expect(outcome(() => pending.resume(first.handle, CALLER, 1))).toBe("CONTINUATION_NOT_FOUND");
  expect(outcome(() => pending.resume(mine.handle, { ...CALLER, principal: "b" }, 1))).toBe("ok");
});

test("what is kept has a bound in number and in size", () => {
  const pending = new PendingInputs();
  for (let i = 0; i < 1_200; i++) keepOne(pending, { principal: `p${i % 20}` });
  expect(pending.size).toBe(1_000);
  const large = { ...CALLER, needed: needed("x".repeat(40 * 1024 * 1024)) };
  pending.keep(large, 0);
  const last = pending.keep(large, 0);
  expect(pending.size).toBe(1);
  expect(outcome(() => pending.resume(last.handle, CALLER, 1))).toBe("ok");
});
