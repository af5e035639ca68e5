import type { Step } from "../../core/step.ts";

/**
 * Fills the parameter that `idempotency_field` names with the call's key, the same in every attempt: that of the caller's
 * `request_id`, or the call's id where there is none. The parameter is not part of the tool's input schema, so a model
 * that sends it is refused before.
 */
export const idempotencyFieldStep: Step = {
  name: "idempotency_field",
  scope: "call",
  configSchema: {
    type: "string",
    minLength: 1,
    maxLength: 64,
    description:
      "Parameter that takes the key of a call, the same in every attempt, so that the upstream does the work once. Callers do not see it: the gateway fills it in with `request_id`, or with an id of its own. It may be declared as a parameter of type string, or not at all.",
    examples: ["request_id"],
  },
  compile(_tool, _policy, _deps, config) {
    if (typeof config !== "string") return undefined;
    return (call, context, next) => {
      const key = context.key?.forUpstream ?? context.callId;
      return next({ ...call, arguments: { ...call.arguments, [config]: key } }, context);
    };
  },
};
