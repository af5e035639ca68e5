import stringWidth from "string-width";

const GAP = "  ";
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/**
 * Lines of a table whose columns stand under each other, also with characters two columns wide. Cells are single lines;
 * with `columns` the last cell is shortened so that a line fits.
 */
export function tableLines(rows: readonly (readonly string[])[], columns?: number): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, stringWidth(cell));
  }
  return rows.map((row) => tableLine(row, widths, columns));
}

/** Cuts text to so many columns, with `…` where something was cut. Painted text must be cut before it is painted. */
export function fitColumns(text: string, columns: number): string {
  if (stringWidth(text) <= columns) return text;
  let kept = "";
  let width = 0;
  for (const { segment } of graphemes.segment(text)) {
    width += stringWidth(segment);
    if (width > columns - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

function tableLine(row: readonly string[], widths: readonly number[], columns: number | undefined): string {
  let line = "";
  let used = 0;
  for (const [index, cell] of row.entries()) {
    const width = widths[index] ?? 0;
    if (index < row.length - 1) {
      line += cell + " ".repeat(width - stringWidth(cell)) + GAP;
      used += width + GAP.length;
    } else {
      // A terminal too narrow for the other columns still gets a little of the last.
      line += columns === undefined ? cell : fitColumns(cell, Math.max(10, columns - used));
    }
  }
  return line.trimEnd();
}
