import type { Step } from "../../core/step.ts";

/** The key of a declaration that names who knows what became of a call. The ledger asks it; no call passes through it. */
export const reconcileStep: Step = {
  name: "reconcile",
  scope: "call",
  configSchema: {
    type: "string",
    minLength: 1,
    description:
      "Tool to ask what became of a call that was interrupted, by name; it must only read. It gets those of the call's arguments that it has parameters for, and the call's key as `request_id` or as what `idempotency_field` names.",
    examples: ["refund_status"],
  },
  compile: () => undefined,
};
