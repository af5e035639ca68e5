import type { ProgressEvent, ToolCall, ToolEvent, ToolResult, UpstreamEvent, UpstreamResult } from "../core/call.ts";
import type { Effect } from "../core/effect.ts";
import { GatewayError } from "../core/errors.ts";
import { showHidden } from "../core/hidden-text.ts";
import type { KeepResult, ResultKeeping } from "../core/results.ts";
import type { Redactor } from "../core/secrets.ts";
import type { ResultRules, ResultShaper, ShapeMeans } from "../core/shaper.ts";
import { wellFormed } from "../core/text.ts";
import { createArrangeFields } from "./arrange-fields.ts";
import { questionOf } from "./call-question.ts";
import { DeltaText } from "./delta-text.ts";
import { EarlyStop } from "./early-stop.ts";
import { createExtract } from "./extract.ts";
import { createOneOfBoth } from "./read-value.ts";
import { redactError } from "./redact-error.ts";
import { redactExchange } from "./redact-exchange.ts";
import { fillTemplate, parseResultTemplate } from "./result-template.ts";
import { createSelect } from "./select/create-select.ts";
import {
  EMPTY,
  type LengthBudget,
  type ResultLimits,
  shapeResult,
  tooLong,
  tooLongForBudget,
  withNotices,
} from "./shape-result.ts";
import { createJudge, type Judge } from "./success.ts";
import { finishUnhurried } from "./summary/work.ts";
import { TextCleaner } from "./text-cleaner.ts";
import { withTrueTypes } from "./true-type.ts";
import { budgetNotice, type WindowBudget, type WindowBudgets } from "./window-budget.ts";
import { wrapUntrusted } from "./wrap-untrusted.ts";

/** Most code points of a final result, whatever the limit of a stream is. */
const MAX_FINAL_LENGTH = 1_000_000;

/** What a shaper is made of. */
export interface ResultShaperParts {
  /** The tool's name, for messages. */
  readonly tool: string;
  readonly rules: ResultRules;
  readonly redactor: Redactor;
  /** Whether a call surely changes nothing: then a stream that is ended at its limit had no effect. Default false. */
  readonly readOnly?: boolean;
  /** What calls may give of their model's window. Absent: as much as the rules say. */
  readonly budgets?: WindowBudgets;
}

/**
 * Makes results fit for a model: success rule, extraction, redaction, shortening, in this order. Deltas are redacted
 * and passed on at once; `max_length` limits their text as a whole: the beginning goes out without a mark, the upstream
 * is cancelled, and the result says that the text was cut (or is a failure, with `truncation: error`).
 */
export function createResultShaper(parts: ResultShaperParts): ResultShaper {
  const { tool, rules } = parts;
  const judge = createJudge(tool, rules);
  const extract = createExtract(tool, rules);
  const select = createSelect(tool, rules);
  const oneOfBoth = createOneOfBoth(rules);
  const arrange = createArrange(rules);
  const settle: Judge = (result) => arrange(select(extract(oneOfBoth(judge(result)))));
  const { trust } = rules;
  return {
    shape(events, call, means = {}) {
      const shaped = shapeEvents(events, { call, ...means }, parts, settle);
      if (trust === undefined || trust === "none") return shaped;
      return trust === "wrapped" ? wrapUntrusted(shaped, tool) : vouched(shaped);
    },
  };
}

async function* vouched(events: AsyncIterable<ToolEvent>): AsyncGenerator<ToolEvent, void, undefined> {
  for await (const event of events) {
    yield event.type === "completed" ? { ...event, result: { ...event.result, trusted: true } } : event;
  }
}

/** Gives the payload the fields and the text that are declared. A failure keeps its data as fields, without a template. */
function createArrange({ fields, template: text }: ResultRules): Judge {
  const arrange = fields === undefined ? undefined : createArrangeFields(fields);
  const template = text === undefined ? undefined : parseResultTemplate(text);
  if (arrange === undefined && template === undefined) return (result) => result;
  return (result) => {
    if (result.value === undefined) return result;
    const value = arrange === undefined ? result.value : arrange(result.value);
    const whole = template === undefined || result.failure !== undefined || typeof value === "string";
    return { ...result, value: whole ? value : fillTemplate(template, value) };
  };
}

