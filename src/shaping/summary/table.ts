import { isJsonObject, type JsonObject, type JsonValue } from "../../core/json.ts";
import { isScalar } from "./scalar-text.ts";
import type { Work } from "./work.ts";

/** One column: cells by row, `undefined` where a row has none. */
export interface Column {
  /** Names from the outermost in. */
  readonly path: readonly string[];
  /** The names, joined by dots. */
  readonly name: string;
  readonly cells: readonly (JsonValue | undefined)[];
}

/** Rows with columns. */
export interface Table {
  /** Where the table stands, such as `$.items`. */
  readonly label: string;
  readonly rows: number;
  readonly columns: readonly Column[];
  /** How many columns were not looked at. */
  readonly ignored: number;
}

/** Most columns that are looked at. */
const MAX_COLUMNS = 400;

/** Objects are taken apart down to this depth. */
const MAX_DEPTH = 6;

/** A table of objects; objects within become columns of their own. */
export function* tableOfObjects(label: string, rows: readonly JsonObject[]): Work<Table> {
  const columns = new Map<string, { path: readonly string[]; cells: (JsonValue | undefined)[] }>();
  let ignored = 0;
  const put = (row: number, path: readonly string[], value: JsonValue): void => {
    const name = path.join(".");
    let column = columns.get(name);
    if (column === undefined) {
      if (columns.size >= MAX_COLUMNS) {
        ignored++;
        return;
      }
      column = { path, cells: Array.from({ length: rows.length }) };
      columns.set(name, column);
    }
    column.cells[row] = value;
  };
  for (const [i, row] of rows.entries()) {
    flatten(row, [], (path, value) => put(i, path, value));
    if (i % 100 === 0) yield;
  }
  return {
    label,
    rows: rows.length,
    columns: [...columns].map(([name, column]) => ({ name, ...column })),
    ignored: ignored > 0 ? 1 : 0,
  };
}

/** A table of texts. Cells that are numbers count as numbers, and are shown as they are written. */
export function tableOfTexts(label: string, header: readonly string[], rows: readonly (readonly string[])[]): Table {
  const columns = header.slice(0, MAX_COLUMNS).map((name, i) => ({
    path: [name],
    name,
    cells: rows.map((row) => row[i]),
  }));
  return { label, rows: rows.length, columns, ignored: Math.max(0, header.length - MAX_COLUMNS) };
}

/** The number a cell is, also where it is written as text; `undefined`: none. */
export function numberOf(cell: JsonValue | undefined): number | undefined {
  if (typeof cell === "number") return cell;
  if (typeof cell !== "string" || !/^-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(cell)) return undefined;
  const value = Number(cell);
  return Number.isFinite(value) ? value : undefined;
}

function flatten(
  object: JsonObject,
  path: readonly string[],
  put: (path: readonly string[], value: JsonValue) => void,
): void {
  for (const name of Object.keys(object)) {
    const value = object[name];
    if (value === undefined) continue;
    const here = [...path, name];
    if (!isScalar(value) && isJsonObject(value) && here.length < MAX_DEPTH && Object.keys(value).length > 0) {
      flatten(value, here, put);
    } else put(here, value);
  }
}
