import { createHash } from "node:crypto";
import {
  canonicalJson,
  isJsonArray,
  isJsonObject,
  type JsonValue,
  ownValue,
  parseJson,
  stringifyJson,
} from "../../core/json.ts";
import type { TextCache } from "../../core/store.ts";
import type { McpConfig } from "./mcp-config.ts";
import type { Era } from "./session.ts";

/** What is remembered of a server. */
export interface Remembered {
  readonly era: Era | undefined;
  /** Its list of tools as it came. */
  readonly tools: readonly JsonValue[] | undefined;
}

const NOTHING: Remembered = { era: undefined, tools: undefined };

/** Form of what is written. */
const FORM = 1;

/** What was learnt of one server, for as long as its declaration stays as it is. */
export class ServerMemory {
  readonly #cache: TextCache;
  readonly #key: string;
  #last: string | undefined;

  constructor(cache: TextCache, { target, protocol }: McpConfig) {
    this.#cache = cache;
    // Values of the environment and of headers stand in it by reference alone.
    const about = {
      kind: target.kind,
      protocol,
      ...(target.kind === "program" ? programOf(target) : { url: target.url }),
    };
    this.#key = createHash("sha256").update(canonicalJson(about)).digest("hex");
  }

  /** What is remembered; nothing where that cannot be read. */
  async recall(): Promise<Remembered> {
    const text = await this.#cache.read(this.#key);
    const value = text === undefined ? undefined : jsonOf(text);
    if (value === undefined || !isJsonObject(value) || ownValue(value, "form") !== FORM) return NOTHING;
    const era = ownValue(value, "era");
    const tools = ownValue(value, "tools");
    return {
      era: era === "legacy" || era === "modern" ? era : undefined,
      tools: isJsonArray(tools) ? tools : undefined,
    };
  }

  /** Remembers it; writes only what is new. */
  async keep(era: Era | undefined, tools: readonly JsonValue[]): Promise<void> {
    const text = stringifyJson({ form: FORM, ...(era === undefined ? {} : { era }), tools });
    if (text === this.#last) return;
    this.#last = text;
    await this.#cache.write(this.#key, text);
  }
}

function programOf({ command, args, cwd, env }: Extract<McpConfig["target"], { readonly kind: "program" }>) {
  return { command, args, cwd, names: env.map(({ name }) => name).toSorted() };
}

function jsonOf(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
