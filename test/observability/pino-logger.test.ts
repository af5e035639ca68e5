import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import type { Logger } from "../../src/core/logger.ts";
import type { Redactor } from "../../src/core/secrets.ts";
import { createPinoLogger } from "../../src/observability/pino-logger.ts";

const SECRET = "hunter22";

const redactor: Redactor = {
  text: (value) => value.replaceAll(SECRET, "***"),
  stream: () => ({ push: (piece) => piece, end: () => "" }),
};

type Level = "debug" | "info" | "warn" | "error" | "silent";

function record(use: (logger: Logger) => void, level: Level = "debug"): Record<string, unknown>[] {
  let output = "";
  const destination = {
    write(line: string) {
      output += line;
    },
  };
  use(createPinoLogger({ level, destination, redactor }));
  if (output !== "") expect(output.endsWith("\n")).toBe(true);
  const lines = output.split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

test("each message is a line of JSON with level, time, fields and message", () => {
  const [line] = record((logger) => logger.info("tool-call-end", { tool: "订单", ms: 1.5, ok: true, none: undefined }));
  expect(line).toEqual({
    level: "info",
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
    tool: "订单",
    ms: 1.5,
    ok: true,
    message: "tool-call-end",
  });
});

test("only lines of the level and above are written", () => {
  const all = (logger: Logger): void => {
    for (const level of ["debug", "info", "warn", "error"] as const) logger[level](level);
  };
  expect(record(all, "debug").map((line) => line["level"])).toEqual(["debug", "info", "warn", "error"]);
  expect(record(all, "warn").map((line) => line["level"])).toEqual(["warn", "error"]);
  expect(record(all, "silent")).toEqual([]);
});

test("a child adds its fields once, and the line's own come first", () => {
  let raw = "";
  const destination = {
    write(line: string) {
      raw = line;
    },
  };
  const logger = createPinoLogger({ level: "info", destination, redactor });
  logger.child({ callId: "1", tool: "a" }).child({ turn: 2 }).info("m", { tool: "b" });
  expect(JSON.parse(raw)).toMatchObject({ callId: "1", turn: 2, tool: "b" });
  expect(raw.match(/"tool"/g)).toHaveLength(1);
});

test("a field with the name of a line's own key does not hide it", () => {
  const [line] = record((logger) => logger.warn("real", { message: "other", level: 7, time: "never" }));
  expect(line).toMatchObject({ message: "real", level: "warn", message_: "other", level_: 7, time_: "never" });
});

test("secrets are masked in messages, fields, names, lists and errors [K-D01, K-D03]", () => {
  const cause = Object.assign(new Error(`connect ${SECRET}`), { code: "ECONNREFUSED" });
  const error = new GatewayError("UPSTREAM_UNREACHABLE", `no connection with ${SECRET}`, {
    cause,
    metadata: { url: SECRET },
  });
  const lines = record((logger) =>
    logger
      .child({ header: `Bearer ${SECRET}` })
      .error(`failed ${SECRET}`, { error, list: [SECRET, { [SECRET]: SECRET }], n: 1 }),
  );
  expect(JSON.stringify(lines)).not.toContain(SECRET);
  expect(lines[0]).toMatchObject({
    header: "Bearer ***",
    message: "failed ***",
    list: ["***", { "***": "***" }],
    error: {
      type: "GatewayError",
      reason: "UPSTREAM_UNREACHABLE",
      effect: "none",
      message: "no connection with ***",
      metadata: { url: "***" },
      stack: expect.stringContaining("pino-logger.test.ts") as string,
      cause: { type: "Error", code: "ECONNREFUSED", message: "connect ***" },
    },
  });
});

test("a chain of causes ends, also where it leads back to itself", () => {
  const loop = new Error("loop");
  loop.cause = loop;
  const [line] = record((logger) => logger.error("x", { error: loop }));
  let depth = 0;
  for (
    let at: unknown = line?.["error"];
    typeof at === "object" && at !== null;
    at = (at as { cause?: unknown }).cause
  ) {
    depth++;
  }
  expect(depth).toBe(5);
});

test("whatever stands in the fields, the line is valid JSON and of bounded size", () => {
  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = cyclic;
  const odd = {
    cyclic,
    big: 2n ** 64n,
    nan: Number.NaN,
    date: new Date(0),
    noDate: new Date(Number.NaN),
    bytes: new Uint8Array(5),
    symbol: Symbol("s"),
    call: () => 1,
    lone: "a\ud83d",
    long: "x".repeat(1_000_000),
    tooLong: "x".repeat(1_000_001),
    list: Array.from({ length: 10_000 }, () => "y".repeat(10)),
    cause: new Error("outer", { cause: { a: "plain", error: new Error("inner") } }),
    ["__proto__x"]: 1,
    quote: '"\n\u0000',
  };
  const lines = record((logger) => logger.info("odd", odd));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({
    big: "18446744073709551616",
    nan: "NaN",
    date: "1970-01-01T00:00:00.000Z",
    noDate: "invalid date",
    bytes: "5 bytes",
    tooLong: "1000001 characters",
    lone: "a\ufffd",
    quote: '"\n\u0000',
    cause: { message: "outer", cause: { a: "plain" } },
  });
  expect(JSON.stringify(lines).length).toBeLessThan(40_000);
});

test("a secret where a text is cut leaves no half of it [K-D03]", () => {
  const [line] = record((logger) => logger.info("m", { text: `${"x".repeat(8_186)}${SECRET}` }));
  expect(line?.["text"]).not.toContain(SECRET.slice(0, 3));
});
