import type { JsonValue } from "../core/json.ts";
import type { Logger } from "../core/logger.ts";
import type { DeclarationOutcome } from "./declaration.ts";
import { sourceProblem } from "./problems.ts";

/** Largest declaration that is read, from a file or over the wire. */
export const MAX_DECLARATION_BYTES = 1024 * 1024;

/** What a declaration is read with. */
export interface ParseOptions {
  readonly format: "yaml" | "json";
  /** Stands in the problems that are found. */
  readonly source: string;
}

/** Reads a declaration; never throws, whatever the text. */
export type ParseDeclaration = (text: string, options: ParseOptions) => DeclarationOutcome;

/**
 * Does in slices what takes long of reading something, so that reading it right afterwards holds up nobody. Never rejects,
 * and says nothing of what it holds.
 */
export interface ReadAhead {
  /** The text of a declaration. */
  declaration(text: string, format: "yaml" | "json"): Promise<void>;
  /** The schemas of a tool that a server offers. */
  schemas(schemas: readonly JsonValue[]): Promise<void>;
}

/** The same for declarations that come in numbers: a fault of the parser becomes a problem of the one, and stops no other. */
export function containFaults(parse: ParseDeclaration, logger: Logger): ParseDeclaration {
  return (text, options) => {
    try {
      return parse(text, options);
    } catch (error) {
      const { source } = options;
      logger.error("declaration-parse-failed", { source, error });
      const message =
        "cannot be read because of a fault in the gateway; the log line declaration-parse-failed has the cause";
      return { ok: false, name: undefined, problems: [sourceProblem(source, message)] };
    }
  };
}
