import { isJsonArray, type JsonValue } from "../../core/json.ts";
import { matchOf, type Question, wordParts } from "./question.ts";
import { dullness, isScalar, scalarText, telling, valueText } from "./scalar-text.ts";
import { type Column, numberOf, type Table } from "./table.ts";
import type { Work } from "./work.ts";

/** A column with what can be said about all of its cells. */
export interface ColumnFacts {
  readonly column: Column;
  /** The value of every row; `undefined`: they differ. */
  readonly constant: JsonValue | undefined;
  /** In words, such as `min 1, max 9, mean 4.5`; empty: nothing that helps. */
  readonly text: string;
  /** Rows that hold the least and the greatest number, or a value that few have. */
  readonly striking: readonly number[];
  /** What it is worth to show. */
  readonly weight: number;
  /** Whether no two rows hold the same. */
  readonly unique: boolean;
  /** Whether the question names it. */
  readonly named: boolean;
}

/** A column with at most so many different values is counted by value. */
const MAX_VALUES = 12;

/** Most values that are counted in words. */
const SHOWN_VALUES = 6;

/** A table of more columns has fewer of the values of each counted in words. */
const MANY_COLUMNS = 40;
const SHOWN_OF_MANY = 1;

/** Looks at the cells of every column. */
export function* columnFacts(table: Table, question: Question): Work<ColumnFacts[]> {
  const facts: ColumnFacts[] = [];
  const shown = table.columns.length > MANY_COLUMNS ? SHOWN_OF_MANY : SHOWN_VALUES;
  for (const [i, column] of table.columns.entries()) {
    facts.push(factsOf(column, i, { question, shown }));
    yield;
  }
  return facts;
}

interface FactsOptions {
  readonly question: Question;
  /** Most values that are counted in words. */
  readonly shown: number;
}

function factsOf(column: Column, index: number, { question, shown }: FactsOptions): ColumnFacts {
  const groups = groupsOf(column.cells);
  const { weight, named } = weightOf(column, index, question);
  const [only] = groups.size === 1 ? groups.values() : [];
  if (only !== undefined && only.length === column.cells.length) {
    return { column, constant: column.cells[0] ?? null, text: "", striking: [], weight, named, unique: false };
  }
  const numbers = numericFacts(column, groups.size);
  const unique = groups.size === column.cells.length && !groups.has(null);
  return { column, constant: undefined, weight, named, unique, ...(numbers ?? valueFacts(column, groups, shown)) };
}

/** Rows by what their cell holds; rows without a cell are left out. */
function groupsOf(cells: Column["cells"]): Map<JsonValue, number[]> {
  const groups = new Map<JsonValue, number[]>();
  for (const [row, cell] of cells.entries()) {
    if (cell === undefined) continue;
    const key = isScalar(cell) ? cell : valueText(cell, 200);
    const rows = groups.get(key);
    if (rows === undefined) groups.set(key, [row]);
    else rows.push(row);
  }
  return groups;
}

function numericFacts({ cells, name }: Column, distinct: number): Pick<ColumnFacts, "text" | "striking"> | undefined {
  if (distinct <= 5) return undefined;
  const { count, others, sum, least, most } = numbersOf(cells);
  if (count < 2 || others > count * 0.2) return undefined;
  // The mean of numbers that only tell things apart says nothing.
  const mean = /(?:^|[^a-z])id$|Id$/.test(name) ? "" : `, mean ${meanText(sum, count)}`;
  const text = `min ${cellText(cells[least.row])}, max ${cellText(cells[most.row])}${mean}`;
  return { text, striking: [least.row, most.row] };
}

interface Numbers {
  count: number;
  /** Cells that hold something else. */
  others: number;
  sum: number;
  least: { readonly row: number; readonly value: number };
  most: { readonly row: number; readonly value: number };
}

function numbersOf(cells: Column["cells"]): Numbers {
  const found: Numbers = {
    count: 0,
    others: 0,
    sum: 0,
    least: { row: -1, value: Number.POSITIVE_INFINITY },
    most: { row: -1, value: Number.NEGATIVE_INFINITY },
  };
  for (const [row, cell] of cells.entries()) {
    if (cell === undefined || cell === null || cell === "") continue;
    const value = numberOf(cell);
    if (value === undefined) {
      if (++found.others > cells.length * 0.2) break;
      continue;
    }
    found.count++;
    found.sum += value;
    if (value < found.least.value) found.least = { row, value };
    if (value > found.most.value) found.most = { row, value };
  }
  return found;
}

/** A mean, rounded to five digits. */
function meanText(sum: number, count: number): string {
  return String(Number((sum / count).toPrecision(5)));
}

function valueFacts(
  { cells }: Column,
  groups: ReadonlyMap<JsonValue, readonly number[]>,
  most: number,
): Pick<ColumnFacts, "text" | "striking"> {
  const sorted = [...groups].toSorted((a, b) => b[1].length - a[1].length);
  const scarce = Math.max(1, cells.length * 0.03);
  if (sorted.length > MAX_VALUES) {
    const [top] = sorted;
    const often =
      top !== undefined && top[1].length >= Math.max(2, cells.length * 0.05)
        ? `, most often ${counted(cells, top)}`
        : "";
    return { text: `${sorted.length} distinct${often}`, striking: [] };
  }
  const shown = sorted
    .slice(0, most)
    .map((group) => counted(cells, group))
    .join(" | ");
  const more = sorted.length <= most ? "" : most < SHOWN_VALUES ? " | …" : ` | … ${sorted.length} distinct`;
  const striking = sorted.flatMap(([, rows]) => (rows.length <= scarce ? rows : []));
  return { text: shown + more, striking };
}

function counted(cells: Column["cells"], [, rows]: readonly [JsonValue, readonly number[]]): string {
  return `${cellText(cells[rows[0] ?? 0], 40) || "null"} ×${rows.length}`;
}

/** A cell as text within a table. */
export function cellText(cell: JsonValue | undefined, width = 60, question?: Question): string {
  if (cell === undefined || cell === null) return "";
  if (typeof cell === "string" && numberOf(cell) !== undefined) return cell;
  return isScalar(cell) ? scalarText(cell, width, question) : valueText(cell, width, question);
}

/** What is asked, what says something, what is short and stands far outside comes first. */
function weightOf(column: Column, index: number, { terms }: Question): Pick<ColumnFacts, "weight" | "named"> {
  const last = column.path.at(-1) ?? "";
  const sample = column.cells.slice(0, 20).filter((cell) => cell !== undefined && cell !== null);
  const width = sample.reduce<number>((sum, cell) => sum + Math.min(200, cellText(cell, 200).length), 0);
  let weight = 4 - 0.7 * column.path.length - width / Math.max(1, sample.length) / 30 - Math.min(2, index * 0.01);
  weight += telling(last);
  if (sample.every(isEmptyList)) weight -= 4;
  else weight -= Math.min(...sample.map((cell) => dullness(cell)));
  const key = `${last} ${wordParts(last).join(" ")}`.toLowerCase();
  const path = `${column.name} ${wordParts(column.name).join(" ")}`.toLowerCase();
  const empty = column.cells.reduce<number>((sum, cell) => sum + (cell === undefined || cell === null ? 1 : 0), 0);
  weight -= (2 * empty) / Math.max(1, column.cells.length);
  let asked = 0;
  for (const term of terms) asked += term.weight * (matchOf(key, term) * 10 + matchOf(path, term) * 3);
  return { weight: weight + asked, named: asked >= 10 };
}

function isEmptyList(cell: JsonValue | undefined): boolean {
  return isJsonArray(cell) && cell.length === 0;
}
