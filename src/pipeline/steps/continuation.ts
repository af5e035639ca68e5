import type { CallContext, Invoke, ToolCall, UpstreamEvent, UpstreamResult } from "../../core/call.ts";
import type { Clock } from "../../core/clock.ts";
import type { Effect } from "../../core/effect.ts";
import { type FieldViolation, GatewayError } from "../../core/errors.ts";
import type { Continuation, InputRequest } from "../../core/input-request.ts";
import { inputRequired } from "../../core/input-required.ts";
import { jsonPointer } from "../../core/json.ts";
import type { Step } from "../../core/step.ts";
import { ASKING_KINDS } from "../../core/tool.ts";
import { PendingInputs, type ResumedCall } from "../pending-inputs.ts";
import type { SchemaChecker } from "../schema-checker.ts";

/**
 * Lets a tool ask its caller for input in the middle of a call. The upstream's own state stays here, and the caller gets
 * a handle for it; a continuation brings that back, and the call goes on with the arguments it began with. A caller
 * that does not accept input gets the failure INPUT_REQUIRED. Before `validate-arguments`, since a continuation need not
 * repeat its arguments, and what it goes on with is checked like any other.
 */
export function createContinuationStep(checker: SchemaChecker, pending = new PendingInputs()): Step {
  return {
    name: "continuation",
    scope: "call",
    compile({ name: tool, kind }, _policy, { clock }) {
      if (!ASKING_KINDS.has(kind)) return undefined;
      const parts = { tool, clock, pending, checker };
      return (call, context, next) => continued(parts, call, context, next);
    },
  };
}

interface Parts {
  readonly tool: string;
  readonly clock: Clock;
  readonly pending: PendingInputs;
  readonly checker: SchemaChecker;
}

async function* continued(
  parts: Parts,
  call: ToolCall,
  context: CallContext,
  next: Invoke,
): AsyncGenerator<UpstreamEvent, void, undefined> {
  const { continuation } = call;
  const resumed = continuation === undefined ? undefined : await resume(parts, call, continuation, context);
  const inner: ToolCall =
    resumed === undefined || continuation === undefined
      ? call
      : {
          ...call,
          arguments: resumed.arguments,
          acceptsInput: true,
          continuation: { ...continuation, state: resumed.state },
        };
  // A call that is left in the middle may have acted.
  let effect: Effect = "unknown";
  try {
    for await (const event of next(inner, context)) {
      if (event.type !== "upstream-result") {
        yield event;
        continue;
      }
      // A result is the end of it, whatever it says; a check alone changed nothing.
      effect = call.validateOnly ? "none" : "committed";
      yield { type: "upstream-result", result: told(parts, inner, context, event.result) };
    }
  } catch (error) {
    effect = GatewayError.from(error).effect;
    throw error;
  } finally {
    resumed?.settle(effect === "none" ? "again" : "over");
  }
}

async function resume(
  { pending, tool, clock, checker }: Parts,
  call: ToolCall,
  { state, answers }: Continuation,
  { principal, signal }: CallContext,
): Promise<ResumedCall> {
  const caller = { principal: principal.id, tool, arguments: call.arguments };
  const resumed = pending.resume(state, caller, clock.now());
  const violations: FieldViolation[] = [];
  let isChecked = false;
  try {
    for await (const violation of violationsOf(resumed.requests, answers, { checker, signal }))
      violations.push(violation);
    isChecked = true;
  } finally {
    if (!isChecked || violations.length > 0) resumed.settle("again");
  }
  if (violations.length === 0) return resumed;
  const text = violations.map(({ field, description }) => `${field} ${description}`).join("; ");
  throw new GatewayError("REQUEST_INVALID", `the answers do not fit what tool \`${tool}\` asks: ${text}`, {
    violations,
    metadata: { tool },
  });
}

/** What is wrong with the answers to these requests. */
async function* violationsOf(
  requests: ReadonlyMap<string, InputRequest>,
  answers: Continuation["answers"],
  { checker, signal }: { readonly checker: SchemaChecker; readonly signal: AbortSignal },
): AsyncGenerator<FieldViolation, void, undefined> {
  for (const [id, { schema }] of requests) {
    const answer = answers.get(id);
    if (answer === undefined) {
      yield { field: at(id), reason: "MISSING", description: "must be answered: accept, decline or cancel" };
    } else if (answer.action === "accept" && schema !== undefined) {
      for (const found of (await checker.mismatches(schema, answer.content, signal)) ?? []) {
        yield { ...found, field: at(id, `/content${found.field}`) };
      }
    }
  }
  for (const id of answers.keys()) {
    if (!requests.has(id)) yield { field: at(id), reason: "UNKNOWN", description: "was not asked for" };
  }
}

function at(id: string, rest = ""): string {
  return `invocation.continuation.inputs_json${jsonPointer([id])}${rest}`;
}

/** The result as the caller may have it: with a handle, or as the failure of one who cannot answer. */
function told(
  { tool, pending, clock }: Parts,
  call: ToolCall,
  { principal }: CallContext,
  result: UpstreamResult,
): UpstreamResult {
  const { needsInput: needed, ...rest } = result;
  if (needed === undefined || call.validateOnly) return rest;
  if (call.acceptsInput !== true) return { ...rest, failure: inputRequired(tool, needed.requests.values()) };
  const kept = { principal: principal.id, tool, arguments: call.arguments, needed };
  const { handle, expiresInMs } = pending.keep(kept, clock.now());
  return { ...rest, needsInput: { requests: needed.requests, state: handle, expiresInMs } };
}