/** A fault of the shaper's own takes nothing back of what the upstream did. */
async function* shapeEvents(
  events: AsyncIterable<UpstreamEvent>,
  { call, keep, context }: ShapeMeans & { readonly call: ToolCall },
  parts: ResultShaperParts,
  settle: Judge,
): AsyncGenerator<ToolEvent, void, undefined> {
  const limit = Math.min(parts.rules.maxLength, call.maxLength ?? Number.POSITIVE_INFINITY);
  const cleaner = cleanerOf(parts);
  using budget = budgetOf(parts, call, context);
  const deltas = new DeltaText(cleaner.stream(), limit, { stop: stopOf(parts.rules), budget });
  let streamed = false;
  let effect: Effect = parts.readOnly === true ? "none" : "unknown";
  try {
    for await (const event of events) {
      if (event.type === "upstream-delta") {
        streamed = true;
        yield* deltaOf(deltas.push(event.text));
        if (deltas.over) break;
      } else if (event.type === "upstream-result") {
        const { result } = event;
        effect = result.effect;
        yield* deltaOf(deltas.end());
        const settled = call.validateOnly || streamed ? result : settle(result);
        const of = { call, deltas, parts, cleaner, keep, budget };
        yield await completedOf(settled, result.attempts, of);
        return;
      } else yield redactEvent(event, parts.redactor);
    }
  } catch (thrown) {
    if (thrown instanceof GatewayError) throw redactError(thrown, parts.redactor);
    const metadata = { tool: parts.tool };
    throw new GatewayError("INTERNAL", "internal error", { effect, metadata, cause: thrown });
  }
  // Past the loop the upstream is cancelled. How the call would have gone on, nobody knows.
  if (!deltas.over) return;
  const result = endOfStream({ parts, deltas, cleaner, budget });
  yield { type: "completed", result, effect, attempts: 1 };
}

function budgetOf({ budgets }: ResultShaperParts, call: ToolCall, context: ShapeMeans["context"]) {
  return context === undefined ? undefined : budgets?.open(call, context);
}

function stopOf({ earlyStop }: ResultRules): EarlyStop | undefined {
  return earlyStop === undefined ? undefined : new EarlyStop(earlyStop);
}

function cleanerOf({ redactor, rules }: ResultShaperParts): TextCleaner {
  const byParts = rules.redact !== undefined && rules.redact.patterns.length > 0;
  return new TextCleaner(redactor, { byParts, keepHidden: rules.hiddenCharacters === "keep" });
}

/** What there is when a result comes. */
interface ToBeCompleted {
  readonly call: ToolCall;
  readonly deltas: DeltaText;
  readonly parts: ResultShaperParts;
  readonly keep: KeepResult | undefined;
  readonly cleaner: TextCleaner;
  readonly budget: WindowBudget | undefined;
}

async function completedOf(
  settled: UpstreamResult,
  attempts: number | undefined,
  of: ToBeCompleted,
): Promise<ToolEvent> {
  const result = of.deltas.cut ? endOfStream(of) : await shapeWithin(withTrueTypes(settled), of);
  return { type: "completed", result, effect: settled.effect, attempts: attempts ?? 1 };
}

