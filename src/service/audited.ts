import { GatewayError } from "../core/errors.ts";
import type { AuditEntry, AuditTrail } from "../core/observation.ts";

/** Something of an administrator's, for the record. */
export interface AuditedAct<T> extends Pick<AuditEntry, "action" | "actor" | "facts"> {
  /** What there is to say of what came of it. */
  readonly told?: (result: T) => AuditEntry["facts"];
}

/** Does it, and puts on record what came of it. */
export async function audited<T>(
  audit: AuditTrail | undefined,
  { told, ...act }: AuditedAct<T>,
  work: () => T | Promise<T>,
): Promise<T> {
  try {
    const result = await work();
    audit?.note({ ...act, outcome: "done", facts: { ...act.facts, ...told?.(result) } });
    return result;
  } catch (thrown) {
    const { reason, status } = GatewayError.from(thrown);
    const outcome = status === "PERMISSION_DENIED" ? "refused" : "failed";
    audit?.note({ ...act, outcome, facts: { ...act.facts, reason } });
    throw thrown;
  }
}
