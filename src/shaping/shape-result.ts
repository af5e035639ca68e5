import type {
  ContentFacts,
  ContentLink,
  ContentPart,
  ResultNotice,
  ToolFailure,
  ToolResult,
  TruncationMode,
  UpstreamResult,
} from "../core/call.ts";
import type { NeededInput } from "../core/input-request.ts";
import type { JsonValue } from "../core/json.ts";
import { KEPT_JSON, type KeepOutcome, type KeepResult } from "../core/results.ts";
import type { ResultRules } from "../core/shaper.ts";
import { codePointCount, oneLine } from "../core/text.ts";
import { cleanBlob } from "./clean-blob.ts";
import { cleanJson } from "./clean-json.ts";
import { shapeOverflow } from "./shape-overflow.ts";
import { type Shortened, shorten } from "./shorten.ts";
import { type Summary, summarizeJson, summarizeText } from "./summary/summarize.ts";
import type { Work } from "./summary/work.ts";
import type { TextCleaner } from "./text-cleaner.ts";
import { mediaTypeOf } from "./text-media-type.ts";
import { charactersOfTokens } from "./tokens.ts";
import { type BudgetRoom, budgetNotice, wordsOf } from "./window-budget.ts";

/** Most bytes of a result with binary parts, its text included: it must fit into one message of 4 MiB. */
const MAX_BLOB_BYTES = 3 * 1024 * 1024;

/** Most code points of what a failed call brings besides its message. */
const MAX_FAILURE_LENGTH = 4_000;

/** Most code points of a failure's message. */
const MAX_MESSAGE_LENGTH = 2_000;

/** Most notices of a result, and most code points of one. */
const MAX_NOTICES = 10;
const MAX_NOTICE_LENGTH = 1_000;

/** Most words of whom a part is meant for; MCP knows two. */
const MAX_AUDIENCE = 8;

/** Most characters of what a tool asks for before it can go on. */
const MAX_REQUESTS_LENGTH = 500_000;

/** How long a result may be. */
export interface ResultLimits {
  /** The limit as it is told, in code points. */
  readonly limit: number;
  /** What is left of it. */
  readonly room: number;
  readonly mode: ResultRules["truncation"];
  /** Most tokens, estimated; `undefined`: no such limit. */
  readonly maxTokens: number | undefined;
  /** What a summary should say something about. */
  readonly question: string;
  /** What else bounds it. Absent: nothing. */
  readonly budget?: LengthBudget | undefined;
}

/** What a result may take of a model's window. */
export interface LengthBudget {
  /** In tokens. */
  readonly window: number;
  room(text: string): BudgetRoom;
}

/** How many code points of a text there is room for. */
interface Room {
  readonly characters: number;
  /** The budget that says so. Absent: the tool or the caller. */
  readonly budget: { readonly room: BudgetRoom; readonly window: number } | undefined;
}

/** What shaping needs of a tool. */
export interface ShapeParts {
  readonly tool: string;
  readonly cleaner: TextCleaner;
  /** Keeps the whole of what is cut. Absent: nothing is kept. */
  readonly keep?: KeepResult | undefined;
}

/** A result without anything in it. */
export const EMPTY: ToolResult = { content: [], structuredJson: undefined, failure: undefined, truncation: undefined };

/** The failure of a result that is longer than some limit. */
export function tooLong(tool: string, limit: string): ToolFailure {
  return {
    reason: "RESULT_TOO_LONG",
    message: `${tool}: the result is longer than ${limit}; ask for less, or raise the tool's \`max_length\``,
    upstreamCode: undefined,
    retryable: false,
    upstreamFault: false,
  };
}

/**
 * Redacts and bounds a result that was judged and extracted. JSON stands as `structuredJson`, and beside it what its
 * upstream gave that does not say the same; a JSON string is text; JSON over the limit becomes text with its mark.
 * Texts over the limit together become one. A summary is work that stops between its pieces.
 */
