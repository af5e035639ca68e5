import { TextDecoder, TextEncoder } from "node:util";
import type {
  KeepOutcome,
  KeepResult,
  OpenOverflow,
  Overflow,
  ResultOrigin,
  ResultStore,
  ResultWriter,
} from "../core/results.ts";
import type { RedactionStream, Redactor } from "../core/secrets.ts";
import type { ResultRules } from "../core/shaper.ts";
import { TextCleaner } from "./text-cleaner.ts";

/** Bytes of a text that are written at a time. */
const BUFFER_BYTES = 64 * 1024;

/** Keeps what is too long of one call's result. */
export function createKeep(store: ResultStore, origin: Omit<ResultOrigin, "mediaType">): KeepResult {
  return (mediaType, content) => {
    const writer = store.create({ ...origin, mediaType });
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    return { handle: writer.handle, done: writeAll(writer, bytes) };
  };
}

/** A result is kept whole or not at all: one without its end would be taken for the whole. */
async function writeAll(writer: ResultWriter, bytes: Uint8Array): Promise<KeepOutcome> {
  await using open = writer;
  // Awaited here: what is returned unsettled would be disposed first.
  if (await open.write(bytes)) return await open.finish(true);
  return { ok: false, problem: "there is no room for it, or the gateway cannot write it to its disk" };
}

/** Keeps the answers of one call that are too large for memory, their text as fit to be given as any result. */
export function createOverflow(
  store: ResultStore,
  { redactor, rules }: { readonly redactor: Redactor; readonly rules: ResultRules },
  origin: Omit<ResultOrigin, "mediaType">,
): OpenOverflow {
  return (mediaType, charset) => {
    const writer = store.create({ ...origin, mediaType });
    if (charset === undefined) return writer;
    const cleaner = new TextCleaner(redactor, { keepHidden: rules.hiddenCharacters === "keep" });
    return new TextOverflow(writer, cleaner.stream(), charset);
  };
}

/** A text on its way to the disk: as UTF-8, without secrets. */
class TextOverflow implements Overflow {
  readonly #writer: ResultWriter;
  readonly #secrets: RedactionStream;
  readonly #decoder: TextDecoder;
  readonly #encoder = new TextEncoder();
  readonly #bytes = new Uint8Array(BUFFER_BYTES);

  constructor(writer: ResultWriter, secrets: RedactionStream, charset: string) {
    this.#writer = writer;
    this.#secrets = secrets;
    this.#decoder = new TextDecoder(charset);
  }

  write(piece: Uint8Array): Promise<boolean> {
    return this.#writeText(this.#secrets.push(this.#decoder.decode(piece, { stream: true })));
  }

  async finish(complete: boolean): Promise<KeepOutcome> {
    const whole = await this.#writeText(this.#secrets.push(this.#decoder.decode()) + this.#secrets.end());
    return this.#writer.finish(complete && whole);
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#writer[Symbol.asyncDispose]();
  }

  /** By way of one buffer: one for each piece would be tens of megabytes until the next collection of garbage. */
  async #writeText(text: string): Promise<boolean> {
    let rest = text;
    do {
      const { read, written } = this.#encoder.encodeInto(rest, this.#bytes);
      if (!(await this.#writer.write(this.#bytes.subarray(0, written)))) return false;
      rest = rest.slice(read);
    } while (rest !== "");
    return true;
  }
}
