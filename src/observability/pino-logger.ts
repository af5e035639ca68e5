import { type DestinationStream, type Logger as Pino, pino, stdTimeFunctions } from "pino";
import type { LogFields, Logger } from "../core/logger.ts";
import type { Redactor } from "../core/secrets.ts";
import { cleanFields } from "./log-fields.ts";

/** How a logger is set up. */
export interface PinoLoggerOptions {
  /** Least level that is written. */
  readonly level: "debug" | "info" | "warn" | "error" | "silent";
  /** Takes each line, its line break included. */
  readonly destination: DestinationStream;
  /** Masks secrets in every text of a line, error texts and stacks included. */
  readonly redactor: Redactor;
}

/** Keys of a line that are not fields; a field of such a name gets `_` behind it. */
const OWN_KEYS = ["level", "time", "message"];

/** A logger whose least level can be another one from a moment on, for itself and for its children. */
export interface PinoLogger extends Logger {
  setLevel(level: PinoLoggerOptions["level"]): void;
}

/**
 * Logs one JSON object a line: `level` as a word, `time` in ISO 8601, the fields, `message` last. Fields are bounded
 * in size and depth. A field of a line stands in place of one of the same name that its logger adds.
 */
export function createPinoLogger({ level, destination, redactor }: PinoLoggerOptions): PinoLogger {
  const sink = pino(
    {
      level,
      base: null,
      messageKey: "message",
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  return {
    ...loggerOf(sink, {}, redactor),
    setLevel: (next) => {
      sink.level = next;
    },
  };
}

function loggerOf(sink: Pino, own: Readonly<Record<string, unknown>>, redactor: Redactor): Logger {
  const write =
    (level: "debug" | "info" | "warn" | "error") =>
    (message: string, fields: LogFields = {}): void => {
      if (!sink.isLevelEnabled(level)) return;
      sink[level]({ ...own, ...lineFields(fields, redactor) }, redactor.text(message));
    };
  return {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    // pino's own children would write a key twice where a line has it too.
    child: (fields) => loggerOf(sink, { ...own, ...lineFields(fields, redactor) }, redactor),
  };
}

function lineFields(fields: LogFields, redactor: Redactor): Record<string, unknown> {
  const clean = cleanFields(fields, redactor);
  for (const key of OWN_KEYS) {
    if (!Object.hasOwn(clean, key)) continue;
    clean[`${key}_`] = clean[key];
    delete clean[key];
  }
  return clean;
}
