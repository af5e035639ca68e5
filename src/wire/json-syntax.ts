import { MAX_JSON_DEPTH } from "../core/json.ts";

/** Characters shown of the place where a text stops being JSON. */
const EXCERPT_LENGTH = 20;

const TOO_DEEP = "fewer levels";

/** What was expected at the place reached, or `undefined` where all was fine. */
type Problem = string | undefined;

/**
 * Says where and why a text that `parseJson` refused is not JSON, in words a model can act on:
 * ``is not valid JSON at character 12: expected `,` or `}`, got "b\": 1"``.
 */
export function jsonSyntaxError(text: string): string {
  const scanner = new JsonScanner(text);
  const problem = scanner.document();
  if (problem === undefined) return "holds a number that is out of range";
  if (problem === TOO_DEEP) return `is nested deeper than ${MAX_JSON_DEPTH} levels`;
  const rest = text.slice(scanner.position, scanner.position + EXCERPT_LENGTH);
  const got = rest === "" ? "the end of the text" : JSON.stringify(rest);
  return `is not valid JSON at character ${scanner.position + 1}: expected ${problem}, got ${got}`;
}

/** Walks a text by the grammar of RFC 8259 up to its first mistake. */
class JsonScanner {
  readonly #text: string;
  /** Index of the first character not yet taken. */
  position = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): Problem {
    const problem = this.#value(0);
    if (problem !== undefined) return problem;
    this.#space();
    return this.position === this.#text.length ? undefined : "nothing more";
  }

  #value(depth: number): Problem {
    this.#space();
    const c = this.#text[this.position];
    if (c === '"') return this.#string();
    if (c === "{") return this.#list(depth + 1, "}");
    if (c === "[") return this.#list(depth + 1, "]");
    const scalar = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;
    return this.#take(scalar) ? undefined : "a JSON value";
  }

  #list(depth: number, close: "]" | "}"): Problem {
    if (depth > MAX_JSON_DEPTH) return TOO_DEEP;
    this.position++;
    this.#space();
    if (this.#text[this.position] === close) {
      this.position++;
      return undefined;
    }
    while (true) {
      const problem = close === "}" ? this.#member(depth) : this.#value(depth);
      if (problem !== undefined) return problem;
      this.#space();
      const c = this.#text[this.position];
      if (c !== "," && c !== close) return `\`,\` or \`${close}\``;
      this.position++;
      if (c === close) return undefined;
    }
  }

  #member(depth: number): Problem {
    this.#space();
    if (this.#text[this.position] !== '"') return "a name in double quotes";
    const problem = this.#string();
    if (problem !== undefined) return problem;
    this.#space();
    if (this.#text[this.position] !== ":") return "`:`";
    this.position++;
    return this.#value(depth);
  }

  #string(): Problem {
    this.position++;
    while (this.position < this.#text.length) {
      const c = this.#text.charCodeAt(this.position);
      if (c === 34) {
        this.position++;
        return undefined;
      }
      if (c < 32) return "an escape such as \\n or \\t for a control character";
      if (c !== 92) this.position++;
      else if (!this.#take(/\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y)) return 'an escape such as \\n, \\" or \\u00e9';
    }
    return "the closing quote of a string";
  }

  #space(): void {
    this.#take(/[ \t\n\r]*/y);
  }

  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.position;
    const found = pattern.exec(this.#text);
    if (found !== null) this.position += found[0].length;
    return found !== null;
  }
}
