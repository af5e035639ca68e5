import { pickRows, type RowRanking } from "./choose-rows.ts";
import { cellText } from "./columns.ts";
import { GAP } from "./excerpt.ts";
import type { Question } from "./question.ts";
import type { Column } from "./table.ts";

/** Rows as lines of cells, a tab between two. */
export interface TableRows {
  readonly lines: readonly string[];
  /** How many rows that are: equal ones share a line. */
  readonly shown: number;
  /** UTF-16 units of the lines and their ends. */
  readonly size: number;
}

/** How a row is written. */
export interface RowStyle {
  readonly columns: readonly Column[];
  /** Begins with the number of the row. */
  readonly numbered: boolean;
  readonly question: Question;
}

/** Which rows are written. */
export interface RowChoice {
  readonly ranking: RowRanking;
  /** How many rows there are. */
  readonly rows: number;
  /** Most UTF-16 units, line ends included. */
  readonly room: number;
  /** About the length of a row. */
  readonly width: number;
}

/** Widest cell of a row. */
const CELL_WIDTH = 60;

/** Stands for the value of the row above. */
const DITTO = "〃";

/** Shorter values are written again. */
const LEAST_DITTO = 6;

/** After so many rows a value is written again: a reader should not have to look far. */
const MAX_DITTOS = 8;

/** How often rows are chosen again with what the last choice was off by. */
const ROUNDS = 4;

/** As many of the best rows as there is room for, in their order. */
export function fillRows(style: RowStyle, choice: RowChoice): TableRows {
  const known = new Map<number, readonly string[]>();
  const cellsOf = (row: number): readonly string[] => {
    const cells = known.get(row) ?? rowCells(row, style);
    known.set(row, cells);
    return cells;
  };
  let best: TableRows = { lines: [], shown: 0, size: 0 };
  let estimate = choice.room;
  for (let round = 0; round < ROUNDS && estimate > 0; round++) {
    const picked = pick(choice, estimate, (row) => lineOf(row, cellsOf(row), style.numbered).length + 1);
    const made = written(picked, cellsOf, style.numbered);
    const { size } = made;
    if (size <= choice.room && made.shown > best.shown) best = made;
    if (picked.length === choice.rows && size <= choice.room) break;
    // Rows that are cheaper than they seemed leave room for others.
    const next = Math.floor((estimate * choice.room) / Math.max(1, size)) - (size > choice.room ? choice.width : 0);
    if (size <= choice.room && next < estimate + choice.width) break;
    estimate = next;
  }
  return best;
}

function pick({ ranking, rows, width }: RowChoice, room: number, cost: (row: number) => number): number[] {
  let left = room;
  const fit = (row: number): boolean => {
    const need = cost(row);
    if (need > left) return false;
    left -= need;
    return true;
  };
  return pickRows(ranking, rows, fit, Math.floor(room / width));
}

/** Lines of rows; what a row has from the one above is told by a sign, and rows that are equal share a line. */
function written(picked: readonly number[], cellsOf: (row: number) => readonly string[], numbered: boolean): TableRows {
  const lines: string[] = [];
  const dittos: number[] = [];
  let above: readonly string[] = [];
  let group: number[] = [];
  for (const row of picked) {
    const cells = cellsOf(row);
    if (numbered && group.length > 0 && cells.every((cell, i) => cell === above[i])) {
      group.push(row);
      lines[lines.length - 1] = (lines.at(-1) ?? "").replace(/^[^\t]*/, group.join(","));
      continue;
    }
    group = [row];
    const short = cells.map((cell, i) => {
      const again = cell.length >= LEAST_DITTO && cell === above[i] && (dittos[i] ?? 0) < MAX_DITTOS;
      dittos[i] = again ? (dittos[i] ?? 0) + 1 : 0;
      return again ? DITTO : cell;
    });
    lines.push(lineOf(row, short, numbered));
    above = cells;
  }
  if (lines.some((line) => line.includes(DITTO))) lines.unshift(`(${DITTO}: as above)`);
  return { lines, shown: picked.length, size: lines.reduce((sum, line) => sum + line.length + 1, 0) };
}

function lineOf(row: number, cells: readonly string[], numbered: boolean): string {
  const line = cells.join("\t").trimEnd() || GAP;
  return numbered ? `${row}\t${line}` : line;
}

function rowCells(row: number, { columns, question }: RowStyle): readonly string[] {
  return columns.map(({ cells }) => (cells[row] === "" ? "" : cellText(cells[row], CELL_WIDTH, question)));
}

/** About how wide a column is, the tab included. */
export function widthOf({ cells }: Column): number {
  const sample = cells.slice(0, 30);
  const sum = sample.reduce<number>((total, cell) => total + cellText(cell, CELL_WIDTH).length, 0);
  return sum / Math.max(1, sample.length) + 1;
}