export function* shapeResult(result: UpstreamResult, limits: ResultLimits, parts: ShapeParts): Work<ToolResult> {
  const shaped = yield* shapeBody(result, limits, parts);
  // What a failure brings was shaped with the same notices already.
  const own = result.failure === undefined ? (shaped.notices ?? []) : (shaped.notices ?? []).filter(isOfBudget);
  const notices = [...(result.notices ?? []), ...own];
  return withNotices(shaped, [...shapeNotices(notices, parts), ...parts.cleaner.notices()]);
}

/** The result with these notices and no others. */
export function withNotices(result: ToolResult, notices: readonly ResultNotice[]): ToolResult {
  return notices.length === 0 ? result : { ...result, notices };
}

function* shapeBody(result: UpstreamResult, limits: ResultLimits, parts: ShapeParts): Work<ToolResult> {
  const { failure, value, needsInput, overflow } = result;
  if (failure !== undefined) return yield* shapeFailure(result, failure, limits, parts);
  if (needsInput !== undefined) return shapeNeededInput(needsInput, parts);
  const content = result.content.map((part) => cleanPart(part, parts.cleaner));
  if (overflow !== undefined) return yield* shapeLarge(content, overflow, limits, parts);
  if (value === undefined) return yield* bounded(content, limits, parts);
  if (typeof value === "string")
    return yield* bounded([cleanPart({ type: "text", text: value }, parts.cleaner), ...content], limits, parts);
  return yield* shapeJson(value, content, limits, parts);
}

/** What a tool asks is for the caller's runtime and not for a model, so the limits of a result do not hold for it. */
function shapeNeededInput(
  { requests, state, expiresInMs = 0 }: NeededInput,
  { tool, cleaner }: ShapeParts,
): ToolResult {
  const asked = [...requests].map(([id, request]): [string, JsonValue] => [id, { ...request }]);
  const { text: requestsJson } = cleanJson(Object.fromEntries(asked), cleaner);
  if (requestsJson.length > MAX_REQUESTS_LENGTH) {
    return { ...EMPTY, failure: tooLong(tool, `${MAX_REQUESTS_LENGTH} characters of what it asks for`) };
  }
  return { ...EMPTY, needsInput: { state, requestsJson, expiresInMs } };
}

function shapeNotices(notices: readonly ResultNotice[], { cleaner }: ShapeParts): ResultNotice[] {
  return notices.slice(0, MAX_NOTICES).map(({ reason, message }) => {
    const clean = cleaner.text(oneLine(message));
    return { reason, message: shorten(clean, MAX_NOTICE_LENGTH, "head")?.text ?? clean };
  });
}

/** An answer that was too large for memory. */
function* shapeLarge(
  content: readonly ContentPart[],
  overflow: KeepOutcome,
  { mode, room, question, ...limits }: ResultLimits,
  { tool }: ShapeParts,
): Work<ToolResult> {
  if (mode === "error") return { ...EMPTY, failure: tooLong(tool, `${limits.limit} characters`) };
  const head = content.flatMap((part) => (part.type === "text" ? [part.text] : []))[0];
  const own = roomFor(head ?? "", { mode, room, question, ...limits });
  const options = { mode, room: own.characters, question };
  return withBudget({ ...EMPTY, ...(yield* shapeOverflow(head, overflow, options)) }, own);
}

function* shapeJson(
  value: JsonValue,
  others: readonly ContentPart[],
  limits: ResultLimits,
  parts: ShapeParts,
): Work<ToolResult> {
  const { text: json, value: clean } = cleanJson(value, parts.cleaner);
  const texts = others.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const all = [json, ...texts].join("\n");
  const room = roomFor(all, limits);
  if (!isLonger(all, room.characters)) {
    const rest = yield* bounded(others, limits, parts);
    return rest.failure === undefined ? { ...rest, structuredJson: json } : rest;
  }
  if (limits.mode === "summary" && others.length === 0) {
    const handle = parts.keep?.(KEPT_JSON, json).handle;
    const options = { limit: room.characters, question: limits.question, handle };
    return withBudget(summarized([], yield* summarizeJson(clean, json, options), handle), room);
  }
  const mediaType = texts.length === 0 ? KEPT_JSON : undefined;
  return yield* bounded([{ type: "text", text: json }, ...others], limits, parts, mediaType);
}

