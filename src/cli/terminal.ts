import { once } from "node:events";
import { styleText } from "node:util";

/** How a word is painted. */
export type Paint = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** A stream that may be a terminal. */
export type OutputStream = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number | undefined };

/** One of the two outputs. Results go to stdout; everything else goes to stderr, so that a pipe carries results only. */
export class Output {
  readonly #stream: OutputStream;
  readonly #colour: boolean;

  /** `colour`: whether colours are wanted where they can be seen. */
  constructor(stream: OutputStream, colour: boolean, env: NodeJS.ProcessEnv) {
    this.#stream = stream;
    const forced = (env.FORCE_COLOR ?? "0") !== "0";
    // Sources: https://no-color.org (any value that is not empty), https://force-color.org.
    const visible = forced || (this.isTerminal && (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb");
    this.#colour = colour && visible;
  }

  /** Width to fit into; undefined where nobody looks. */
  get columns(): number | undefined {
    return this.isTerminal ? this.#stream.columns : undefined;
  }

  get isTerminal(): boolean {
    return this.#stream.isTTY === true;
  }

  /** Writes text and waits while the reader is slow. A terminal gets no control characters of foreign text. */
  async write(text: string, signal?: AbortSignal): Promise<void> {
    const more = this.#stream.write(this.isTerminal ? withoutControls(text) : text);
    if (!more) await once(this.#stream, "drain", signal === undefined ? {} : { signal });
  }

  /** Writes one line, which may be painted, so its foreign parts went through {@link plain}. */
  line(text = ""): void {
    this.#stream.write(`${text}\n`);
  }

  /** Paints text where colours are wanted and can be seen. */
  paint(paint: Paint, text: string): string {
    return this.#colour ? styleText(paint, text, { validateStream: false }) : text;
  }
}

/** Foreign text for one line: line breaks and runs of blanks become one blank, control characters become visible. */
export function plain(text: string): string {
  return withoutControls(text.replace(/\s+/g, " ").trim());
}

/** Makes control characters visible, except line breaks and tabs: a terminal would obey them. */
function withoutControls(text: string): string {
  return text.replace(/(?![\n\r\t])\p{Cc}/gu, escaped);
}

function escaped(character: string): string {
  return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}
