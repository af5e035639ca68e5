import type { JsonValue } from "../../core/json.ts";
import type { ColumnFacts } from "./columns.ts";
import { spread } from "./json-nodes.ts";
import type { Question, Term } from "./question.ts";
import { isScalar } from "./scalar-text.ts";
import type { Table } from "./table.ts";
import { TextIndex } from "./text-index.ts";
import type { Work } from "./work.ts";

/** Rows in the order of their worth, and columns in which the question finds a value. */
export interface RowRanking {
  /** Rows that stand out, best first. */
  readonly ranked: readonly number[];
  /** How many of `ranked` the question asks for. */
  readonly asked: number;
  /** By column: how much of what is asked for stands in its cells. */
  readonly columnHits: ReadonlyMap<string, number>;
}

/** Ranks rows: what the question asks for, then extremes and rare values, the first and the last. */
export function* rankRows(table: Table, facts: readonly ColumnFacts[], question: Question): Work<RowRanking> {
  const scores = new Float64Array(table.rows);
  for (const { striking, constant } of facts) {
    if (constant !== undefined) continue;
    for (const row of striking) scores[row] = (scores[row] ?? 0) + 1 / striking.length + 0.2;
  }
  scores[0] = (scores[0] ?? 0) + 3;
  scores[table.rows - 1] = (scores[table.rows - 1] ?? 0) + 2.5;
  const { relevance, columnHits } = yield* relevant(table.rows, facts, question);
  let asked = 0;
  const ranked: number[] = [];
  for (const [row, score] of scores.entries()) {
    const asks = relevance[row] ?? 0;
    if (asks > 0) asked++;
    if (asks > 0 || score > 0) ranked.push(row);
    scores[row] = score + asks * 20;
  }
  ranked.sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
  return { ranked, asked, columnHits };
}

interface Asked {
  readonly relevance: Float64Array;
  readonly columnHits: ReadonlyMap<string, number>;
}

/** Words that stand in few rows count most, twice where they are a whole cell; words of half of the rows tell nothing. */
function* relevant(rows: number, facts: readonly ColumnFacts[], { terms }: Question): Work<Asked> {
  const relevance = new Float64Array(rows);
  const columnHits = new Map<string, number>();
  if (terms.length === 0) return { relevance, columnHits };
  const indexes: ColumnIndex[] = [];
  for (const { column, groups } of facts) {
    const texts = groups.firsts.map((row) => plainCell(column.cells[row]));
    indexes.push({ name: column.name, groups: groups.of, index: new TextIndex(texts) });
    yield;
  }
  const most = Math.log(1 + rows);
  for (const term of terms) {
    const matches = new Float64Array(rows);
    yield* matchRows(term, { indexes, matches, columnHits });
    const count = matches.reduce((sum, match) => sum + (match > 0 ? 1 : 0), 0);
    if (count === 0 || count > rows * 0.5) continue;
    const idf = Math.log(1 + rows / count) / most;
    for (let row = 0; row < rows; row++)
      relevance[row] = (relevance[row] ?? 0) + (matches[row] ?? 0) * term.weight * idf;
  }
  return { relevance, columnHits };
}

/** The different cells of a column, each once. */
interface ColumnIndex {
  readonly name: string;
  readonly index: TextIndex;
  /** By row: which of the cells it has; -1: none. */
  readonly groups: Int32Array;
}

interface Matching {
  readonly indexes: readonly ColumnIndex[];
  /** By row: how well the best of its cells holds the term. */
  readonly matches: Float64Array;
  readonly columnHits: Map<string, number>;
}

/** Notes the rows and columns that hold a term. */
function* matchRows(term: Term, { indexes, matches, columnHits }: Matching): Work<void> {
  for (const { name, index, groups } of indexes) {
    const byGroup = new Float64Array(index.size);
    let best = 0;
    index.visit(term, (group, match) => {
      byGroup[group] = match;
      if (match > best) best = match;
    });
    if (best === 0) continue;
    for (let row = 0; row < groups.length; row++) {
      const match = byGroup[groups[row] ?? -1] ?? 0;
      if (match > (matches[row] ?? 0)) matches[row] = match;
    }
    columnHits.set(name, Math.max(columnHits.get(name) ?? 0, best * term.weight));
    yield;
  }
}

function plainCell(cell: JsonValue | undefined): string {
  if (typeof cell === "string") return cell;
  return isScalar(cell) && cell !== null ? String(cell) : "";
}

/** Rows that may be too long for what is left, before nobody looks for a shorter one. */
const MAX_MISSES = 12;

/** Rows to show, in their order: the best of the ranking, and others evenly spread, as long as `add` finds room. */
export function pickRows(ranking: RowRanking, rows: number, fit: (row: number) => boolean, room: number): number[] {
  const picked = new Set<number>();
  const add = (row: number): boolean => {
    if (picked.has(row)) return true;
    if (!fit(row)) return false;
    picked.add(row);
    return true;
  };
  const first = Math.max(6, ranking.asked, Math.floor(room * 0.4));
  for (const row of ranking.ranked.slice(0, first)) if (!add(row)) break;
  let misses = 0;
  for (let most = room; most > 0 && misses < MAX_MISSES; most = Math.floor(most / 2)) {
    for (const row of spread(rows, Math.min(rows, most))) if (!add(row) && ++misses >= MAX_MISSES) break;
    if (most >= rows) break;
  }
  return sorted(picked);
}

function sorted(rows: ReadonlySet<number>): number[] {
  return [...rows].toSorted((a, b) => a - b);
}
