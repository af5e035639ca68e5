import { firstHit, NO_QUESTION, type Question } from "./question.ts";

/** Stands where something of a text was left out. */
export const GAP = "…";

/** How far a cut may move to fall between two words. */
const REACH = 24;

/** One line of a text: white space and control characters become single spaces. */
export function flatLine(text: string): string {
  return /[\s\p{Cc}]{2}|[^\S ]|\p{Cc}/u.test(text) ? text.replace(/[\s\p{Cc}]+/gu, " ").trim() : text.trim();
}

/** The beginning of a text, at most `width` UTF-16 units with its mark. */
export function clip(text: string, width: number): string {
  return text.length <= width ? text : text.slice(0, cutBefore(text, width - 1)).trimEnd() + GAP;
}

/**
 * At most `width` UTF-16 units of a text: around what the question asks for, else its beginning and its end. Numbers
 * and characters stay whole.
 */
export function excerpt(text: string, width: number, question: Question = NO_QUESTION, headShare = 0.6): string {
  if (text.length <= width) return text;
  if (width < 12) return clip(text, width);
  const hit = firstHit(text, question);
  if (hit > width * 0.6) return around(text, width, hit);
  const head = cutBefore(text, Math.ceil((width - 1) * headShare));
  const tail = cutAfter(text, text.length - (width - 1 - head));
  return text.slice(0, head).trimEnd() + GAP + text.slice(tail).trimStart();
}

function around(text: string, width: number, hit: number): string {
  const start = cutAfter(text, Math.max(0, Math.min(hit - Math.floor(width * 0.4), text.length - width + 2)));
  const end = start + width - 2 >= text.length ? text.length : cutBefore(text, start + width - 2);
  const body = text.slice(start, Math.max(start, end)).trim();
  return (start > 0 ? GAP : "") + body + (end < text.length ? GAP : "");
}

/** The width, between the two, at which things of these lengths fit together in a room, each on a line of its own. */
export function fittingWidth(
  lengths: readonly number[],
  room: number,
  { narrow, wide }: { readonly narrow: number; readonly wide: number },
): number {
  let low = narrow;
  let high = wide;
  const sum = (width: number): number => lengths.reduce((total, length) => total + Math.min(length, width) + 1, 0);
  while (low + 4 < high) {
    const middle = Math.floor((low + high) / 2);
    if (sum(middle) <= room) low = middle;
    else high = middle;
  }
  return low;
}

/** The last place at or before `index` where a text may be cut. */
export function cutBefore(text: string, index: number): number {
  if (index >= text.length) return text.length;
  for (let at = index; at > Math.max(0, index - REACH); at--) if (!isJoined(text, at)) return at;
  let at = Math.max(0, index);
  while (at > 0 && isWhole(text, at)) at--;
  return at;
}

/** The first place at or after `index` where a text may be cut. */
export function cutAfter(text: string, index: number): number {
  if (index <= 0) return 0;
  for (let at = index; at < Math.min(text.length, index + REACH); at++) if (!isJoined(text, at)) return at;
  let at = index;
  while (at < text.length && isWhole(text, at)) at++;
  return at;
}

/** Whether a word, a number or a character would be cut in two here. */
function isJoined(text: string, index: number): boolean {
  if (isWhole(text, index)) return true;
  return isLatin(text.charCodeAt(index - 1)) && isLatin(text.charCodeAt(index));
}

/** Whether a number or a character would be cut in two here. */
function isWhole(text: string, index: number): boolean {
  const before = text.charCodeAt(index - 1);
  const after = text.charCodeAt(index);
  if (after >= 0xdc00 && after <= 0xdfff) return true;
  if (before === 0x200d || isExtending(text, index)) return true;
  return (isOfNumber(text, index - 1) && isOfNumber(text, index)) || (isOfNumber(text, index - 1) && isLatin(after));
}

/** Signs that belong to the character before them: accents, joiners, variations and skin tones. */
function isExtending(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  if (unit >= 0x300 && unit <= 0x36f) return true;
  if (unit === 0x200d || (unit >= 0xfe00 && unit <= 0xfe0f) || unit === 0x20e3) return true;
  return unit === 0xd83c && text.charCodeAt(index + 1) >= 0xdffb;
}

function isOfNumber(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  if (isDigit(unit)) return true;
  // Points, commas, signs and colons between digits: of a fraction, a date, a time, a version.
  const sign = unit === 46 || unit === 44 || unit === 45 || unit === 43 || unit === 58 || unit === 47;
  return sign && (isDigit(text.charCodeAt(index + 1)) || isDigit(text.charCodeAt(index - 1)));
}

function isDigit(unit: number): boolean {
  return unit >= 48 && unit <= 57;
}

function isLatin(unit: number): boolean {
  if (isDigit(unit) || (unit >= 65 && unit <= 90) || unit === 95) return true;
  return (unit >= 97 && unit <= 122) || (unit >= 0xc0 && unit <= 0x52f);
}