/** Where its turn has less room for it than it would have alone, the result is made once more. */
async function shapeWithin(settled: UpstreamResult, of: ToBeCompleted): Promise<ToolResult> {
  const { parts, cleaner, budget } = of;
  const limits = limitsOf(of);
  const shape = (room: LengthBudget | undefined) => (keep: KeepResult | undefined) =>
    finishUnhurried(shapeResult(settled, { ...limits, budget: room }, { tool: parts.tool, cleaner, keep }));
  if (budget === undefined) return shapeKeeping(shape(undefined), of.keep);
  const { window } = budget;
  const keep = of.keep === undefined ? undefined : keepOnce(of.keep);
  const alone = await shapeKeeping(shape({ window, room: (text) => budget.ofResult(text) }), keep);
  const fits = await budget.claim(alone);
  const result = fits ? alone : await shapeKeeping(shape({ window, room: (text) => budget.room(text) }), keep);
  budget.give(result);
  return result;
}

/** Keeps the same content once. */
function keepOnce(keep: KeepResult): KeepResult {
  const kept: { readonly content: string | Uint8Array; readonly keeping: ResultKeeping }[] = [];
  return (mediaType, content) => {
    const known = kept.find((one) => isSame(one.content, content));
    const keeping = known?.keeping ?? keep(mediaType, content);
    if (known === undefined) kept.push({ content, keeping });
    return keeping;
  };
}

function isSame(a: string | Uint8Array, b: string | Uint8Array): boolean {
  return typeof a === "string" || typeof b === "string" ? a === b : Buffer.compare(a, b) === 0;
}

/** What names a handle is let go once that can be read; where it cannot be kept, the result is made without it. */
async function shapeKeeping(
  shape: (keep: KeepResult | undefined) => Promise<ToolResult>,
  keep: KeepResult | undefined,
): Promise<ToolResult> {
  if (keep === undefined) return shape(undefined);
  const keepings: ResultKeeping[] = [];
  const result = await shape((mediaType, content) => {
    const keeping = keep(mediaType, content);
    keepings.push(keeping);
    return keeping;
  });
  for (const outcome of await Promise.all(keepings.map(({ done }) => done))) {
    if (outcome.ok) continue;
    const { notices = [], ...without } = await shape(undefined);
    const message = `the whole result could not be kept for reading on: ${outcome.problem}`;
    return { ...without, notices: [...notices, { reason: "RESULT_NOT_KEPT", message }] };
  }
  return result;
}

function* deltaOf(text: string): Generator<ToolEvent, void, undefined> {
  if (text !== "") yield { type: "delta", index: 0, text };
}

function endOfStream({
  parts: { tool, rules },
  deltas,
  cleaner,
  budget,
}: Pick<ToBeCompleted, "parts" | "deltas" | "cleaner" | "budget">): ToolResult {
  const { stopped: earlyStop, limit, cutBy } = deltas;
  if (earlyStop !== undefined && !deltas.cut) return withNotices({ ...EMPTY, earlyStop }, cleaner.notices());
  const bound = cutBy === undefined || budget === undefined ? undefined : { room: cutBy, window: budget.window };
  if (rules.truncation === "error") {
    const failure =
      bound === undefined ? tooLong(tool, `${limit} characters`) : tooLongForBudget(tool, bound.room, bound.window);
    return { ...EMPTY, failure };
  }
  const own = bound === undefined ? [] : [budgetNotice(bound.room, bound.window)];
  const cut: ToolResult = { ...EMPTY, truncation: { originalLength: undefined, mode: "head" } };
  return withNotices(cut, [...own, ...cleaner.notices()]);
}

function limitsOf({ parts: { rules }, call, deltas }: ToBeCompleted): ResultLimits {
  const { limit, room } = deltas;
  return {
    limit,
    room: Math.min(room, MAX_FINAL_LENGTH),
    mode: rules.truncation,
    maxTokens: rules.maxTokens,
    question: questionOf(call),
  };
}

function redactEvent(event: ProgressEvent, redactor: Redactor): ProgressEvent {
  switch (event.type) {
    case "progress":
    case "log":
      return { ...event, message: showHidden(redactor.text(wellFormed(event.message))) };
    case "exchange":
      return { ...event, exchange: redactExchange(event.exchange, redactor) };
    // What the gateway itself says, of names alone.
    case "queue-enter":
    case "queue-leave":
      return event;
  }
}
