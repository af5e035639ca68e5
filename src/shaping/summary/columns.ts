import { isJsonArray, type JsonValue, stringifyJson } from "../../core/json.ts";
import { excerpt, flatLine } from "./excerpt.ts";
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
  /** The share of the rows that hold the most frequent value, from 0 to 1. */
  readonly usual: number;
  readonly groups: Groups;
  /** Whether the question names it. */
  readonly named: boolean;
}

/** A column with at most so many different values is counted by value. */
const MAX_VALUES = 12;

/** Most values that are counted in words. */
const SHOWN_VALUES = 6;

/** A table of more columns has fewer of the values of each counted in words. */
export const MANY_COLUMNS = 40;
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
  if (groups.size === 1 && groups.counts[0] === column.cells.length && isOneValue(column.cells)) {
    return {
      column,
      constant: column.cells[0] ?? null,
      text: "",
      striking: [],
      weight,
      named,
      unique: false,
      usual: 1,
      groups,
    };
  }
  const numbers = numericFacts(column, groups.size);
  const unique = groups.size === column.cells.length && !groups.hasNull;
  const most = groups.counts.reduce((top, count) => Math.max(top, count), 0);
  const usual = most / Math.max(1, column.cells.length);
  return {
    column,
    constant: undefined,
    weight,
    named,
    unique,
    usual,
    groups,
    ...(numbers ?? valueFacts(column, groups, shown)),
  };
}

/** Whether cells that are told alike, such as two lists of three objects, are alike. */
function isOneValue(cells: Column["cells"]): boolean {
  const [first] = cells;
  if (first === undefined || isScalar(first)) return true;
  const text = stringifyJson(first);
  return cells.every((cell) => cell !== undefined && stringifyJson(cell) === text);
}

/** Rows that are told the same in a column, by number of the group. */
export interface Groups {
  readonly size: number;
  /** By group: how many rows it has. */
  readonly counts: readonly number[];
  /** By group: its first row. */
  readonly firsts: readonly number[];
  /** By row: its group; -1: none, the row has no cell. */
  readonly of: Int32Array;
  /** Whether a row holds null. */
  readonly hasNull: boolean;
}

function groupsOf(cells: Column["cells"]): Groups {
  const numbers = new Map<JsonValue, number>();
  const counts: number[] = [];
  const firsts: number[] = [];
  const of = new Int32Array(cells.length).fill(-1);
  for (let row = 0; row < cells.length; row++) {
    const cell = cells[row];
    if (cell === undefined) continue;
    const key = isScalar(cell) ? cell : valueText(cell, 200);
    let group = numbers.get(key);
    if (group === undefined) {
      group = counts.length;
      numbers.set(key, group);
      firsts.push(row);
      counts.push(0);
    }
    counts[group] = (counts[group] ?? 0) + 1;
    of[row] = group;
  }
  return { size: counts.length, counts, firsts, of, hasNull: numbers.has(null) };
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
  { counts, firsts, of }: Groups,
  most: number,
): Pick<ColumnFacts, "text" | "striking"> {
  const counted = (group: number): string =>
    `${cellText(cells[firsts[group] ?? 0], 40) || "null"} ×${counts[group] ?? 0}`;
  if (counts.length > MAX_VALUES) {
    const top = counts.reduce((best, count, group) => (count > (counts[best] ?? 0) ? group : best), 0);
    const isOften = (counts[top] ?? 0) >= Math.max(2, cells.length * 0.05);
    return { text: `${counts.length} distinct${isOften ? `, most often ${counted(top)}` : ""}`, striking: [] };
  }
  const sorted = [...counts.keys()].toSorted((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0));
  // Of many columns the title says that more values may come.
  const more = sorted.length <= most || most < SHOWN_VALUES ? "" : ` | … ${sorted.length} distinct`;
  const scarce = Math.max(1, cells.length * 0.03);
  const rare = new Set(sorted.filter((group) => (counts[group] ?? 0) <= scarce));
  const striking = rare.size === 0 ? [] : [...of.keys()].filter((row) => rare.has(of[row] ?? -1));
  return { text: sorted.slice(0, most).map(counted).join(" | ") + more, striking };
}

/** A cell as text within a table. */
export function cellText(cell: JsonValue | undefined, width = 60, question?: Question): string {
  if (cell === undefined || cell === null) return "";
  if (typeof cell === "string") return textCell(cell, width, question);
  return isScalar(cell) ? scalarText(cell, width, question) : valueText(cell, width, question);
}

/** A text within a table, without quotes where it cannot be taken for something else or for two cells. */
function textCell(cell: string, width: number, question: Question | undefined): string {
  if (numberOf(cell) !== undefined) return cell;
  const text = excerpt(flatLine(cell), width, question);
  return text === "" || /^"|^(?:true|false|null)$| [|×]/.test(text) ? JSON.stringify(text) : text;
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