/** The upstream's message, and the beginning of what else it said. */
function* shapeFailure(
  result: UpstreamResult,
  failure: ToolFailure,
  limits: ResultLimits,
  parts: ShapeParts,
): Work<ToolResult> {
  const { failure: _failure, ...rest } = result;
  const room = Math.min(limits.room, MAX_FAILURE_LENGTH);
  const { budget } = limits;
  const shaped = yield* shapeResult(
    rest,
    { limit: room, room, mode: "head", maxTokens: undefined, question: "", budget },
    parts,
  );
  const message = parts.cleaner.text(failure.message);
  const cut = shorten(message, MAX_MESSAGE_LENGTH, "head");
  return { ...shaped, failure: { ...failure, message: cut?.text ?? message } };
}

function cleanPart(part: ContentPart, cleaner: TextCleaner): ContentPart {
  const clean = (text: string): string => cleaner.text(text);
  const facts = cleanFacts(part, clean);
  switch (part.type) {
    case "text":
      return { type: "text", text: clean(part.text), ...facts };
    case "link":
      return cleanLink(part, facts, clean);
    case "blob":
      return { ...part, ...facts, mimeType: clean(part.mimeType), data: cleanBlob(part.data, part.mimeType, cleaner) };
  }
}

function cleanLink(
  { uri, mimeType, name, title, description, sizeBytes }: ContentLink,
  facts: ContentFacts,
  clean: (text: string) => string,
): ContentPart {
  return {
    type: "link",
    uri: clean(uri),
    mimeType: clean(mimeType),
    name: clean(name),
    ...(title === undefined ? {} : { title: clean(title) }),
    ...(description === undefined ? {} : { description: clean(description) }),
    ...(sizeBytes === undefined ? {} : { sizeBytes }),
    ...facts,
  };
}

function cleanFacts({ annotations, resource }: ContentFacts, clean: (text: string) => string): ContentFacts {
  const { audience = [], lastModified } = annotations ?? {};
  return {
    ...(annotations === undefined
      ? {}
      : {
          annotations: {
            ...annotations,
            audience: audience.slice(0, MAX_AUDIENCE).map(clean),
            ...(lastModified === undefined ? {} : { lastModified: clean(lastModified) }),
          },
        }),
    ...(resource === undefined ? {} : { resource: { uri: clean(resource.uri), mimeType: clean(resource.mimeType) } }),
  };
}

/** `mediaType`: of the text, where it is known. */
function* bounded(
  parts: readonly ContentPart[],
  limits: ResultLimits,
  { tool, keep }: ShapeParts,
  mediaType?: string,
): Work<ToolResult> {
  const content = keep === undefined ? parts : withLinks(parts, keep);
  if (bytesWithBlobs(content) > MAX_BLOB_BYTES) {
    return { ...EMPTY, failure: tooLong(tool, `the ${MAX_BLOB_BYTES} bytes that a result with binary parts may have`) };
  }
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const whole = texts.join("\n");
  const room = roomFor(whole, limits);
  if (!isLonger(whole, room.characters)) return { ...EMPTY, content };
  if (limits.mode === "error") return { ...EMPTY, failure: tooLongFor(room, limits, tool) };
  const handle = keep?.(mediaType ?? mediaTypeOf(whole), whole).handle;
  if (limits.mode === "summary") {
    const options = { limit: room.characters, question: limits.question, handle };
    const summary = yield* summarizeText(whole, options);
    return summary === undefined ? { ...EMPTY, content } : withBudget(summarized(content, summary, handle), room);
  }
  const cut = shorten(whole, room.characters, limits.mode, { handle });
  return withBudget(shortened(content, cut, limits.mode, handle), room);
}

