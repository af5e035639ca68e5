import { cutError } from "../../core/cut-error.ts";
import { eventsUntil } from "../../core/signal.ts";
import type { Step } from "../../core/step.ts";

/**
 * Ends a call with its signal, which holds the deadline and the caller's cancel, even where the adapter ignores it. An
 * adapter that ends by itself in time ends with its own error, which knows what took effect; one that is cut may have
 * acted.
 */
export const deadlineStep: Step = {
  name: "deadline",
  scope: "call",
  compile(tool, _policy, { clock }) {
    return (call, context, next) =>
      eventsUntil(next(call, context), context.signal, clock, { cutError: () => cutError(tool, context.signal) });
  },
};
