import type { CallContext, CallKey, Invoke, ToolCall, UpstreamEvent } from "../../core/call.ts";
import type { Effect } from "../../core/effect.ts";
import { GatewayError } from "../../core/errors.ts";
import { raceSignal } from "../../core/signal.ts";
import type { Step } from "../../core/step.ts";

/**
 * Has a call with a key put on record right before it is dispatched for the first time, and notes of each attempt
 * whether it may have acted. Innermost, so that what is refused, queued or held back before leaves no trace and a crash
 * by then surely had no effect. A tool that only reads is not claimed: nothing is lost when it is run again.
 */
export const ledgerStep: Step = {
  name: "ledger",
  scope: "attempt",
  compile(_tool, { effectClass }) {
    if (effectClass === "read") return undefined;
    return (call, context, next) => {
      const { key } = context;
      return key === undefined || call.validateOnly ? next(call, context) : recorded(key, call, context, next);
    };
  },
};

async function* recorded(
  key: CallKey,
  call: ToolCall,
  context: CallContext,
  next: Invoke,
): AsyncGenerator<UpstreamEvent, void, undefined> {
  await raceSignal(key.claim(), context.signal);
  let effect: Effect = "unknown";
  try {
    for await (const event of next(call, context)) {
      if (event.type === "upstream-result") effect = event.result.effect;
      yield event;
    }
  } catch (thrown) {
    effect = GatewayError.from(thrown).effect;
    throw thrown;
  } finally {
    if (effect !== "none") key.mayHaveActed();
  }
}
