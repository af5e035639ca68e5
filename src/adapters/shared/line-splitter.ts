import type { GatewayError } from "../../core/errors.ts";

/** Which characters end a line: LF alone, or any of CR LF, LF and CR. */
export type LineEnd = "lf" | "any";

/** How long one line or event may be. */
export interface PieceLimit {
  /** In UTF-16 units. */
  readonly maxLength: number;
  /** The error for one that is longer. */
  exceeded(what: "line" | "event"): GatewayError;
}

/** Cuts text that comes in pieces into lines, whatever the pieces are. Holds at most one unfinished line. */
export class LineSplitter {
  readonly #end: LineEnd;
  readonly #limit: PieceLimit;
  #pending = "";
  /** The last piece ended in CR: an LF at the beginning of the next one belongs to it. */
  #afterCr = false;

  constructor(end: LineEnd, limit: PieceLimit) {
    this.#end = end;
    this.#limit = limit;
  }

  /** The lines that end in this piece, without their ends. Throws the limit's error for a line that is too long. */
  push(piece: string): string[] {
    if (piece === "") return [];
    const text = this.#afterCr && piece.startsWith("\n") ? piece.slice(1) : piece;
    this.#afterCr = this.#end === "any" && piece.endsWith("\r");
    const lines: string[] = [];
    let from = 0;
    for (const end of text.matchAll(this.#end === "lf" ? /\n/g : /\r\n|\n|\r/g)) {
      lines.push(this.#finish(text.slice(from, end.index)));
      from = end.index + end[0].length;
    }
    this.#pending += text.slice(from);
    this.#check(this.#pending);
    return lines;
  }

  /** The last line where it has no end; `undefined` where there is none. */
  end(): string | undefined {
    const rest = this.#pending;
    this.#pending = "";
    return rest === "" ? undefined : rest;
  }

  #finish(tail: string): string {
    const line = this.#pending + tail;
    this.#pending = "";
    this.#check(line);
    return line;
  }

  #check(line: string): void {
    if (line.length > this.#limit.maxLength) throw this.#limit.exceeded("line");
  }
}
