import { isJsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import { rankRows } from "./choose-rows.ts";
import { type ColumnFacts, columnFacts, MANY_COLUMNS } from "./columns.ts";
import { jsonTree } from "./json-tree.ts";
import { outline } from "./outline.ts";
import type { Question } from "./question.ts";
import { type OwnColumns, withoutRepeated } from "./same-columns.ts";
import type { Column, Table } from "./table.ts";
import { fillRows, widthOf } from "./table-rows.ts";
import type { Work } from "./work.ts";

/** A table within its budget. */
export interface TableText {
  readonly text: string;
  readonly rowsShown: number;
}

/** The share that is kept for what all rows have in common. */
const LEAST_SAME = 0.25;

/** Room that rows leave is for columns again, where it is worth the while. */
const LEAST_LEFT = 40;

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
  const title = titleOf(whole, facts.length, budget);
  // Many columns of few rows are told by column; of many rows, more of them are shown.
  const share = 0.44 + (0.26 * facts.length) / (facts.length + table.rows);
  const most = Math.floor((budget - title.length) * share);
  let summary = yield* columnsText({ facts, same }, most, question);
  yield;
  const room = budget - title.length - summary.length - 3;
  const columns = chooseColumns(table, facts, ranking.columnHits, room);
  // A key names its row as well as a number does.
  const numbered = !facts.some(({ unique, column }) => unique && columns.includes(column));
  const head = [...(numbered ? ["#"] : []), ...shortNames(columns, table.columns)].join("\t");
  const width = columns.reduce((sum, column) => sum + widthOf(column), 4);
  const rows = fillRows(
    { columns, numbered, question },
    { ranking, rows: table.rows, room: room - head.length, width },
  );
  yield;
  const left = room - head.length - rows.size;
  if (left > LEAST_LEFT && rows.shown > 0) summary = yield* columnsText({ facts, same }, most + left, question);
  const parts = [title, summary, ...(rows.shown === 0 ? [] : [head, ...rows.lines])];
  return { text: parts.filter((part) => part !== "").join("\n"), rowsShown: rows.shown };
}

/** What a table is; shorter where there is no room, so that no count stands without what it counts. */
function titleOf({ label, rows, columns, ignored }: Table, told: number, budget: number): string {
  const short = `${label}: ${rows} rows`;
  const most = told > MANY_COLUMNS ? "; most frequent value of each" : "";
  const titles = [`${short}, ${columns.length}${ignored > 0 ? "+" : ""} fields${most}`, short];
  return titles.find((title) => title.length <= budget) ?? "";
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
  // What nearly all rows hold is told by column.
  const worth = ({ column, weight, usual }: ColumnFacts): number =>
    weight + (hits.get(column.name) ?? 0) * 5 - usual * USUAL;
  const varying = facts.filter(({ constant, named }) => constant === undefined || named);
  const order = varying.toSorted((a, b) => worth(b) - worth(a));
  const rows = Math.min(table.rows, LEAST_ROWS);
  const chosen = new Set<Column>();
  let width = 4;
  const key = keyOf(facts);
  for (const { column } of key === undefined ? order : [key, ...order]) {
    if (chosen.has(column)) continue;
    const more = widthOf(column);
    if (chosen.size >= 3 && (width + more) * rows + (column.path.at(-1)?.length ?? 0) > room * 0.85) continue;
    chosen.add(column);
    width += more + (column.path.at(-1)?.length ?? 0) / rows;
  }
  return table.columns.filter((column) => chosen.has(column));
}

/** What a column is worth less whose rows all hold the same. */
const USUAL = 4;

/** Longest cells of a column that names rows. */
const KEY_WIDTH = 40;

/** The first column that tells rows apart in few characters: without it, nobody knows what the others are about. */
function keyOf(facts: readonly ColumnFacts[]): ColumnFacts | undefined {
  return facts.find(({ unique, column }) => unique && widthOf(column) <= KEY_WIDTH && column.path.length === 1);
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
