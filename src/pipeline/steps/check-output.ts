import type { CallContext, ResultNotice, UpstreamEvent, UpstreamResult } from "../../core/call.ts";
import type { JsonValue } from "../../core/json.ts";
import type { Step } from "../../core/step.ts";
import type { Mismatches, SchemaChecker } from "../schema-checker.ts";

/**
 * Holds the structured part of a server's result against the output schema that the server gives with its tool. What
 * does not fit is told by a notice and a line in the log, and the result stays as it came: a schema is a promise of
 * somebody else's, and a model can read what breaks it. A result that failed is never held against it.
 */
export function createCheckOutputStep(checker: SchemaChecker): Step {
  return {
    name: "check-output",
    scope: "call",
    compile(tool) {
      // Of a declared tool the schema describes what is left after `data_field`, which nobody knows here.
      const { kind, outputSchema, name } = tool;
      if (kind !== "mcp" || outputSchema === undefined) return undefined;
      const check = async (result: UpstreamResult, context: CallContext): Promise<UpstreamResult> => {
        const { logger, callId, signal } = context;
        const mismatch = await mismatchOf(result, (value) => checker.mismatches(outputSchema, value, signal));
        if (mismatch === undefined) return result;
        logger.warn("tool-output-mismatch", { callId, tool: name });
        return { ...result, notices: [...(result.notices ?? []), mismatch] };
      };
      return async function* (call, context, next): AsyncGenerator<UpstreamEvent, void, undefined> {
        for await (const event of next(call, context)) {
          const isResult = event.type === "upstream-result" && !call.validateOnly;
          yield isResult ? { ...event, result: await check(event.result, context) } : event;
        }
      };
    },
  };
}

async function mismatchOf(
  { value, failure, needsInput }: UpstreamResult,
  mismatches: (value: JsonValue) => Promise<Mismatches>,
): Promise<ResultNotice | undefined> {
  if (failure !== undefined || needsInput !== undefined) return undefined;
  if (value === undefined) {
    return notice("the tool declares an output schema and gave no structured content; its text is the result");
  }
  const found = await mismatches(value);
  if (found === undefined || found.length === 0) return undefined;
  const places = found.map(({ field, description }) => (field === "" ? description : `${field}: ${description}`));
  return notice(`the result does not fit the tool's output schema: ${places.join("; ")}`);
}

function notice(message: string): ResultNotice {
  return { reason: "OUTPUT_SCHEMA_MISMATCH", message };
}
