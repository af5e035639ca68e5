import { expect, test } from "vitest";
import { ChangeLog, type ChangeRecord } from "../../src/registry/change-log.ts";

function readAll(log: ChangeLog, after: number): ChangeRecord[] {
  const records: ChangeRecord[] = [];
  for (let next = log.after(after); next !== undefined; next = log.after(next.revision)) records.push(next);
  return records;
}

test("a reader gets each key once, with its last change, in order of revision", () => {
  const log = new ChangeLog(100);
  for (const key of ["a", "b", "a", "c", "b"]) log.append("tool", key, false);
  expect(readAll(log, 100).map(({ key, revision }) => [key, revision])).toEqual([
    ["a", 103],
    ["c", 104],
    ["b", 105],
  ]);
  expect(readAll(log, 103).map(({ key }) => key)).toEqual(["c", "b"]);
  expect(log.head).toBe(105);
});

test("a tool and a source of the same name are two keys", () => {
  const log = new ChangeLog(0);
  log.append("tool", "a", false);
  log.append("problems", "a", false);
  expect(readAll(log, 0)).toHaveLength(2);
});

test("changes of what exists are never forgotten, however many there are", () => {
  const log = new ChangeLog(0, 10);
  for (let n = 0; n < 10_000; n++) log.append("tool", `t${n % 7}`, false);
  expect(log.floor).toBe(0);
  expect(readAll(log, 0).map(({ key }) => key)).toEqual(["t4", "t5", "t6", "t0", "t1", "t2", "t3"]);
});

test("only so many removals are remembered, the last ones", () => {
  const log = new ChangeLog(0, 10);
  for (let n = 0; n < 1_000; n++) {
    log.append("tool", `t${n}`, false);
    log.append("tool", `t${n}`, true);
  }
  log.append("tool", "stays", false);
  const records = readAll(log, 0);
  expect(records.at(-1)?.key).toBe("stays");
  expect(records.length).toBeLessThanOrEqual(21);
  expect(log.covers(log.floor)).toBe(true);
  expect(log.covers(log.floor - 1)).toBe(false);
  expect(log.covers(log.head + 1)).toBe(false);
  expect(records[0]?.revision).toBeGreaterThan(log.floor);
});

test("a key that comes back is no removal any more", () => {
  const log = new ChangeLog(0, 2);
  for (let n = 0; n < 100; n++) {
    log.append("tool", "a", true);
    log.append("tool", "a", false);
  }
  expect(log.floor).toBe(0);
  expect(readAll(log, 0)).toMatchObject([{ key: "a", gone: false, revision: 200 }]);
});

test("who waits is woken once, and not after it gave up", () => {
  const log = new ChangeLog(0);
  const woken: string[] = [];
  log.onWake(() => woken.push("a"));
  log.onWake(() => woken.push("b"))[Symbol.dispose]();
  log.wake();
  log.wake();
  expect(woken).toEqual(["a"]);
});
