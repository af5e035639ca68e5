import { type Table, tableOfTexts } from "./table.ts";
import type { Work } from "./work.ts";

/** A page as Markdown, and its tables. */
export interface HtmlParts {
  readonly markdown: string;
  readonly tables: readonly Table[];
}

/** Elements whose text nobody reads. */
const SILENT = new Set(["script", "style", "noscript", "template", "svg", "iframe", "object"]);

/** Elements that begin a new line. */
const BLOCKS = new Set(
  "p div section article header footer main nav aside ul ol dl dt dd table blockquote pre br hr form figure figcaption address details summary title".split(
    " ",
  ),
);

/** Tables with fewer rows stand in the text, row by row. */
const LEAST_ROWS = 8;

/** Characters that are read in one piece of work. */
const PIECE = 50_000;

const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  hellip: "…",
  mdash: "—",
  ndash: "–",
};

interface Reader {
  text: string;
  rows: string[][] | undefined;
  cell: string | undefined;
  readonly tables: Table[];
}

/** Reads HTML in one pass, however broken it is: headings, lists and tables are kept, scripts and styles are not. */
export function* readHtml(html: string): Work<HtmlParts> {
  const reader: Reader = { text: "", rows: undefined, cell: undefined, tables: [] };
  let at = 0;
  let next = PIECE;
  while (at < html.length) {
    if (at >= next) {
      next = at + PIECE;
      yield;
    }
    const open = html.indexOf("<", at);
    const end = open < 0 ? html.length : open;
    write(reader, decode(html.slice(at, end)));
    if (open < 0) break;
    at = skipMarkup(html, open, reader);
  }
  if (reader.rows !== undefined) endTable(reader);
  yield;
  return { markdown: reader.text.trim(), tables: reader.tables };
}

/** Deals with the tag or comment at `open`; gives the index after it. */
function skipMarkup(html: string, open: number, reader: Reader): number {
  if (html.startsWith("<!--", open)) return after(html, "-->", open + 4);
  const close = html.indexOf(">", open);
  if (close < 0) return html.length;
  const tag = /^<(\/?)([a-z][a-z0-9]*)/i.exec(html.slice(open, Math.min(close, open + 24)));
  if (tag === null) {
    if (html[open + 1] === "!" || html[open + 1] === "?") return close + 1;
    write(reader, "<");
    return open + 1;
  }
  const name = (tag[2] ?? "").toLowerCase();
  const ends = tag[1] === "/";
  if (!ends && SILENT.has(name)) return afterElement(html, name, close + 1);
  markUp(reader, name, ends);
  return close + 1;
}

function afterElement(html: string, name: string, from: number): number {
  const end = new RegExp(`</${name}\\b[^>]*>`, "gi");
  end.lastIndex = from;
  const found = end.exec(html);
  return found === null ? html.length : found.index + found[0].length;
}

function after(html: string, text: string, from: number): number {
  const at = html.indexOf(text, from);
  return at < 0 ? html.length : at + text.length;
}

function markUp(reader: Reader, name: string, ends: boolean): void {
  if (name === "table") {
    if (ends) endTable(reader);
    else if (reader.rows === undefined) reader.rows = [];
  } else if (reader.rows !== undefined) tableMark(reader, name, ends);
  else if (/^h[1-6]$/.test(name)) reader.text += ends ? "\n\n" : `\n\n${"#".repeat(Number(name[1]))} `;
  else if (name === "li") reader.text += ends ? "" : "\n- ";
  else if (BLOCKS.has(name)) reader.text += name === "br" ? "\n" : "\n\n";
}

function tableMark(reader: Reader, name: string, ends: boolean): void {
  if (name === "tr" && !ends) {
    endCell(reader);
    reader.rows?.push([]);
  } else if (name === "td" || name === "th") {
    endCell(reader);
    if (!ends) reader.cell = "";
  } else if (BLOCKS.has(name) && reader.cell !== undefined) reader.cell += " ";
}

function write(reader: Reader, text: string): void {
  if (text === "") return;
  if (reader.cell !== undefined) reader.cell += text;
  else if (reader.rows === undefined) reader.text += singleSpaces(text);
}

function singleSpaces(text: string): string {
  return /\s\s|[^\S ]/.test(text) ? text.replace(/\s+/g, " ") : text;
}

function endCell(reader: Reader): void {
  if (reader.cell === undefined) return;
  if (reader.rows?.length === 0) reader.rows.push([]);
  reader.rows?.at(-1)?.push(singleSpaces(reader.cell).trim());
  reader.cell = undefined;
}

function endTable(reader: Reader): void {
  endCell(reader);
  const rows = (reader.rows ?? []).filter((row) => row.some((cell) => cell !== ""));
  reader.rows = undefined;
  const [header = [], ...body] = rows;
  if (body.length >= LEAST_ROWS && header.length > 1) {
    const label = `table ${reader.tables.length + 1}`;
    const names = header.map((name, i) => (name === "" || header.indexOf(name) !== i ? `${name}#${i}` : name));
    reader.tables.push(
      tableOfTexts(
        label,
        names,
        body.map((row) => row.slice(0, names.length)),
      ),
    );
    reader.text += `\n\n(${label})\n\n`;
  } else reader.text += `\n\n${rows.map((row) => `| ${row.join(" | ")} |`).join("\n")}\n\n`;
}

function decode(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,8}));/gi, (whole, decimal, hex, name) => {
    if (typeof name === "string") return Object.hasOwn(ENTITIES, name) ? (ENTITIES[name] ?? whole) : whole;
    const code = typeof decimal === "string" ? Number(decimal) : Number.parseInt(String(hex), 16);
    return code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : whole;
  });
}
