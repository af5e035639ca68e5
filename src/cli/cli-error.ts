import type { ExitCode } from "./exit-codes.ts";

/** What a {@link CliError} says besides what is wrong. */
export interface CliErrorOptions {
  readonly mend?: string;
  readonly places?: readonly string[];
  readonly cause?: unknown;
}

/** A problem the command line finds by itself. */
export class CliError extends Error {
  readonly exitCode: ExitCode;
  /** What to do; empty: nothing to add. */
  readonly mend: string;

  /** Each wrong place, one line each. */
  readonly places: readonly string[];

  constructor(exitCode: ExitCode, message: string, options: CliErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "CliError";
    this.exitCode = exitCode;
    this.mend = options.mend ?? "";
    this.places = options.places ?? [];
  }
}
