import type { Journal } from "./journal.ts";
import { type Leg, type LegEnd, operationOf, textOf } from "./leg.ts";
import { type Attempt, pieceOf } from "./upstream.ts";

/** What the rules must know besides. */
export interface OutcomeFacts {
  readonly journal: Journal;
  /** Whether an answer may be forgotten. */
  readonly ledgerFailed: boolean;
  /** Calls whose effect was told wrongly on purpose. */
  readonly lies: ReadonlySet<string>;
}

/** How soon a reader that waits is told. */
const READER_MS = 1_000;

type Breach = (promise: string, facts: string) => void;

/** Holds what callers were told, and what upstreams did, against what was promised. For the end of a schedule. */
export function checkOutcomes(
  legs: readonly Leg[],
  attempts: readonly Attempt[],
  { journal, ledgerFailed, lies }: OutcomeFacts,
): void {
  const breach: Breach = (promise, facts) => journal.breach(promise, facts);
  checkExecutions(attempts, breach);
  const byId = new Map(attempts.map((attempt) => [attempt.id, attempt]));
  for (const leg of legs) {
    if (leg.end === undefined) breach("each caller has one end", `${leg.name} has none`);
    checkText(leg, byId, breach);
    checkResumed(leg, breach);
    checkCancelled(leg, legs, breach);
    if (!lies.has(leg.callId ?? "")) checkEffect(leg, attempts, breach);
  }
  if (!ledgerFailed) checkMemory(legs, attempts, breach);
}

/** No operation is done twice. */
function checkExecutions(attempts: readonly Attempt[], breach: Breach): void {
  const done = new Map<string, Attempt[]>();
  const operationOfKey = new Map<string, string>();
  for (const attempt of attempts) {
    const { operation, key, acted, tool } = attempt;
    if (key !== undefined) {
      const scoped = `${tool.definition.name} ${key}`;
      if ((operationOfKey.get(scoped) ?? operation) !== operation) breach("a key is one operation's", attempt.id);
      operationOfKey.set(scoped, operation);
    }
    if (acted) done.set(operation, [...(done.get(operation) ?? []), attempt]);
  }
  for (const [operation, acted] of done) {
    const ids = acted.map(({ id }) => id).join(" ");
    const effectClass = acted[0]?.tool.policy.effectClass;
    if (effectClass === "write" && acted.length > 1) breach("no side effect twice", `${operation}: ${ids}`);
    const keys = new Set(acted.map(({ key }) => key));
    if (effectClass === "keyed" && (keys.size > 1 || keys.has(undefined))) {
      breach("attempts share their key", `${operation}: ${[...keys].join(" ")}`);
    }
  }
}

