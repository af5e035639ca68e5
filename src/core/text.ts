declare global {
  interface String {
    /** Source: https://tc39.es/ecma262/#sec-string.prototype.towellformed. */
    toWellFormed(): string;
  }
}

/** The text with every half of a surrogate pair that stands alone replaced by U+FFFD, so that it can be sent as UTF-8. */
export function wellFormed(text: string): string {
  return text.toWellFormed();
}

/** Looked for first, because few texts have one, and that is seen in a fraction of the time that counting takes. */
const SURROGATE = /[\ud800-\udbff]/;

/** How many Unicode code points the text has. */
export function codePointCount(text: string): number {
  let count = text.length;
  if (!SURROGATE.test(text)) return count;
  for (let i = 0; i < text.length - 1; i++) if (isHigh(text, i) && isLow(text, i + 1)) count--;
  return count;
}

/** Index after the first `count` code points; the text's length where it has no more. */
export function headIndex(text: string, count: number): number {
  if (text.length <= count) return text.length;
  let index = 0;
  for (let left = count; left > 0 && index < text.length; left--)
    index += isHigh(text, index) && isLow(text, index + 1) ? 2 : 1;
  return index;
}

/** Index of the last `count` code points; 0 where the text has no more. */
export function tailIndex(text: string, count: number): number {
  if (text.length <= count) return 0;
  let index = text.length;
  for (let left = count; left > 0 && index > 0; left--)
    index -= isLow(text, index - 1) && isHigh(text, index - 2) ? 2 : 1;
  return index;
}

/** The text, or its first code points and `…`, which tells a redactor that what stands before it may be cut. */
export function textBeginning(text: string, count: number): string {
  const end = headIndex(text, count);
  return end === text.length ? text : `${text.slice(0, end)}…`;
}

/** Longest part of a word that the end of a text leaves out. */
const MAX_HALF_WORD = 256;

/** The text, or `…` and its last code points without half a word before them, which may be half a secret. */
export function textEnd(text: string, count: number): string {
  const start = tailIndex(text, count);
  if (start === 0) return text;
  const space = text.slice(start - 1, start + MAX_HALF_WORD).search(/\s/);
  return `…${text.slice(space === -1 ? start : start + space)}`;
}

function isHigh(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** A message without line breaks, control characters and halves of characters, whatever it quotes: as `\u000a`. */
export function oneLine(message: string): string {
  return message.replace(/[\p{Cc}\u2028\u2029\p{Surrogate}]/gu, (sign) => {
    return `\\u${(sign.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  });
}
