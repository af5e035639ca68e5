import { expect, test } from "vitest";
import { declare, notes, ORDER_STATUS, problems } from "./declaration-fixture.ts";

const ORIGINS = new Map([
  ["defaults.timeout.connect", "gateway.yaml:3"],
  ["defaults.timeout.read", "gateway.yaml:4"],
  ["defaults.timeout.idle", "gateway.yaml:5"],
  ["defaults.timeout.total", "gateway.yaml:6"],
  ["defaults.result.max_length", "gateway.yaml:7"],
  ["limits.response_bytes", "gateway.yaml:8"],
]);

const GATEWAY = { connectMs: 1, readMs: 2, idleMs: 3, totalMs: 4_000, maxLength: 99 };

function timeouts(text: string, defaults = {}): readonly [connect: number, read: number, idle: number, total: number] {
  const { policy } = declare(ORDER_STATUS.replace(/result:\n(?: {2}.*\n)*/, "") + text, { defaults });
  return [policy.timeouts.connectMs, policy.timeouts.readMs, policy.timeouts.idleMs, policy.totalMs];
}

test("the declaration's limits stand before the gateway's, and those before the built-in ones [S2-57] [S2-58]", () => {
  expect(timeouts("")).toEqual([5_000, 30_000, 30_000, 60_000]);
  expect(timeouts("", GATEWAY)).toEqual([1, 2, 3, 4_000]);
  expect(timeouts("timeout: {connect: 3s, read: 10s, idle: 20s, total: 1m30s}\n", GATEWAY)).toEqual([
    3_000, 10_000, 20_000, 90_000,
  ]);
  expect(timeouts("timeout: {total: 2h}\n", { connectMs: 7 })).toEqual([7, 30_000, 30_000, 7_200_000]);
});

test("the limit between pieces follows a read limit of the declaration, not one of the gateway", () => {
  expect(timeouts("timeout: {read: 10s}\n")).toEqual([5_000, 10_000, 10_000, 60_000]);
  expect(timeouts("timeout: {read: 10s}\n", { idleMs: 3 })).toEqual([5_000, 10_000, 10_000, 60_000]);
  expect(timeouts("", { readMs: 10_000 })).toEqual([5_000, 10_000, 30_000, 60_000]);
});

test("output in pieces has more time", () => {
  expect(timeouts("delivery: incremental\n")).toEqual([5_000, 30_000, 300_000, 600_000]);
  expect(timeouts("delivery: incremental\ntimeout: {read: 10s}\n")).toEqual([5_000, 10_000, 10_000, 600_000]);
  expect(timeouts("delivery: incremental\n", GATEWAY)).toEqual([1, 2, 3, 4_000]);
});

test("a program may take to its first output what the whole call may take, unless somebody says otherwise [S2-43]", () => {
  const script = "name: s\ntype: script\ncommand: ls\n";
  const limits = (text: string, defaults = {}): object => declare(script + text, { defaults }).policy;
  expect(limits("")).toMatchObject({
    totalMs: 60_000,
    timeouts: { connectMs: 5_000, readMs: 60_000, idleMs: 60_000 },
  });
  expect(limits("timeout: {total: 2h}\n")).toMatchObject({ timeouts: { readMs: 7_200_000, idleMs: 7_200_000 } });
  expect(limits("timeout: {read: 3s}\n")).toMatchObject({ timeouts: { readMs: 3_000, idleMs: 3_000 } });
  expect(limits("", GATEWAY)).toMatchObject({ timeouts: { readMs: 2, idleMs: 3 } });
});

test("durations need their unit, and must be ones that can be waited [S2-59]", () => {
  expect(problems(`${ORDER_STATUS}timeout: {connect: 3, read: 30sec, idle: 0s, total: 25h}\n`)).toEqual([
    '23:11 `timeout.connect`: expected a duration with its unit, such as 500ms, 3s, 1m30s or 2h; got text "3": write 3s',
    '23:23 `timeout.read`: expected a duration with its unit, such as 500ms, 3s, 1m30s or 2h; got text "30sec"',
  ]);
  expect(problems(`${ORDER_STATUS}timeout: {idle: 0s, total: 25h}\n`)).toEqual([
    "23:11 `timeout.idle`: expected 1ms to 24h, got 0s",
    "23:21 `timeout.total`: expected 1ms to 24h, got 25h",
  ]);
  expect(problems(`${ORDER_STATUS}timeout: 3s\n`)).toEqual(['23:1 `timeout`: expected a mapping, got text "3s"']);
});

