import { clip, cutAfter, excerpt, fittingWidth, flatLine, GAP } from "./excerpt.ts";
import { type Block, isOrnament, readBlocks } from "./prose-blocks.ts";
import type { Question } from "./question.ts";
import { TextIndex, weighTexts } from "./text-index.ts";
import type { Work } from "./work.ts";

/** Prose within its budget. */
export interface ProseText {
  readonly text: string;
  readonly shown: string;
}

/** Shortest and longest a block is cut to, by what it is. */
const NARROW = 64;
const WIDE = 400;

/** What is left of the budget is for a shorter part of what comes next, down to this. */
const LEAST_PART = 40;

/** A word of more of the parts tells none of them from the others. */
const COMMON = 0.6;

/** What a sentence is worth less than one that begins a paragraph. */
const AFTER = 2.5;

/** Shortest a first sentence is cut to. */
const NARROW_LEAD = 60;

/** About how many characters a text takes beyond its width, for its last word to be whole. */
const BEYOND = 2;

/** Shorter texts, such as `or`, and asides say not what a part is about. */
const LEAST_LEAD = 30;

/** Headings and the first words below them score so much. */
const LEAD = 4;

interface Weighed {
  readonly block: Block;
  readonly index: number;
  readonly score: number;
  /** Of a heading: how deep; of others: how deep their heading is. */
  readonly asked: boolean;
}

/** Markdown or text, shortened: headings, the first sentence of each part, and what the question asks for. */
export function* proseText(text: string, budget: number, question: Question): Work<ProseText> {
  const blocks = (yield* readBlocks(text)).filter((block) => !isOrnament(block));
  yield;
  const weighed = yield* weigh(blocks, question);
  const width = fittingWidth(lengthsOf(weighed), budget, { narrow: NARROW, wide: WIDE });
  const foremost = lengthsOf(weighed.filter(({ score }) => score >= LEAD));
  const leads = fittingWidth(foremost, budget - BEYOND * foremost.length, { narrow: NARROW_LEAD, wide: WIDE });
  const order = weighed.toSorted((a, b) => b.score - a.score || a.index - b.index);
  const lines = new Map<number, string>();
  let left = budget;
  let misses = 0;
  for (const item of order) {
    const wide = item.score >= LEAD ? Math.max(width, Math.min(leads, 160)) : width;
    let line = lineOf(item, wide, question);
    if (line.length + 1 > left && left > LEAST_PART) line = clip(lineOf(item, left - 1, question), left - 1);
    if (line.length + 1 > left) {
      if (++misses > 60) break;
      continue;
    }
    left -= line.length + 1;
    lines.set(item.index, line);
  }
  yield;
  const kept = [...lines].toSorted((a, b) => a[0] - b[0]).map(([, line]) => line);
  return { text: kept.join("\n"), shown: `${kept.length} of ${blocks.length} parts` };
}

function lineOf({ block, asked }: Weighed, width: number, question: Question): string {
  const text = asked ? flatLine(block.text) : withoutAddresses(flatLine(block.text));
  if (block.type === "heading") return `${"#".repeat(block.level)} ${clip(text, 100)}`;
  return asked ? excerpt(text, Math.max(width, 200), question) : sentence(text, width);
}

/** Long addresses of links say nothing that their words do not. */
function withoutAddresses(text: string): string {
  return text.replace(/\]\(([^()\s]{60,})(?: "[^"]*")?\)/g, `](${GAP})`);
}

/** The first sentence where it is not much shorter than what there is room for, else as much as fits. */
function sentence(text: string, width: number): string {
  if (text.length <= width) return text;
  const end = text.slice(0, width).search(/[.!?。！？](?:\s|$)(?!.*[.!?。！？]\s)/u);
  if (end > width * 0.6) return text.slice(0, end + 1) + " …";
  // The word that the width ends in is often the one that says what it is about.
  const whole = cutAfter(text, width - 1);
  return whole === text.length ? text : text.slice(0, whole).trimEnd() + GAP;
}

function lengthsOf(items: readonly Weighed[]): number[] {
  return items.map(({ block }) => block.text.length + (block.type === "heading" ? block.level + 1 : 0));
}

function* weigh(blocks: readonly Block[], question: Question): Work<Weighed[]> {
  const ask = yield* createAsk(blocks, question);
  const scoreOf = createScore();
  return blocks.map((block, index) => {
    const asks = ask[index] ?? 0;
    return { block, index, score: scoreOf(block) + asks, asked: asks > 0 };
  });
}

/** What blocks are worth, one after the other: headings, then what each part begins with. */
function createScore(): (block: Block) => number {
  let level = 0;
  let place = 0;
  let led = false;
  let code = 0;
  return (block) => {
    if (block.type === "heading") {
      ({ level } = block);
      place = 0;
      led = false;
      return 8 - level * 0.4;
    }
    code = block.type === "code" ? code + 1 : 0;
    let score = code > 0 ? 0.5 - 0.3 * code : 2 - 0.25 * place - (block.follows ? AFTER : 0);
    const leads = isLead(block);
    if (leads && !led) score += 4 - level * 0.3;
    else if (place === 0 && (block.type === "item" || code === 1)) score += 2;
    led ||= leads;
    if (code === 0) place++;
    return score;
  };
}

/** Whether a block can say what its part is about. */
function isLead({ type, text }: Block): boolean {
  return type === "text" && text.length >= LEAST_LEAD && !text.startsWith(">");
}

function* createAsk(blocks: readonly Block[], question: Question): Work<Float64Array> {
  if (question.terms.length === 0) return new Float64Array(blocks.length);
  const { scores, most } = yield* weighTexts(new TextIndex(blocks.map(({ text }) => text)), question, COMMON);
  return most === 0 ? scores : scores.map((score) => (score / most) * 12);
}
