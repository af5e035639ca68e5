/** Facts that stand beside a log message. Values are plain data; secrets never stand here. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Where log lines go. The message is constant text, noun-verb (`tool-call-end`); what varies stands in the fields. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds these fields to each line. */
  child(fields: LogFields): Logger;
}

/** Drops every line. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};
