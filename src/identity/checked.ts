import type { LogFields } from "../core/logger.ts";
import type { Principal } from "../core/principal.ts";

/** What became of a credential. */
export type Checked =
  | {
      readonly principal: Principal;
      /** Milliseconds since the epoch after which it has to be shown again; absent: it counts as long as it is known. */
      readonly untilMs?: number;
    }
  | Refused;

/** Why a credential does not count; for the log alone, and without the credential. */
export interface Refused {
  readonly problem: string;
  readonly facts: LogFields;
}

/** A credential that does not count. */
export function refused(problem: string, facts: LogFields = {}): Refused {
  return { problem, facts };
}
