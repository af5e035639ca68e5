/** What a line-wise reader passes on. */
export type ReadLine =
  | { readonly kind: "line"; readonly text: string; readonly bytes: number }
  /** A line over the limit: its beginning and its end. */
  | { readonly kind: "cut"; readonly head: string; readonly tail: string; readonly bytes: number };

const LF = 10;

/** How much of a line over the limit is kept at either end. */
const KEPT_BYTES = 1_024;

/** Cuts bytes into lines and bounds them: of a line that is too long, the middle is dropped. */
export class MessageLines {
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #head: Buffer | undefined;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that end in these bytes, without their ends. */
  push(chunk: Buffer): ReadLine[] {
    const lines: ReadLine[] = [];
    let from = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, from)) {
      this.#add(chunk.subarray(from, end));
      lines.push(this.#line());
      from = end + 1;
    }
    if (from < chunk.length) this.#add(chunk.subarray(from));
    return lines;
  }

  #add(bytes: Buffer): void {
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
    if (this.#bytes <= this.#maxBytes) return;
    const all = Buffer.concat(this.#pieces);
    this.#head ??= Buffer.from(all.subarray(0, KEPT_BYTES));
    this.#pieces = [Buffer.from(all.subarray(-KEPT_BYTES))];
  }

  #line(): ReadLine {
    const all = Buffer.concat(this.#pieces);
    const head = this.#head;
    const bytes = this.#bytes;
    this.#pieces = [];
    this.#bytes = 0;
    this.#head = undefined;
    if (head !== undefined) return { kind: "cut", head: head.toString(), tail: all.toString(), bytes };
    const text = all.toString();
    return { kind: "line", text: text.endsWith("\r") ? text.slice(0, -1) : text, bytes };
  }
}
