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
  const byName = new Map<string, JsonValue>();
  const nameless: JsonValue[] = [];
  const cursors = new Set<string>();
  const done = (note?: string): RawList => ({
    tools: [...byName.values(), ...nameless],
    notes: note === undefined ? [] : [note],
  });
  let cursor: string | undefined;
  for (let pages = 1; ; pages += 1) {
    const page = await ask(cursor);
    const before = byName.size;
    const tools = isJsonObject(page) ? ownValue(page, "tools") : undefined;
    if (!isJsonArray(tools)) return done("the server's list of tools is no list; what came before it is kept");
    for (const tool of tools) {
      const name = isJsonObject(tool) ? ownValue(tool, "name") : undefined;
      if (typeof name !== "string") nameless.push(tool);
      else if (!byName.has(name)) byName.set(name, tool);
    }
    const next = isJsonObject(page) ? ownValue(page, "nextCursor") : undefined;
    if (typeof next !== "string" || next === "") return done();
    if (cursors.has(next)) return done("the server's list of tools leads round in a circle; it was read once");
    if (byName.size === before)
      return done("a page of the server's list of tools had nothing new; the rest was not read");
    if (pages >= MAX_PAGES || byName.size >= MAX_TOOLS) {
      return done(`the server's list of tools does not end; the first ${byName.size} are kept`);
    }
    cursors.add(next);
    cursor = next;
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
