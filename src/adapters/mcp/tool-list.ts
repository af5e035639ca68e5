import type { Offer, UpstreamTool } from "../../core/adapter.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue } from "../../core/json.ts";
import { oneLine } from "../../core/text.ts";
import type { ToolHints } from "../../core/tool.ts";
import { paramHeaders } from "./param-headers.ts";

/** Most pages that are asked for. */
const MAX_PAGES = 500;

/** Most tools of one server. */
const MAX_TOOLS = 10_000;

/** Characters of a name that a note shows. */
const SHOWN_NAME = 80;

/** Asks for one page. */
export type AskPage = (cursor: string | undefined) => Promise<JsonValue>;

/** A list of tools as it came. */
export interface RawList {
  readonly tools: readonly JsonValue[];
  /** What was odd about its pages; one line each. */
  readonly notes: readonly string[];
}

/**
 * All pages of a list. Ends where a cursor comes again, a page has nothing new or the bounds are reached, since some
 * servers never stop. Fails as a whole where one page does.
 */
export async function allPages(ask: AskPage): Promise<RawList> {
  const pages = new Pages();
  for (let cursor: string | undefined; ; ) {
    const next = pages.take(await ask(cursor));
    if (next === undefined) return pages.list;
    cursor = next;
  }
}

class Pages {
  readonly #byName = new Map<string, JsonValue>();
  readonly #nameless: JsonValue[] = [];
  readonly #cursors = new Set<string>();
  #note: string | undefined;

  get list(): RawList {
    return {
      tools: [...this.#byName.values(), ...this.#nameless],
      notes: this.#note === undefined ? [] : [this.#note],
    };
  }

  /** Takes a page in; gives the cursor of the next one that is to be read. */
  take(page: JsonValue): string | undefined {
    const before = this.#byName.size;
    const fields = isJsonObject(page) ? page : {};
    const tools = ownValue(fields, "tools");
    if (!isJsonArray(tools)) return this.#end("the server's list of tools is no list; what came before it is kept");
    for (const tool of tools) this.#add(tool);
    const next = ownValue(fields, "nextCursor");
    if (typeof next !== "string" || next === "") return undefined;
    if (this.#cursors.has(next))
      return this.#end("the server's list of tools leads round in a circle; it was read once");
    if (this.#byName.size === before) {
      return this.#end("a page of the server's list of tools had nothing new; the rest was not read");
    }
    this.#cursors.add(next);
    if (this.#cursors.size < MAX_PAGES && this.#byName.size < MAX_TOOLS) return next;
    return this.#end(`the server's list of tools does not end; the first ${this.#byName.size} are kept`);
  }

  #add(tool: JsonValue): void {
    const name = isJsonObject(tool) ? ownValue(tool, "name") : undefined;
    if (typeof name !== "string") this.#nameless.push(tool);
    else if (!this.#byName.has(name)) this.#byName.set(name, tool);
  }

  #end(note: string): undefined {
    this.#note = note;
  }
}

/** The tools of a list, and what had to be left out. `overHttp`: headers for parameters are in force. */
export function offerOf({ tools, notes }: RawList, overHttp: boolean): Offer {
  const offered: UpstreamTool[] = [];
  const left: { tool: string | undefined; message: string }[] = notes.map((message) => ({ tool: undefined, message }));
  for (const raw of tools) {
    const tool = toolOf(raw);
    if (typeof tool === "string") {
      left.push({ tool: nameOf(raw), message: `left out: ${tool}` });
      continue;
    }
    const headers = overHttp ? paramHeaders(tool.inputSchema) : undefined;
    if (headers?.ok === false) left.push({ tool: tool.name, message: `left out: ${oneLine(headers.problem)}` });
    else offered.push(tool);
  }
  return { tools: offered, notes: left };
}

/** A tool, or why it is none. */
function toolOf(raw: JsonValue): UpstreamTool | string {
  if (!isJsonObject(raw)) return "an entry of the server's list is no object";
  const name = ownValue(raw, "name");
  if (typeof name !== "string" || name === "") return "an entry of the server's list has no name";
  const inputSchema = ownValue(raw, "inputSchema");
  if (inputSchema === undefined || !isJsonObject(inputSchema)) return "its `inputSchema` is no object";
  const outputSchema = ownValue(raw, "outputSchema");
  const given = ownValue(raw, "annotations");
  const annotations = given !== undefined && isJsonObject(given) ? given : {};
  return {
    name,
    title: textOf(raw, "title") || textOf(annotations, "title"),
    description: textOf(raw, "description"),
    inputSchema,
    outputSchema: outputSchema !== undefined && isJsonObject(outputSchema) ? outputSchema : undefined,
    hints: hintsOf(annotations),
  };
}

const HINTS = [
  ["readOnly", "readOnlyHint"],
  ["destructive", "destructiveHint"],
  ["idempotent", "idempotentHint"],
  ["openWorld", "openWorldHint"],
] as const;

function hintsOf(annotations: JsonObject): ToolHints {
  const known = HINTS.flatMap(([hint, annotation]) => {
    const value = ownValue(annotations, annotation);
    return typeof value === "boolean" ? [[hint, value] as const] : [];
  });
  return Object.fromEntries(known);
}

function nameOf(raw: JsonValue): string | undefined {
  const name = isJsonObject(raw) ? ownValue(raw, "name") : undefined;
  return typeof name === "string" && name !== "" ? oneLine(name.slice(0, SHOWN_NAME)) : undefined;
}

function textOf(object: JsonObject, key: string): string {
  const value = ownValue(object, key);
  return typeof value === "string" ? value : "";
}
