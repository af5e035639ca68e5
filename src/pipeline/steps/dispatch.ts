import type { Step } from "../../core/step.ts";
import { waitsBeforeDispatch } from "../before-dispatch.ts";

/**
 * Tells the circuit breaker the moment an attempt goes out, which by then it may forbid. Only in the path of tools that
 * have something to wait for between the two.
 */
export const dispatchStep: Step = {
  name: "dispatch",
  scope: "attempt",
  compile(_tool, policy) {
    const { turn, record } = waitsBeforeDispatch(policy);
    if (policy.circuitBreaker === undefined || !(turn || record)) return undefined;
    return (call, context, next) => {
      context.beforeDispatch?.();
      return next(call, context);
    };
  },
};
