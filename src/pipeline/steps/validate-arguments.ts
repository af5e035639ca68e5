import type { CallContext, Invoke, ToolCall, UpstreamEvent } from "../../core/call.ts";
import { type FieldViolation, GatewayError } from "../../core/errors.ts";
import type { Step } from "../../core/step.ts";
import type { ToolDefinition } from "../../core/tool.ts";
import { shortText } from "../schema/show-value.ts";
import type { ArgumentsOutcome, SchemaChecker } from "../schema-checker.ts";

/** Most characters of an error's text. */
const MAX_TEXT = 1_500;

/**
 * Holds a call's arguments against the tool's input schema and fills in declared defaults, before anything else looks
 * at them: what does not fit is refused with every mistake named, and the upstream is not reached.
 */
export function createValidateArgumentsStep(checker: SchemaChecker): Step {
  return {
    name: "validate-arguments",
    scope: "call",
    compile(tool) {
      const goOn = (
        outcome: ArgumentsOutcome,
        call: ToolCall,
        context: CallContext,
        next: Invoke,
      ): ReturnType<Invoke> => {
        if (!outcome.ok) return failing(argumentsInvalid(tool, outcome.violations));
        context.observer?.validated(outcome.value);
        return next({ ...call, arguments: outcome.value }, context);
      };
      return (call, context, next) => {
        const outcome = checker.beginCheck(tool.inputSchema, call.arguments);
        if ("ok" in outcome) return goOn(outcome, call, context, next);
        return later(async () => goOn(await outcome.finish(context.signal), call, context, next));
      };
    },
  };
}

function argumentsInvalid(tool: ToolDefinition, violations: readonly FieldViolation[]): GatewayError {
  const lines = violations.map(({ field, description }) => (field === "" ? description : `${field}: ${description}`));
  const text = `tool "${tool.name}" was not called, its arguments are wrong: ${lines.join("; ")}`;
  return new GatewayError("ARGUMENTS_INVALID", shortText(text, MAX_TEXT), {
    violations,
    metadata: { tool: tool.name },
  });
}

/** Events that take a while to begin. */
async function* later(begin: () => Promise<ReturnType<Invoke>>): AsyncGenerator<UpstreamEvent, void, undefined> {
  yield* await begin();
}

function failing(error: GatewayError): AsyncIterable<UpstreamEvent> {
  const next = async (): Promise<never> => {
    throw error;
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}
