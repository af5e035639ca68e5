import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { type Summary, summarizeText } from "../src/shaping/summary/summarize.ts";
import { finish } from "../src/shaping/summary/work.ts";
import { type Fact, mask, type SampleDocument, survives } from "./summary/facts.ts";
import { largeTexts } from "./summary/large.ts";
import { makeSample } from "./summary/sample.ts";

/** Shortens a document for a question. */
type Way = (document: SampleDocument, limit: number, question: string) => string;

const WAYS: Readonly<Record<string, Way>> = {
  "head and tail": ({ text }, limit) => `${text.slice(0, limit / 2)}\n…\n${text.slice(-limit / 2)}`,
  summary: (document, limit) => summaryOf(document, limit, ""),
  "summary, given the question": summaryOf,
};

function summaryOf({ text }: SampleDocument, limit: number, question: string): string {
  const made: Summary | undefined = finish(summarizeText(text, { limit, question }));
  return made?.text ?? text;
}

/** Facts kept, in percent: the mean over kinds of facts, then over types of documents. */
function score(documents: readonly SampleDocument[], limit: number, way: Way): Map<string, number> {
  const kept = new Map<string, Map<string, boolean[]>>();
  for (const document of documents) {
    const plain = way(document, limit, "");
    for (const fact of document.facts) {
      const output = fact.q === undefined || fact.q === "" ? plain : way(document, limit, fact.q);
      note(kept, document.type, fact, survives(fact, output, mask(output)));
    }
  }
  const types = new Map(
    [...kept].map(([type, kinds]) => [type, mean([...kinds.values()].map((all) => mean(all.map(Number))))]),
  );
  return new Map([["all", mean([...types.values()])], ...types]);
}

function note(kept: Map<string, Map<string, boolean[]>>, type: string, { kind }: Fact, survived: boolean): void {
  const kinds = kept.get(type) ?? new Map<string, boolean[]>();
  kinds.set(kind, [...(kinds.get(kind) ?? []), survived]);
  kept.set(type, kinds);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

async function readDocuments(file: string | undefined): Promise<SampleDocument[]> {
  if (file === undefined) return makeSample();
  const lines = (await readFile(file, "utf8")).split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => JSON.parse(line) as SampleDocument);
}

/** CPU milliseconds of a summary: the whole, and its longest piece between two turns of others. */
interface Cost {
  readonly whole: number;
  readonly piece: number;
}

/** How often each text is summed up; the least figure is the one that other programs had no part in. */
const RUNS = 9;

function costOf(text: string, question: string): Cost {
  const runs = Array.from({ length: RUNS }, () => costOnce(text, question));
  return { whole: Math.min(...runs.map(({ whole }) => whole)), piece: Math.min(...runs.map(({ piece }) => piece)) };
}

function costOnce(text: string, question: string): Cost {
  const work = summarizeText(text, { limit: 4_000, question });
  const start = process.cpuUsage();
  let last = start;
  let piece = 0;
  for (let done: boolean | undefined = false; done !== true; ) {
    done = work.next().done;
    piece = Math.max(piece, millis(process.cpuUsage(last)));
    last = process.cpuUsage();
  }
  return { whole: millis(process.cpuUsage(start)), piece };
}

function millis({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1000;
}

/** CPU time for a text of about 1 MB of each kind. */
function printCosts(): void {
  console.log("CPU ms for about 1 MB: whole / longest piece; with a question: whole / longest piece");
  for (const [kind, text] of Object.entries(largeTexts())) {
    const figures = [costOf(text, ""), costOf(text, "what is the total of harbor lagoon 512")];
    const shown = figures.map(({ whole, piece }) => `${whole.toFixed(1)} / ${piece.toFixed(1)}`);
    console.log(`${kind} (${text.length} characters): ${shown.join("; ")}`);
  }
}

const { values } = parseArgs({
  options: {
    /** CPU time instead of what is kept. */
    cpu: { type: "boolean", default: false },
    /** JSON lines of `{id, type, text, facts}`. Default: made-up documents. */
    data: { type: "string" },
    /** `even` or `odd`: every other document of each type. */
    half: { type: "string" },
    limits: { type: "string", default: "2000,4000,8000" },
  },
});

async function printScores(): Promise<void> {
  const seen = new Map<string, number>();
  const documents = (await readDocuments(values.data)).filter(({ type }) => {
    const place = seen.get(type) ?? 0;
    seen.set(type, place + 1);
    return values.half === undefined || (place % 2 === 0) === (values.half === "even");
  });
  console.log(`${documents.length} documents, facts kept in %`);
  for (const limit of values.limits.split(",").map(Number)) {
    for (const [name, way] of Object.entries(WAYS)) {
      const figures = [...score(documents, limit, way)].map(([type, kept]) => `${type} ${(kept * 100).toFixed(1)}`);
      console.log(`${limit} characters, ${name}: ${figures.join(", ")}`);
    }
  }
}

if (values.cpu) printCosts();
else await printScores();
