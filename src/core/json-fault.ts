import { jsonPointer, MAX_JSON_DEPTH } from "./json.ts";

/** Characters shown of the place where a text stops being JSON. */
const EXCERPT_LENGTH = 20;

/** Most characters shown of a name or number. */
const MAX_SHOWN = 40;

/** The first place at which a text is not the JSON that it should be. */
export interface JsonFault {
  readonly reason: "NOT_JSON" | "TOO_DEEP" | "OUT_OF_RANGE" | "DUPLICATE_NAME";
  /** JSON pointer of the value the text stops being JSON in, or of the value at fault. */
  readonly pointer: string;
  /**
   * Goes on after the name of the text, in words a model can act on:
   * ``is not valid JSON at character 12: expected `,` or `}`, got "b\": 1"``.
   */
  readonly description: string;
}

/**
 * Finds where and why a text is not JSON, or is JSON that nobody can read in one way only; `undefined` where all is
 * fine. Takes as long as the text is, however it is nested.
 */
export function jsonFault(text: string): JsonFault | undefined {
  return new JsonScanner(text).document();
}

/** Walks a text by the grammar of RFC 8259 up to its first fault. */
class JsonScanner {
  readonly #text: string;
  readonly #scalar = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;
  readonly #escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
  readonly #steps: (string | number)[] = [];
  /** Index of the first character not yet taken. */
  #position = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): JsonFault | undefined {
    const fault = this.#value();
    if (fault !== undefined) return fault;
    this.#space();
    return this.#position === this.#text.length ? undefined : this.#expected("nothing more");
  }

  #value(): JsonFault | undefined {
    this.#space();
    const c = this.#text[this.#position];
    if (c === '"') return this.#string();
    if (c === "{") return this.#list("}");
    if (c === "[") return this.#list("]");
    const from = this.#position;
    if (!this.#take(this.#scalar)) return this.#expected("a JSON value");
    return c !== undefined && c <= "9" ? this.#checkRange(this.#text.slice(from, this.#position)) : undefined;
  }

  #checkRange(number: string): JsonFault | undefined {
    if (Number.isFinite(Number(number))) return undefined;
    const place = this.#steps.length === 0 ? "" : ` at ${this.#pointer()}`;
    const description = `holds the number ${shown(number)}${place}, which is out of range: at most 1.79e308`;
    return this.#fault("OUT_OF_RANGE", description);
  }

  #list(close: "]" | "}"): JsonFault | undefined {
    if (this.#steps.length >= MAX_JSON_DEPTH) {
      return this.#fault("TOO_DEEP", `is nested deeper than ${MAX_JSON_DEPTH} levels`);
    }
    this.#position++;
    this.#space();
    if (this.#text[this.#position] === close) {
      this.#position++;
      return undefined;
    }
    const names = close === "}" ? new Set<string>() : undefined;
    for (let i = 0; ; i++) {
      this.#steps.push(i);
      const fault = names === undefined ? this.#value() : this.#member(names);
      if (fault !== undefined) return fault;
      this.#steps.pop();
      this.#space();
      const c = this.#text[this.#position];
      if (c !== "," && c !== close) return this.#expected(`\`,\` or \`${close}\``);
      this.#position++;
      if (c === close) return undefined;
    }
  }

  /** `names`: those that stand before it in its object. */
  #member(names: Set<string>): JsonFault | undefined {
    this.#space();
    const from = this.#position;
    if (this.#text[from] !== '"') return this.#expected("a name in double quotes");
    const fault = this.#string();
    if (fault !== undefined) return fault;
    const name = unquoted(this.#text.slice(from, this.#position));
    this.#steps[this.#steps.length - 1] = name;
    this.#space();
    if (this.#text[this.#position] !== ":") return this.#expected("`:`");
    this.#position++;
    if (names.has(name)) {
      const twice = `has the name ${shown(JSON.stringify(name))} twice in one object`;
      return this.#fault("DUPLICATE_NAME", `${twice}, again at character ${from + 1}: keep one of them`);
    }
    names.add(name);
    return this.#value();
  }

  #string(): JsonFault | undefined {
    this.#position++;
    while (this.#position < this.#text.length) {
      const c = this.#text.charCodeAt(this.#position);
      if (c === 34) {
        this.#position++;
        return undefined;
      }
      if (c < 32) return this.#expected("an escape such as \\n or \\t for a control character");
      if (c !== 92) this.#position++;
      else if (!this.#take(this.#escape)) {
        return this.#expected('an escape such as \\n, \\" or \\u00e9');
      }
    }
    return this.#expected("the closing quote of a string");
  }

  #expected(what: string): JsonFault {
    const rest = this.#text.slice(this.#position, this.#position + EXCERPT_LENGTH);
    const got = rest === "" ? "the end of the text" : JSON.stringify(rest);
    const description = `is not valid JSON at character ${this.#position + 1}: expected ${what}, got ${got}`;
    return this.#fault("NOT_JSON", description);
  }

  #fault(reason: JsonFault["reason"], description: string): JsonFault {
    return { reason, pointer: this.#pointer(), description };
  }

  #pointer(): string {
    return jsonPointer(this.#steps);
  }

  #space(): void {
    for (let c = this.#code(); c === 32 || c === 9 || c === 10 || c === 13; c = this.#code()) this.#position++;
  }

  #code(): number {
    return this.#text.charCodeAt(this.#position);
  }

  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.#position;
    if (!pattern.test(this.#text)) return false;
    this.#position = pattern.lastIndex;
    return true;
  }
}

/** What a quoted text says; it is a valid one. */
function unquoted(quoted: string): string {
  return quoted.includes("\\") ? String(JSON.parse(quoted)) : quoted.slice(1, -1);
}

function shown(text: string): string {
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN - 1)}…`;
}