/** What was read is the text of one attempt of this operation, from its beginning, and all of it where all went well. */
function checkText(leg: Leg, attempts: ReadonlyMap<string, Attempt>, breach: Breach): void {
  const { end } = leg;
  const isWhole = end?.type === "completed" && end.failure === undefined;
  const text = textOf(leg) + (isWhole ? end.text : "");
  if (text === "" && !isWhole) return;
  const id = /^\[(a\d+)\./.exec(text)?.[1];
  const attempt = id === undefined ? undefined : attempts.get(id);
  if (attempt === undefined) {
    breach("text comes from an attempt", `${leg.name} ${text}`);
    return;
  }
  const count = Math.max(1, attempt.pieces);
  const all = Array.from({ length: count }, (_, i) => pieceOf(attempt.id, i)).join("");
  if (isWhole ? text !== all : !all.startsWith(text)) {
    breach("no text is lost, repeated or out of order", `${leg.name} has ${text} of ${all}`);
  }
  if (isWhole && !attempt.whole) breach("success is the upstream's word", `${leg.name} ${attempt.id}`);
  if (attempt.operation !== operationOf(leg) || attempt.n !== leg.caller.n)
    breach("an answer is the call's own", `${leg.name} ${attempt.id}`);
}

/** A stream that goes on in time does, and on one connection alone. */
function checkResumed({ name, caller, after, beganMs, end }: Leg, breach: Breach): void {
  if (after === undefined || end === undefined || isRefused(end)) return;
  const { leg: before } = after;
  // Who reads slowly comes late for what it is told.
  const toldMs = beganMs + READER_MS + 3 * caller.pauseMs;
  if (before.endMs === undefined || before.endMs > toldMs) breach("one connection reads a stream", name);
  const lostMs = caller.leaving?.how === "lose" ? before.leftMs : undefined;
  const isInTime = lostMs !== undefined && beganMs < lostMs + (caller.resumeWindowMs ?? 0);
  if (isInTime && end.type === "error" && end.error.reason === "CALL_CANCELLED") {
    breach("a lost call goes on in its window", `${name}: ${end.error.message}`);
  }
}

/** Who did not go is not told that it did: not by the end of a call that others have left. */
function checkCancelled({ name, callId, end, after, leftMs }: Leg, legs: readonly Leg[], breach: Breach): void {
  if (end?.type !== "error" || end.error.reason !== "CALL_CANCELLED") return;
  const isElsewhere = legs.some((each) => each.after?.leg.name === name);
  if (after === undefined && leftMs === undefined && !isElsewhere) {
    breach("only who goes is cancelled", `${name} ${callId}: ${end.error.message}`);
  }
}

function isRefused(end: LegEnd): boolean {
  return end.type === "error" && (end.error.reason === "CALL_NOT_FOUND" || end.error.reason === "RESUME_EXPIRED");
}

/** What was said of the effect is true. */
function checkEffect(leg: Leg, attempts: readonly Attempt[], breach: Breach): void {
  const { end } = leg;
  if (end === undefined || end.type === "left" || leg.after !== undefined) return;
  const effect = end.type === "completed" ? end.effect : end.error.effect;
  const acted = attempts.filter((attempt) => attempt.acted);
  if (effect === "none") {
    const own = acted.filter(({ callId }) => callId === leg.callId);
    if (own.length > 0) breach("`none` is true", `${leg.name} ${own.map(({ id }) => id).join(" ")} acted`);
  }
  const operation = operationOf(leg);
  if (effect === "committed" && !acted.some((attempt) => attempt.operation === operation)) {
    breach("`committed` is true", `${leg.name}: nothing acted for ${operation}`);
  }
}

/** An answer that was given is given again, and its call is not made again. */
function checkMemory(legs: readonly Leg[], attempts: readonly Attempt[], breach: Breach): void {
  const answered = new Map<string, Leg>();
  for (const leg of legs) {
    const { end, caller } = leg;
    if (end?.type !== "completed" || caller.requestId === undefined || end.replayed) continue;
    if (end.failure !== undefined && end.effect === "none") continue;
    const operation = operationOf(leg);
    const before = answered.get(operation);
    // Both read the same run where one goes on with the stream of the other.
    if (before !== undefined && before.callId !== leg.callId)
      breach("a call is answered once", `${before.name} ${leg.name}`);
    answered.set(operation, leg);
  }
  for (const leg of legs) {
    const first = answered.get(operationOf(leg));
    if (first?.endMs === undefined || leg.beganMs <= first.endMs || leg.after !== undefined) continue;
    const late = attempts.filter(({ callId }) => callId === leg.callId);
    if (late.length > 0)
      breach("an answered call is not made again", `${leg.name} ${late.map(({ id }) => id).join(" ")}`);
    const { end } = leg;
    if (end?.type === "completed" && !end.replayed) breach("an answered call is replayed", leg.name);
    if (end?.type === "completed" && wordsOf(leg) !== wordsOf(first)) {
      breach("an answer is replayed as it was", `${leg.name}: ${wordsOf(leg)} instead of ${wordsOf(first)}`);
    }
    if (end?.type === "error" && end.error.reason === "OUTCOME_UNKNOWN") breach("no answer is forgotten", leg.name);
  }
}

/** All that a caller had of an answer. */
function wordsOf(leg: Leg): string {
  const { end } = leg;
  return end?.type === "completed" ? `${end.failure ?? "ok"} ${end.effect} ${textOf(leg)}${end.text}` : "";
}
