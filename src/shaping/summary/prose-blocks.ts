import { cutAfter } from "./excerpt.ts";
import type { Work } from "./work.ts";

/** A heading, a sentence or a short paragraph, an item of a list, a row of a table or a line of code. */
export interface Block {
  readonly type: "heading" | "text" | "item" | "row" | "code";
  readonly text: string;
  /** Of a heading: 1 for the highest. */
  readonly level: number;
  /** Goes on with the paragraph of the block before it. */
  readonly follows: boolean;
}

/** Longer paragraphs are taken apart into sentences. */
const LONG = 240;

/** Longest sentence. */
const MAX_SENTENCE = 600;

interface Reader {
  readonly blocks: Block[];
  paragraph: string[];
  /** How the code began that the reader is in. */
  fence: string | undefined;
  /** Whether the reader is in a comment, which is for nobody who reads. */
  isComment: boolean;
  /** Whether the last line was of an item, which an indented one goes on with. */
  open: boolean;
}

/** Reads Markdown, and text, which is Markdown without marks. Wrapped lines of a paragraph become one. */
export function* readBlocks(text: string): Work<Block[]> {
  const reader: Reader = { blocks: [], paragraph: [], fence: undefined, isComment: false, open: false };
  for (const [i, line] of text.split("\n").entries()) {
    readLine(reader, line);
    if (i % 1_000 === 0) yield;
  }
  flush(reader);
  return reader.blocks;
}

function readLine(reader: Reader, line: string): void {
  if (readComment(reader, line)) return;
  const trimmed = reader.fence === undefined ? withoutTags(line.trim()) : line.trim();
  if (readCode(reader, trimmed) || readItem(reader, line, trimmed) || readUnderline(reader, trimmed)) return;
  const type = typeOf(line, trimmed);
  if (type === "text")
    reader.paragraph.push(reader.paragraph.length === 0 ? trimmed : trimmed.replace(/^(?:> ?)+/, ""));
  else flush(reader);
  reader.open = type === "item";
  if (type === "heading") reader.blocks.push(headingOf(trimmed));
  else if (type !== undefined && type !== "text") reader.blocks.push(blockOf(type, trimmed));
}

/** A line that begins with a tag of HTML has its words alone; empty: it has none. */
function withoutTags(line: string): string {
  return line.startsWith("<") ? line.replace(/<!--.*?(?:-->|$)|<\/?[a-z][^<>]{0,500}>/gi, " ").trim() : line;
}

/** Takes a line of a comment of several lines; what stands in one line is left to others. */
function readComment(reader: Reader, line: string): boolean {
  const isWithin = reader.isComment;
  if (isWithin) reader.isComment = !line.includes("-->");
  else reader.isComment = reader.fence === undefined && /^\s*<!--(?!.*-->)/.test(line);
  return isWithin || reader.isComment;
}

/** Takes a line that is of fenced code. */
function readCode(reader: Reader, trimmed: string): boolean {
  const mark = /^(?:```+|~~~+)/.exec(trimmed)?.[0];
  if (reader.fence === undefined && mark === undefined) return false;
  flush(reader);
  if (reader.fence === undefined) reader.fence = mark;
  else if (mark?.startsWith(reader.fence) === true) reader.fence = undefined;
  else if (/\w\W*\w\W*\w/.test(trimmed.slice(0, 200))) reader.blocks.push(blockOf("code", trimmed));
  return true;
}

/** Takes a line that an item of a list goes on with. */
function readItem({ blocks, open }: Reader, line: string, trimmed: string): boolean {
  const last = blocks.at(-1);
  if (!open || last?.type !== "item" || !/^\s+\S/.test(line) || /^[-*+•|#]/.test(trimmed)) return false;
  blocks[blocks.length - 1] = { ...last, text: `${last.text} ${trimmed}` };
  return true;
}

/** Takes a line that makes the one before it a heading. */
function readUnderline(reader: Reader, trimmed: string): boolean {
  if (reader.paragraph.length !== 1 || !/^(?:=+|-{3,})$/.test(trimmed)) return false;
  const level = trimmed.startsWith("=") ? 1 : 2;
  reader.blocks.push({ type: "heading", text: reader.paragraph.join(" "), level, follows: false });
  reader.paragraph = [];
  return true;
}

function blockOf(type: Block["type"], text: string): Block {
  return { type, text, level: 0, follows: false };
}

function headingOf(line: string): Block {
  const [, marks = "#", text = ""] = /^(#{1,6})\s+(.*)$/.exec(line) ?? [];
  return { type: "heading", text: text.replace(/\s*#+$/, ""), level: marks.length, follows: false };
}

function typeOf(line: string, trimmed: string): Block["type"] | undefined {
  if (trimmed === "" || /^(?:[-*_] ?){3,}$|^\|[-:| ]+$/.test(trimmed)) return undefined;
  if (/^#{1,6}\s+\S/.test(trimmed)) return "heading";
  if (/^(?:[-*+•]|\d{1,3}[.)]) /.test(trimmed)) return "item";
  if (trimmed.startsWith("|")) return "row";
  return /^(?: {4}|\t)/.test(line) ? "code" : "text";
}

/** Ends the paragraph: a long one becomes a block a sentence. */
function flush(reader: Reader): void {
  if (reader.paragraph.length === 0) return;
  const text = reader.paragraph.join(" ");
  reader.paragraph = [];
  const parts = text.length <= LONG ? [text] : sentences(text);
  for (const [i, part] of parts.entries()) reader.blocks.push({ ...blockOf("text", part), follows: i > 0 });
}

function sentences(text: string): string[] {
  const parts: string[] = [];
  const end = /[.!?]["')\]]?\s|[。！？]/g;
  let start = 0;
  while (start < text.length) {
    end.lastIndex = 30;
    const near = text.slice(start, start + MAX_SENTENCE);
    const found = end.exec(near);
    const at = found === null ? cutAfter(text, start + MAX_SENTENCE) : start + found.index + found[0].length;
    const part = text.slice(start, at).trim();
    if (part !== "") parts.push(part);
    start = at;
  }
  return parts;
}

/** Whether a block is there for the eye alone: images, badges, definitions of links, bare tags, links to other headings. */
export function isOrnament({ type, text }: Block): boolean {
  if (type === "item" && /^\S+ \[[^\]]{1,200}\]\(#[^)\s]*\)$/.test(text)) return true;
  return /^(?:\[?!\[|<[^>]{1,500}>$|\[[^\]]{1,200}\]:\s)/.test(text);
}