test("a limit that the whole call ends before is noted", () => {
  expect(notes(`${ORDER_STATUS}timeout: {read: 2m}\n`)).toEqual([
    "23:11 `timeout.read` is 2m, but the whole call ends after 1m: set `timeout.total`",
  ]);
});

test("fields of an answer do not go with output in pieces", () => {
  const why = "needs the whole answer, which `delivery: incremental` passes on in pieces: remove one of them";
  expect(problems(`${ORDER_STATUS}delivery: incremental\n`)).toEqual([
    `17:3 \`result.success_field\` ${why}`,
    `19:3 \`result.data_field\` ${why}`,
  ]);
});

test("result rules are checked at their lines", () => {
  const long = ORDER_STATUS.replace("  data_field: data\n", "  data_field: data\n  max_length: 1000001\n");
  expect(problems(long)).toEqual([expect.stringMatching(/^20:3 `max_length` of a conclusive tool is at most/)]);
  expect(problems(ORDER_STATUS.replace("  success_value: 0\n", ""))).toEqual([
    expect.stringMatching(/^17:3 `success_field` needs/),
  ]);
});

test("every effective value tells where it came from, down to the line", () => {
  const text = `${ORDER_STATUS}timeout: {read: 10s}\nlabels: {a.b: c}\n`;
  const { explained } = declare(text, {
    source: "file:sub/order_status.yaml",
    defaults: { connectMs: 4_000 },
    origins: ORIGINS,
  });
  const origins = Object.fromEntries(explained.map(({ key, value, origin }) => [key, `${value} <- ${origin}`]));
  expect(origins).toMatchObject({
    name: "order_status <- file:sub/order_status.yaml:1",
    type: "http <- file:sub/order_status.yaml:3",
    enabled: "true <- default",
    delivery: "conclusive <- default",
    "labels.a.b": "c <- file:sub/order_status.yaml:24",
    endpoint: "https://api.example.com/orders/{order_id}/status <- file:sub/order_status.yaml:4",
    "auth.secret_ref": "ORDER_API_TOKEN <- file:sub/order_status.yaml:22",
    "timeout.connect": "4s <- gateway.yaml:3",
    "timeout.read": "10s <- file:sub/order_status.yaml:23",
    "timeout.idle": "10s <- file:sub/order_status.yaml:23",
    "timeout.total": "1m <- default",
    "limits.response_bytes": "16777216 <- gateway.yaml:8",
  });
  expect(origins["input_schema"]).toMatch(/^\{"type":"object",.*\} <- file:sub\/order_status\.yaml:6$/);
  expect(explained.filter(({ value }) => /[\n\r]/.test(value))).toEqual([]);
});

test("the longest result comes from the declaration, the gateway or the built-in default", () => {
  const of = (text: string, defaults = {}): string | undefined =>
    declare(text, { defaults, origins: "maxLength" in defaults ? ORIGINS : new Map() }).explained.find(
      ({ key }) => key === "result.max_length",
    )?.origin;
  expect(of(ORDER_STATUS)).toBe("default");
  expect(of(ORDER_STATUS, { maxLength: 99 })).toBe("gateway.yaml:7");
  expect(
    of(ORDER_STATUS.replace("  data_field: data\n", "  data_field: data\n  max_length: 5\n"), { maxLength: 99 }),
  ).toBe("file:t.yaml:20");
});

test("a registration over the wire has one origin", () => {
  const origins = declare(ORDER_STATUS, { source: "api:order_status" }).explained.map(({ origin }) => origin);
  expect(new Set(origins)).toEqual(new Set(["api", "default"]));
});
