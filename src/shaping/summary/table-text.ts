import { isJsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import { pickRows, rankRows } from "./choose-rows.ts";
import { type ColumnFacts, cellText, columnFacts } from "./columns.ts";
import { GAP } from "./excerpt.ts";
import { jsonTree } from "./json-tree.ts";
import { outline } from "./outline.ts";
import type { Question } from "./question.ts";
import { type OwnColumns, withoutRepeated } from "./same-columns.ts";
import type { Column, Table } from "./table.ts";
import type { Work } from "./work.ts";

/** A table within its budget. */
export interface TableText {
  readonly text: string;
  readonly rowsShown: number;
}

/** Widest cell of a row. */
const CELL_WIDTH = 60;

/** The share that is kept for what all rows have in common. */
const LEAST_SAME = 0.25;

/** At least so many rows should fit beside each other's columns. */
const LEAST_ROWS = 8;

/**
 * A table as text: what can be said about each column, then rows with the columns that say most. A field with one value
 * has it in every row.
 */
export function* tableText(whole: Table, budget: number, question: Question): Work<TableText> {
  const { columns: different, same } = withoutRepeated(whole.columns);
  const table = { ...whole, columns: different };
  yield;
  const facts = yield* columnFacts(table, question);
  const ranking = yield* rankRows(table, facts, question);
  const title = `${table.label}: ${table.rows} rows, ${whole.columns.length}${table.ignored > 0 ? "+" : ""} fields`;
  // Many columns of few rows are told by column; of many rows, more of them are shown.
  const share = 0.44 + (0.26 * facts.length) / (facts.length + table.rows);
  const summary = yield* columnsText({ facts, same }, Math.floor((budget - title.length) * share), question);
  yield;
  const room = budget - title.length - summary.length - 3;
  const columns = chooseColumns(table, facts, ranking.columnHits, room);
  // A key names its row as well as a number does.
  const numbered = !facts.some(({ unique, column }) => unique && columns.includes(column));
  const head = [...(numbered ? ["#"] : []), ...shortNames(columns, table.columns)].join("\t");
  const lines = new Map<number, string>();
  let left = room - head.length;
  const fit = (row: number): boolean => {
    const line = (numbered ? `${row}\t` : "") + rowText(row, columns, question);
    if (line.length + 1 > left) return false;
    left -= line.length + 1;
    lines.set(row, line);
    return true;
  };
  const width = columns.reduce((sum, column) => sum + widthOf(column), 4);
  const picked = left > 0 ? pickRows(ranking, table.rows, fit, Math.floor(left / width)) : [];
  yield;
  const rows = picked.flatMap((row) => lines.get(row) ?? []);
  const parts = [title, summary, ...(rows.length === 0 ? [] : [head, ...rows])];
  return { text: parts.filter((part) => part !== "").join("\n"), rowsShown: rows.length };
}

interface Said {
  readonly facts: readonly ColumnFacts[];
  readonly same: OwnColumns["same"];
}

/** What every row holds, as nested names, then what can be said of the cells of other columns. */
function* columnsText({ facts, same: repeated }: Said, budget: number, question: Question): Work<string> {
  const differing = facts.flatMap(({ column, constant, text, weight }) => {
    if (constant !== undefined || text === "") return [];
    return [{ path: column.path, text, score: weight + 6, alone: text.length > 40 || facts.length <= 12 }];
  });
  for (const { path, as } of repeated) differing.push({ path, text: `same as ${as}`, score: 5, alone: false });
  const need = differing.reduce((sum, { path, text }) => sum + text.length + (path.at(-1)?.length ?? 0) + 6, 0);
  const same = yield* sameText(facts, Math.floor(Math.max(budget * LEAST_SAME, budget - need)), question);
  const rest = outline(differing, budget - same.length - 1).text;
  return [same, rest].filter((text) => text !== "").join("\n");
}

function* sameText(facts: readonly ColumnFacts[], budget: number, question: Question): Work<string> {
  const same: Record<string, JsonValue> = {};
  for (const { column, constant } of facts) {
    if (constant !== undefined) plant(same, column.path, constant);
  }
  if (Object.keys(same).length === 0) return "";
  const title = "in every row:";
  const tree = yield* jsonTree(same, { budget: budget - title.length - 1, question, elsewhere: () => undefined });
  return tree.text === "" ? "" : `${title}\n${tree.text}`;
}

/** Puts a value where its path says. */
function plant(object: Record<string, JsonValue>, path: readonly string[], value: JsonValue): void {
  const [name = "", ...rest] = path;
  const known = ownValue(object, name);
  if (rest.length === 0) own(object, name, value);
  else {
    const inner: Record<string, JsonValue> = isJsonObject(known) ? { ...known } : {};
    plant(inner, rest, value);
    own(object, name, inner);
  }
}

function own(object: Record<string, JsonValue>, name: string, value: JsonValue): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Columns that say most, in their order, as many as leave room for some rows. */
function chooseColumns(
  table: Table,
  facts: readonly ColumnFacts[],
  hits: ReadonlyMap<string, number>,
  room: number,
): Column[] {
  const worth = ({ column, weight }: ColumnFacts): number => weight + (hits.get(column.name) ?? 0) * 5;
  const varying = facts.filter(({ constant, named }) => constant === undefined || named);
  const order = varying.toSorted((a, b) => worth(b) - worth(a));
  const rows = Math.min(table.rows, LEAST_ROWS);
  const chosen = new Set<Column>();
  let width = 4;
  for (const { column } of order) {
    const more = widthOf(column);
    if (chosen.size >= 3 && (width + more) * rows + (column.path.at(-1)?.length ?? 0) > room * 0.85) continue;
    chosen.add(column);
    width += more + (column.path.at(-1)?.length ?? 0) / rows;
  }
  return table.columns.filter((column) => chosen.has(column));
}

function endOf(path: readonly string[], depth: number): string {
  return path.slice(-depth).join(".");
}

/** The last names of each column's path that tell it from all others. */
function shortNames(columns: readonly Column[], all: readonly Column[]): string[] {
  const ends = new Map<string, number>();
  for (const { path } of all) {
    for (let depth = 1; depth <= path.length; depth++) {
      const end = endOf(path, depth);
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
  }
  return columns.map(({ path, name }) => {
    for (let depth = 1; depth < path.length; depth++) if (ends.get(endOf(path, depth)) === 1) return endOf(path, depth);
    return name;
  });
}

function widthOf({ cells }: Column): number {
  const sample = cells.slice(0, 30);
  const sum = sample.reduce<number>((total, cell) => total + cellText(cell, CELL_WIDTH).length, 0);
  return sum / Math.max(1, sample.length) + 1;
}

function rowText(row: number, columns: readonly Column[], question: Question): string {
  const cells = columns.map(({ cells: all }) => (all[row] === "" ? "" : cellText(all[row], CELL_WIDTH, question)));
  return cells.join("\t").trimEnd() || GAP;
}
