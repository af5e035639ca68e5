import { stringifyJson } from "../../core/json.ts";
import type { Column } from "./table.ts";

/** Columns without those that repeat others. */
export interface OwnColumns {
  readonly columns: readonly Column[];
  /** Objects whose columns hold in every row what those of another object hold. */
  readonly same: readonly { readonly path: readonly string[]; readonly as: string }[];
}

/** Fewest columns of an object that is told as the same as another. */
const LEAST_COLUMNS = 3;

/** Rows of which nobody looks for repetition: there the table is narrow, and looking is dear. */
const MAX_ROWS = 2_000;

/** Leaves out objects that are in every row the same as one further to the left, such as the author who is the owner. */
export function withoutRepeated(columns: readonly Column[]): OwnColumns {
  const nested = columns.filter(({ path, cells }) => path.length > 1 && cells.length <= MAX_ROWS);
  const prints = new Map(nested.map((column) => [column, printOf(column)]));
  const objects = new Map<string, { readonly path: readonly string[]; readonly columns: Column[] }>();
  for (const column of nested) {
    for (let depth = 1; depth < column.path.length; depth++) {
      const path = column.path.slice(0, depth);
      const key = path.join("\u0001");
      const object = objects.get(key);
      if (object === undefined) objects.set(key, { path, columns: [column] });
      else object.columns.push(column);
    }
  }
  const first = new Map<string, readonly string[]>();
  const gone = new Set<Column>();
  const same: { path: readonly string[]; as: string }[] = [];
  for (const { path, columns: own } of objects.values()) {
    if (own.length < LEAST_COLUMNS || own.some((column) => gone.has(column))) continue;
    const print = own.map((column) => `${column.path.slice(path.length).join(".")}\u0002${prints.get(column) ?? ""}`);
    const known = first.get(print.join("\u0003"));
    if (known === undefined) {
      first.set(print.join("\u0003"), path);
      continue;
    }
    same.push({ path, as: known.join(".") });
    for (const column of own) gone.add(column);
  }
  return { columns: columns.filter((column) => !gone.has(column)), same };
}

function printOf({ cells }: Column): string {
  return cells.map((cell) => (cell === undefined ? "" : stringifyJson(cell))).join("\u0001");
}
