import type { AttemptWatch } from "../../core/observation.ts";
import type { Step } from "../../core/step.ts";

/** Has each attempt watched, with all that it waits for. */
export function createAttemptsStep(watch: AttemptWatch): Step {
  return {
    name: "attempts",
    scope: "attempt",
    compile(tool) {
      return (call, context, next) =>
        call.validateOnly ? next(call, context) : watch.attempt(tool, next, call, context);
    },
  };
}
