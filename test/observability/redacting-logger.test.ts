import { expect, test } from "vitest";
import type { LogFields, Logger } from "../../src/core/logger.ts";
import type { Redactor } from "../../src/core/secrets.ts";
import { withRedaction } from "../../src/observability/redacting-logger.ts";

const redactor: Redactor = {
  text: (value) => value.replaceAll("hunter22", "***"),
  stream: () => ({ push: (piece) => piece, end: () => "" }),
};

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields | undefined;
}

function recording(lines: Line[], own: LogFields = {}): Logger {
  const write = (level: string) => (message: string, fields?: LogFields) => {
    lines.push({ level, message, fields: fields === undefined ? undefined : { ...own, ...fields } });
  };
  return {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: (fields) => recording(lines, { ...own, ...fields }),
  };
}

test("whatever logger stands behind, it gets masked plain data", () => {
  const lines: Line[] = [];
  const logger = withRedaction(recording(lines), redactor).child({ header: "Bearer hunter22" });
  for (const level of ["debug", "info", "warn", "error"] as const) logger[level]("m", { text: "a hunter22 b" });
  logger.error("m", { error: new Error("hunter22", { cause: new Error("below hunter22") }) });
  logger.info("bare");
  expect(lines.map(({ level }) => level)).toEqual(["debug", "info", "warn", "error", "error", "info"]);
  expect(lines[0]?.fields).toEqual({ header: "Bearer ***", text: "a *** b" });
  expect(lines[4]?.fields).toMatchObject({ error: { type: "Error", message: "***", cause: { message: "below ***" } } });
  expect(lines[5]?.fields).toBeUndefined();
  expect(JSON.stringify(lines)).not.toContain("hunter22");
});
