import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../core/json.ts";
import { jsonTree } from "./json-tree.ts";
import type { Question } from "./question.ts";
import { isScalar } from "./scalar-text.ts";
import { tableOfObjects } from "./table.ts";
import { tableText } from "./table-text.ts";
import type { Work } from "./work.ts";

/** JSON within its budget. */
export interface JsonText {
  readonly text: string;
  /** What stands in it of what, in words. */
  readonly shown: string;
}

/** A list of fewer objects is told of one by one. */
const LEAST_ROWS = 8;

/** A list of objects that makes up less of the whole is told of like anything else. */
const LEAST_SHARE = 0.08;

/** Most tables of one value. */
const MAX_TABLES = 4;

/** About the length of a number. */
const INTEGER = 4;
const FRACTION = 8;

interface FoundTable {
  readonly label: string;
  readonly rows: readonly JsonObject[];
  readonly size: number;
}

/** A JSON value as text: long lists of objects as tables, the rest as nested names. */
export function* jsonText(value: JsonValue, budget: number, question: Question): Work<JsonText> {
  const found: FoundTable[] = [];
  const size = measure(value, "$", found);
  yield;
  const tables = found
    .filter((table) => table.size >= size * LEAST_SHARE)
    .toSorted((a, b) => b.size - a.size)
    .slice(0, MAX_TABLES);
  const [whole] = tables;
  if (whole !== undefined && whole.rows === value) {
    const made = yield* tableText(yield* tableOfObjects("$", whole.rows), budget, question);
    return { text: made.text, shown: `${made.rowsShown} of ${whole.rows.length} rows` };
  }
  const title = isJsonArray(value) ? `$: list of ${value.length}` : "";
  const share = tables.reduce((sum, table) => sum + table.size, 0) / Math.max(1, size);
  const treeBudget = Math.floor(
    (budget - title.length - 1) * (tables.length === 0 ? 1 : Math.max(0.12, 1 - share * 1.05)),
  );
  const labels = new Map<JsonValue, string>(tables.map(({ rows }) => [rows, `${rows.length} rows, see the table`]));
  const tree = yield* jsonTree(value, { budget: treeBudget, question, elsewhere: (part) => labels.get(part) });
  const texts = [title, tree.text].filter((text) => text !== "");
  let left = budget - texts.join("\n").length - 1;
  const shown = [`${tree.said} of ${tree.total} values`];
  let weight = tables.reduce((sum, table) => sum + Math.sqrt(table.size), 0);
  for (const table of tables) {
    const own = Math.floor((left * Math.sqrt(table.size)) / weight);
    const made = yield* tableText(yield* tableOfObjects(table.label, table.rows), own - 1, question);
    weight -= Math.sqrt(table.size);
    left -= made.text.length + 1;
    texts.push(made.text);
    shown.push(`${made.rowsShown} of ${table.rows.length} rows of ${table.label}`);
  }
  return { text: texts.join("\n"), shown: shown.join(", ") };
}

/** About the length of the value's JSON text; long lists of objects, the outermost alone, go to `found`. */
function measure(value: JsonValue, label: string, found: FoundTable[] | undefined): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value === "number") return Number.isInteger(value) ? INTEGER : FRACTION;
  if (isJsonArray(value)) return measureList(value, label, found);
  if (!isJsonObject(value)) return String(value).length;
  let size = 2;
  for (const name of Object.keys(value)) {
    const item = value[name] ?? null;
    // Where nothing is looked for, or could be found, there is no need of a label.
    const within = found === undefined || isScalar(item) ? "" : `${label}.${name}`;
    size += name.length + 4 + measure(item, within, found);
  }
  return size;
}

function measureList(list: readonly JsonValue[], label: string, found: FoundTable[] | undefined): number {
  const rows = found !== undefined && list.length >= LEAST_ROWS && list.every(isJsonObject) ? list : undefined;
  const inner = rows === undefined ? found : undefined;
  let size = 2;
  for (const [i, item] of list.entries()) {
    const within = inner === undefined || isScalar(item) ? "" : `${label}[${i}]`;
    size += 1 + measure(item, within, inner);
  }
  if (rows !== undefined) found?.push({ label, rows, size });
  return size;
}
