/** Bytes of a text that are looked at at a time. */
const CHUNK = 32 * 1024;

/** Every third pair of bytes is looked at, so one of the first three pairs of a text that is sought is among them. */
const STRIDE = 3;

/** Two bytes of seven bits as a number. */
const PAIRS = 0x4000;

/** Five bits of three bytes as a number: the same for both cases of a letter. */
const GRAMS = 0x8000;

/** What any sign behind a beginning of three signs may be. */
const ANY = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));

/**
 * Tells quickly whether any of some texts of ASCII, with a sign behind it, stands in another text, letters in any case. It
 * looks at a third of the pairs of bytes, and nearly always that is all that is done to a text that has none of them.
 */
export class BeginningFilter {
  /** Of each pair in which of the first three places of a text it stands, a bit for each. */
  readonly #pairs = new Uint8Array(PAIRS);
  /** Which three signs one begins with. */
  readonly #grams = new Uint8Array(GRAMS);
  readonly #byGram = new Map<string, string[]>();
  readonly #bytes = Buffer.alloc(CHUNK);

  /** @throws RangeError for a text of fewer than three signs. */
  constructor(beginnings: Iterable<string>) {
    for (const beginning of beginnings) {
      const text = beginning.toLowerCase();
      if (text.length < STRIDE) throw new RangeError(`too short: ${text}`);
      const gram = text.slice(0, STRIDE);
      this.#byGram.set(gram, [...(this.#byGram.get(gram) ?? []), text]);
      this.#grams[gramOf(text.charCodeAt(0), text.charCodeAt(1), text.charCodeAt(2))] = 1;
      for (let at = 0; at < STRIDE; at++) this.#note(text, at);
    }
  }

  /** Whether one of them stands in the text. */
  isIn(text: string): boolean {
    // Chunks overlap, so that no beginning is missed between two.
    for (let from = 0; from < text.length; from += CHUNK - STRIDE) {
      // What is beyond Latin-1 loses its upper half, so that it may look like a sign of ASCII and never the other way.
      const length = this.#bytes.write(text.slice(from, from + CHUNK), "latin1");
      if (this.#isInChunk(text, from, length)) return true;
    }
    return false;
  }

  #isInChunk(text: string, from: number, length: number): boolean {
    const pairs = this.#pairs;
    const bytes = this.#bytes;
    for (let at = 1; at < length; at += STRIDE) {
      const places = pairs[(((bytes[at - 1] ?? 0) & 0x7f) << 7) | ((bytes[at] ?? 0) & 0x7f)] ?? 0;
      if (places !== 0 && this.#isNear(text, from, { at: at - 1, places })) return true;
    }
    return false;
  }

  /** Whether a beginning has the pair at a place of the chunk in one of its own places. */
  #isNear(text: string, from: number, { at, places }: { readonly at: number; readonly places: number }): boolean {
    const bytes = this.#bytes;
    for (let place = 0; place < STRIDE; place++) {
      const start = at - place;
      if ((places & (1 << place)) === 0 || start < 0) continue;
      const gram = gramOf(bytes[start] ?? 0, bytes[start + 1] ?? 0, bytes[start + 2] ?? 0);
      if (this.#grams[gram] !== 0 && this.#begins(text, from + start)) return true;
    }
    return false;
  }

  #begins(text: string, at: number): boolean {
    const known = this.#byGram.get(text.slice(at, at + STRIDE).toLowerCase());
    return known?.some((one) => text.slice(at, at + one.length).toLowerCase() === one) === true;
  }

  #note(text: string, at: number): void {
    const next = text[at + 1];
    for (const first of casesOf(text[at] ?? "")) {
      for (const second of next === undefined ? ANY : casesOf(next)) {
        const pair = (first.charCodeAt(0) << 7) | second.charCodeAt(0);
        this.#pairs[pair] = (this.#pairs[pair] ?? 0) | (1 << at);
      }
    }
  }
}

function gramOf(a: number, b: number, c: number): number {
  return ((a & 31) << 10) | ((b & 31) << 5) | (c & 31);
}

function casesOf(sign: string): readonly string[] {
  return [sign, sign.toUpperCase()];
}
