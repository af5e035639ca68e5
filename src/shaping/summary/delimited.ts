import { type Table, tableOfTexts } from "./table.ts";

/** Lines looked at to tell whether a text is delimited. */
const SAMPLE_LINES = 20;

/** What separates cells, most likely first. */
const DELIMITERS = [",", "\t", ";", "|"];

/** The sign that separates the cells of a text whose first lines all have equally many; `undefined`: it is no table. */
export function delimiterOf(text: string): string | undefined {
  const sample = parseDelimitedLines(text, SAMPLE_LINES);
  if (sample.length < 4) return undefined;
  return DELIMITERS.find((delimiter) => {
    const widths = sample.map((line) => splitLine(line, delimiter).length);
    const [first = 0] = widths;
    // Commas stand in prose too: there lines differ, and a header has no spaces after them.
    return first >= 2 && widths.every((width) => width === first) && isHeader(splitLine(sample[0] ?? "", delimiter));
  });
}

/** Reads delimited text: the first line names the columns. Rows with another number of cells are told as `skipped`. */
export function parseDelimited(text: string, delimiter: string): { readonly table: Table; readonly skipped: number } {
  const records = readRecords(text, delimiter);
  const [header = [], ...rows] = records;
  const whole = rows.filter((row) => row.length === header.length);
  return { table: tableOfTexts("table", uniqueNames(header), whole), skipped: rows.length - whole.length };
}

function isHeader(cells: readonly string[]): boolean {
  return (
    cells.every((cell) => cell.length <= 80 && !/^[-\d.\s]+$/.test(cell)) && cells.some((cell) => cell.trim() !== "")
  );
}

/** Names of columns; those that stand twice, or are empty, get their place. */
export function uniqueNames(header: readonly string[]): string[] {
  const seen = new Set<string>();
  return header.map((name, i) => {
    const clean = name.replace(/^\uFEFF/, "").trim();
    const own = clean === "" || seen.has(clean) ? `${clean}#${i}` : clean;
    seen.add(own);
    return own;
  });
}

function parseDelimitedLines(text: string, most: number): string[] {
  return text
    .slice(0, 20_000)
    .split(/\r?\n/)
    .slice(0, most)
    .filter((line, i, all) => line.trim() !== "" && (i < all.length - 1 || text.length < 20_000));
}

function splitLine(line: string, delimiter: string): readonly string[] {
  return readRecords(line, delimiter)[0] ?? [];
}

/** What separates the cells of a header. */
export function headerDelimiter(header: string): string {
  return DELIMITERS.find((delimiter) => splitLine(header, delimiter).length > 1) ?? ",";
}

/** Records as RFC 4180 has them: a cell in quotes may hold the delimiter, line breaks, and quotes written twice. */
export function readRecords(text: string, delimiter: string): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  let at = 0;
  while (at < text.length) {
    const { cell, end } = text.charCodeAt(at) === 34 ? quotedCell(text, at) : plainCell(text, at, delimiter);
    record.push(cell);
    at = end + 1;
    if (text[end] === delimiter && at < text.length) continue;
    if (text[end] === delimiter) record.push("");
    if (text[end] === "\r" && text[at] === "\n") at++;
    if (record.length > 1 || cell !== "") records.push(record);
    record = [];
  }
  return records;
}

function plainCell(text: string, start: number, delimiter: string): { readonly cell: string; readonly end: number } {
  const sign = delimiter.charCodeAt(0);
  let end = start;
  for (; end < text.length; end++) {
    const unit = text.charCodeAt(end);
    if (unit === sign || unit === 10 || unit === 13) break;
  }
  return { cell: text.slice(start, end), end };
}

function quotedCell(text: string, start: number): { readonly cell: string; readonly end: number } {
  let end = start + 1;
  for (;;) {
    end = text.indexOf('"', end);
    if (end < 0) return { cell: text.slice(start + 1), end: text.length };
    if (text.charCodeAt(end + 1) !== 34) break;
    end += 2;
  }
  return { cell: text.slice(start + 1, end).replaceAll('""', '"'), end: end + 1 };
}