function tooLongFor({ characters, budget }: Room, limits: ResultLimits, tool: string): ToolFailure {
  if (budget !== undefined) return tooLongForBudget(tool, budget.room, budget.window);
  return tooLong(
    tool,
    characters < limits.room ? `about ${limits.maxTokens ?? 0} tokens` : `${limits.limit} characters`,
  );
}

/** The failure of a result that is longer than its budget. */
export function tooLongForBudget(tool: string, { characters, by }: BudgetRoom, window: number): ToolFailure {
  const message = `${tool}: the result is longer than ${characters} characters (${wordsOf(by, window)}); ask for less`;
  return { ...tooLong(tool, ""), message };
}

/** The result with what there is to say of a budget that shortened it. */
function withBudget(result: ToolResult, { budget }: Room): ToolResult {
  if (budget === undefined || result.truncation === undefined) return result;
  return withNotices(result, [...(result.notices ?? []), budgetNotice(budget.room, budget.window)]);
}

function isOfBudget({ reason }: ResultNotice): boolean {
  return reason === "RESULT_BUDGET" || reason === "TURN_BUDGET";
}

function shortened(
  content: readonly ContentPart[],
  cut: Shortened | undefined,
  mode: TruncationMode,
  handle: string | undefined,
): ToolResult {
  if (cut === undefined) return { ...EMPTY, content };
  return {
    ...EMPTY,
    content: withOneText(content, cut.text),
    truncation: { originalLength: cut.originalLength, mode, ...(handle === undefined ? {} : { handle }) },
  };
}

function summarized(content: readonly ContentPart[], summary: Summary, handle: string | undefined): ToolResult {
  return shortened(content.length === 0 ? [{ type: "text", text: "" }] : content, summary, "summary", handle);
}

function roomFor(text: string, { room, maxTokens, budget }: ResultLimits): Room {
  const declared = maxTokens === undefined ? room : Math.min(room, charactersOfTokens(maxTokens, text));
  const own = budget?.room(text);
  if (budget === undefined || own === undefined || own.characters >= declared) {
    return { characters: declared, budget: undefined };
  }
  return { characters: own.characters, budget: { room: own, window: budget.window } };
}

/** The parts with this text in place of the first one, and no other. */
function withOneText(content: readonly ContentPart[], text: string): ContentPart[] {
  const first = content.findIndex((part) => part.type === "text");
  return content.flatMap((part, i): ContentPart[] => {
    if (part.type !== "text") return [part];
    return i === first && text !== "" ? [{ type: "text", text }] : [];
  });
}

function isLonger(text: string, limit: number): boolean {
  return text.length > limit && codePointCount(text) > limit;
}

/** The parts with links to what is kept in place of the largest binary ones, until they fit into one message. */
function withLinks(parts: readonly ContentPart[], keep: KeepResult): readonly ContentPart[] {
  const content = [...parts];
  while (bytesWithBlobs(content) > MAX_BLOB_BYTES) {
    const sizes = content.map((part) => (part.type === "blob" ? part.data.byteLength : 0));
    const at = sizes.indexOf(Math.max(...sizes));
    const part = content[at];
    if (part?.type !== "blob") break;
    const { handle } = keep(part.mimeType, part.data);
    const { mimeType, data, annotations, resource } = part;
    const facts = {
      ...(annotations === undefined ? {} : { annotations }),
      ...(resource === undefined ? {} : { resource }),
    };
    content[at] = { type: "link", uri: handle, mimeType, name: "kept part", sizeBytes: data.byteLength, ...facts };
  }
  return content;
}

/** Bytes of all parts where one is binary, else 0. */
function bytesWithBlobs(content: readonly ContentPart[]): number {
  if (!content.some((part) => part.type === "blob")) return 0;
  return content.reduce((sum, part) => {
    if (part.type === "blob") return sum + part.data.byteLength;
    return sum + (part.type === "text" ? Buffer.byteLength(part.text) : 0);
  }, 0);
}
