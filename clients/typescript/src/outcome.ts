import { durationMs } from "@bufbuild/protobuf/wkt";
import { type EffectName, effectName } from "./errors.ts";
import type { CallExplanation, CallStats, ToolFailure, ToolResult } from "./gen/toolgate/v1/call_pb.ts";
import { type JsonValue, parseExact } from "./json.ts";

/** How a call that reached the tool ended. */
export interface CallOutcome {
  /** The gateway's id of the call; its log has the line. */
  readonly callId: string;
  /** What came back. Undefined with `validateOnly`. */
  readonly result: ToolResult | undefined;
  /** Set when the tool itself reported failure. Give `modelText()` to the model: it can often mend its call. */
  readonly failure: ToolFailure | undefined;
  /**
   * Set when the tool asks for input before it can go on, which it only does where `acceptsInput` is set: there is no
   * result yet. Answer by a call of the same tool with `continuation`.
   */
  readonly needsInput: NeededInput | undefined;
  /** Whether the call changed anything. */
  readonly effect: EffectName;
  /** Whether the outcome is that of an earlier call with the same `requestId`, or of one that ran already. */
  readonly replayed: boolean;
  /** Attempts made at the upstream. */
  readonly attempts: number;
  /** Whole time in the gateway, in milliseconds. */
  readonly totalMs: number;
  /** How much of it the call waited for its turn, in milliseconds. */
  readonly queuedMs: number;
  /** Set when `explain` was asked for. */
  readonly explanation: CallExplanation | undefined;
  /** Text parts, joined by newlines. In a stream: only those that were not sent as output before. */
  text(): string;
  /**
   * The structured result; undefined where the result is text or bytes. Integers beyond 2^53 come as `bigint`.
   * `result.structuredJson` has the text itself.
   */
  structured(): JsonValue | undefined;
  /**
   * One text to hand to a model: the failure's message, or the structured result as JSON text and after it the text, which
   * does not say the same, or what there is of the two.
   */
  modelText(): string;
}

/** What a tool asks for. It comes from the tool: show it to a person or check it by rule, and never follow it blindly. */
export interface NeededInput {
  /** To be sent back as it is. Not for a model. */
  readonly state: string;
  /**
   * By id `{kind, message, schema, url, params}`. `kind` is `form`, `url`, `sampling` or `roots`; `schema` says what
   * `content` an answer has.
   */
  readonly requests: Readonly<Record<string, JsonValue>>;
  /** How long the answer is waited for, in milliseconds. */
  readonly expiresInMs: number;
}

/** What a response and a `completed` event have in common. */
interface OutcomeParts {
  readonly result?: ToolResult | undefined;
  readonly stats?: CallStats | undefined;
  readonly explanation?: CallExplanation | undefined;
}

/** Makes the outcome out of a response. */
export function outcomeOf(callId: string, { result, stats, explanation }: OutcomeParts): CallOutcome {
  const text = (): string => joinText(result);
  return {
    callId,
    result,
    failure: result?.failure,
    needsInput: neededInput(result),
    effect: effectName(stats?.effect),
    replayed: stats?.replayed ?? false,
    attempts: stats?.attempts ?? 0,
    totalMs: stats?.total === undefined ? 0 : durationMs(stats.total),
    queuedMs: stats?.queued === undefined ? 0 : durationMs(stats.queued),
    explanation,
    text,
    structured: () => (result?.structuredJson === undefined ? undefined : parseExact(result.structuredJson)),
    modelText: () => result?.failure?.message ?? allText(result),
  };
}

function neededInput(result: ToolResult | undefined): NeededInput | undefined {
  const needed = result?.needsInput;
  if (needed === undefined) return undefined;
  const requests = parseExact(needed.requestsJson);
  return {
    state: needed.state,
    requests: isObject(requests) ? requests : {},
    expiresInMs: needed.expiresIn === undefined ? 0 : durationMs(needed.expiresIn),
  };
}

function isObject(value: JsonValue): value is { readonly [name: string]: JsonValue } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function allText(result: ToolResult | undefined): string {
  return [result?.structuredJson ?? "", joinText(result)].filter((part) => part !== "").join("\n");
}

function joinText(result: ToolResult | undefined): string {
  const parts = result?.content ?? [];
  return parts.flatMap(({ part }) => (part.case === "text" ? [part.value] : [])).join("\n");
}
