/**
 * Characters that are not seen or change the order of others. Source: Unicode 17, 23.2 (layout controls), 23.4 (variation
 * selectors), 23.9 (tag characters).
 */
const SUSPECT =
  /[\u00ad\u180e\u200b-\u200d\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e01ef}]|\u034f|[\ufe00-\ufe0f]/u;

/** Of these the ones that have a use beside letters that are not ASCII: joiners, spaces without width, soft hyphens. */
const WITHOUT_WIDTH = /^(?:[\u00ad\u180e\u200b-\u200d\u2060-\u2064\ufeff]|\u034f)$/;

/** Selectors that choose between forms of a sign, such as that of an emoji. */
const SELECTOR = /^[\ufe00-\ufe0f]$/;
/** The same for ideographs. */
const IDEOGRAPH_SELECTOR = /^[\u{e0100}-\u{e01ef}]$/u;
const IDEOGRAPH = /^\p{sc=Han}$/u;

/** A flag of a region is a black flag, up to six small letters and digits as tags, and a tag that ends it. */
const FLAG = "\u{1f3f4}";
const FLAG_TAG = /^[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]$/u;
const FLAG_END = "\u{e007f}";
const MAX_FLAG_TAGS = 6;

/** Whether there is anything to look at: nearly every text has none. */
export function mayHide(text: string): boolean {
  return SUSPECT.test(text);
}

/**
 * Shows what is not seen: tag characters, controls that turn the order of text around, and characters without width
 * where they can only deceive become `<U+202E>`. Emoji, flags, and joiners beside letters that are not ASCII stay.
 */
export class HiddenText {
  /** Code points that were shown, such as `U+202E`. */
  readonly shown = new Set<string>();
  #before = "";
  /** How many tags of a flag there are; -1: there is no flag. */
  #flag = -1;

  /** The next piece of one text, of whole code points. */
  next(text: string): string {
    if (!mayHide(text)) {
      this.#flag = -1;
      if (text !== "") this.#before = Array.from(text.slice(-2)).at(-1) ?? "";
      if (this.#before === FLAG) this.#flag = 0;
      return text;
    }
    let out = "";
    for (const sign of text) out += this.#one(sign);
    return out;
  }

  /** Another text begins. */
  restart(): void {
    this.#before = "";
    this.#flag = -1;
  }

  #one(sign: string): string {
    const stays = !SUSPECT.test(sign) || this.#isOfFlag(sign) || this.#hasUse(sign);
    if (!this.#isOfFlag(sign)) this.#flag = sign === FLAG ? 0 : -1;
    else this.#flag = sign === FLAG_END ? -1 : this.#flag + 1;
    this.#before = sign;
    if (stays) return sign;
    const name = `U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
    this.shown.add(name);
    return `<${name}>`;
  }

  #isOfFlag(sign: string): boolean {
    if (this.#flag < 0) return false;
    return FLAG_TAG.test(sign) ? this.#flag < MAX_FLAG_TAGS : sign === FLAG_END && this.#flag > 0;
  }

  #hasUse(sign: string): boolean {
    const before = this.#before;
    if (IDEOGRAPH_SELECTOR.test(sign)) return IDEOGRAPH.test(before);
    if (SELECTOR.test(sign)) return before !== "" && !SUSPECT.test(before);
    // After a selector of an emoji a joiner is at home.
    return WITHOUT_WIDTH.test(sign) && before > "\u007f" && (SELECTOR.test(before) || !SUSPECT.test(before));
  }
}

/** A whole text with what is not seen in it shown, as {@link HiddenText} does. */
export function showHidden(text: string): string {
  return mayHide(text) ? new HiddenText().next(text) : text;
}
