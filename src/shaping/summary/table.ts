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

/** A name within rows: a column where it holds values, further names where it holds objects. */
interface Place {
  readonly path: readonly string[];
  readonly within: Map<string, Place>;
  cells: (JsonValue | undefined)[] | undefined;
}

/** Columns as they are found. */
interface Growing {
  readonly rows: number;
  /** In the order in which they were found. */
  readonly found: Place[];
  ignored: boolean;
}

/** A table of objects; objects within become columns of their own. */
export function* tableOfObjects(label: string, rows: readonly JsonObject[]): Work<Table> {
  const root: Place = { path: [], within: new Map(), cells: undefined };
  const growing: Growing = { rows: rows.length, found: [], ignored: false };
  for (const [i, row] of rows.entries()) {
    fill(row, root, i, growing);
    if (i % 100 === 0) yield;
  }
  const columns = growing.found.map(({ path, cells }) => ({ path, name: path.join("."), cells: cells ?? [] }));
  return { label, rows: rows.length, columns, ignored: growing.ignored ? 1 : 0 };
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

/** Puts the values of a row into their columns. */
function fill(object: JsonObject, { path, within }: Place, row: number, growing: Growing): void {
  for (const name of Object.keys(object)) {
    const value = object[name];
    if (value === undefined) continue;
    let place = within.get(name);
    if (place === undefined) {
      place = { path: [...path, name], within: new Map(), cells: undefined };
      within.set(name, place);
    }
    if (isTakenApart(value, place.path.length)) fill(value, place, row, growing);
    else if (place.cells !== undefined) place.cells[row] = value;
    else if (growing.found.length >= MAX_COLUMNS) growing.ignored = true;
    else {
      place.cells = Array.from({ length: growing.rows });
      place.cells[row] = value;
      growing.found.push(place);
    }
  }
}

function isTakenApart(value: JsonValue, depth: number): value is JsonObject {
  return !isScalar(value) && isJsonObject(value) && depth < MAX_DEPTH && Object.keys(value).length > 0;
}
