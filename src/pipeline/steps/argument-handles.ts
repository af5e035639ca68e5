import type { CallContext, Invoke, ToolCall, UpstreamEvent } from "../../core/call.ts";
import { GatewayError } from "../../core/errors.ts";
import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  jsonPointer,
  ownValue,
  stringifyJson,
} from "../../core/json.ts";
import { type HandleValues, handleReference } from "../../core/results.ts";
import type { Step } from "../../core/step.ts";

/** Most handles in the arguments of one call, and most characters of all they stand for. */
const MAX_HANDLES = 16;
const MAX_LENGTH = 4_000_000;

/**
 * Puts what a handle names in its place, so that a result goes from one tool to another without passing through the
 * model: where a whole argument, or a whole text in one, is `result://…`. Only what the caller itself may read is found.
 * It comes before the arguments are checked, so that the values are held against the schema.
 */
export function createArgumentHandlesStep(values: HandleValues | undefined): Step {
  return {
    name: "argument_handles",
    scope: "call",
    configSchema: {
      enum: ["replace", "keep"],
      description:
        "Whether an argument that is the handle of a kept result, `result://…` or `result://…#/json/pointer`, is replaced by what it names, or given to the tool as it is. Without it: `replace`, where results are kept.",
    },
    compile(tool, _policy, _deps, config) {
      if (values === undefined || config === "keep") return undefined;
      return (call, context, next) => {
        if (!holdsHandle(call.arguments)) return next(call, context);
        return withValues(call, context, { next, values, tool: tool.name, schema: tool.inputSchema });
      };
    },
  };
}

interface Replacing {
  readonly next: Invoke;
  readonly values: HandleValues;
  readonly tool: string;
  readonly schema: JsonObject;
}

async function* withValues(
  call: ToolCall,
  context: CallContext,
  replacing: Replacing,
): AsyncGenerator<UpstreamEvent, void, undefined> {
  const replaced = await new Replacement(context, replacing).of(call.arguments, replacing.schema, []);
  yield* replacing.next({ ...call, arguments: isJsonObject(replaced) ? replaced : {} }, context);
}

function holdsHandle(value: JsonValue): boolean {
  if (typeof value === "string") return value.startsWith("result://") && handleReference(value) !== undefined;
  if (isJsonArray(value)) return value.some(holdsHandle);
  return isJsonObject(value) && Object.values(value).some(holdsHandle);
}

/** The arguments of one call with what their handles name. */
class Replacement {
  readonly #context: CallContext;
  readonly #replacing: Replacing;
  #handles = 0;
  #length = 0;

  constructor(context: CallContext, replacing: Replacing) {
    this.#context = context;
    this.#replacing = replacing;
  }

  async of(value: JsonValue, schema: JsonValue | undefined, steps: readonly (string | number)[]): Promise<JsonValue> {
    if (typeof value === "string") return this.#text(value, schema, steps);
    if (isJsonArray(value)) {
      const items: JsonValue[] = [];
      for (const [i, item] of value.entries()) items.push(await this.of(item, below(schema, "items"), [...steps, i]));
      return items;
    }
    if (!isJsonObject(value)) return value;
    const properties = below(schema, "properties");
    const entries: [string, JsonValue][] = [];
    for (const [name, item] of Object.entries(value)) {
      entries.push([name, await this.of(item, below(properties, name), [...steps, name])]);
    }
    return Object.fromEntries(entries);
  }

  async #text(text: string, schema: JsonValue | undefined, steps: readonly (string | number)[]): Promise<JsonValue> {
    const reference = handleReference(text);
    if (reference === undefined) return text;
    const field = jsonPointer(steps);
    this.#handles += 1;
    if (this.#handles > MAX_HANDLES) throw this.#invalid(field, `at most ${MAX_HANDLES} arguments may be handles`);
    const value = await this.#value(reference, field);
    const asText = typeof value === "string" ? value : stringifyJson(value);
    this.#length += asText.length;
    if (this.#length > MAX_LENGTH) throw this.#invalid(field, `all handles together may name ${MAX_LENGTH} characters`);
    return below(schema, "type") === "string" ? asText : value;
  }

  async #value(
    { handle, pointer }: { readonly handle: string; readonly pointer: string },
    field: string,
  ): Promise<JsonValue> {
    const { principal, signal } = this.#context;
    try {
      return await this.#replacing.values.value(handle, pointer, principal, signal);
    } catch (error) {
      if (!(error instanceof GatewayError) || error.reason !== "RESULT_QUERY_INVALID") throw error;
      throw this.#invalid(field, `the handle ${error.violations[0]?.description ?? "cannot be used"}`);
    }
  }

  #invalid(field: string, description: string): GatewayError {
    const { tool } = this.#replacing;
    const text = `tool "${tool}" was not called, its arguments are wrong: ${field}: ${description}`;
    return new GatewayError("ARGUMENTS_INVALID", text, {
      violations: [{ field, reason: "HANDLE", description }],
      metadata: { tool },
    });
  }
}

/** What stands under a name of a schema. */
function below(schema: JsonValue | undefined, name: string): JsonValue | undefined {
  return isJsonObject(schema) ? ownValue(schema, name) : undefined;
}
