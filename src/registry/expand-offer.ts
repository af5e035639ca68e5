import { hash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { inline } from "../config/wording.ts";
import type { Offer, UpstreamTool } from "../core/adapter.ts";
import { isJsonArray, type JsonValue, stringifyJson } from "../core/json.ts";
import type { Logger } from "../core/logger.ts";
import { oneLine } from "../core/text.ts";
import type { AdaptedTool, Declaration, DeclaredServer, RemoteTool } from "./declaration.ts";
import type { ReadAhead } from "./declaration-source.ts";
import type { Pacer } from "./pacer.ts";
import { screenOffered } from "./screened-offer.ts";

/** Most tools of one server. The largest server seen in the wild has 1,223. */
const MAX_TOOLS = 5_000;
/** About the most characters of what one server says of its tools. The largest seen in the wild has 2.0 million. */
const MAX_CHARACTERS = 32 * 1024 * 1024;
/** The same of one tool. No schema may have more than a quarter of it. */
const MAX_TOOL_CHARACTERS = 1024 * 1024;

/** A tool of a server as a declaration of its own. */
export type RemoteDeclaration = Declaration & { readonly remote: RemoteTool };

/** Something an operator should know of a tool. */
export interface ToolNote {
  /** The server's own name; `undefined`: it is about the whole list. */
  readonly tool: string | undefined;
  readonly message: string;
}

/** A tool that is not served. */
export interface HeldBack {
  readonly tool: string;
  readonly reason: string;
  /** For what the server says of it: nothing that was declared is broken. */
  readonly offeredSo: boolean;
}

/** What became of an offer. */
export interface Expansion {
  /** By canonical name. */
  readonly tools: ReadonlyMap<string, RemoteDeclaration>;
  /** What is not served though the operator wants it. */
  readonly heldBack: readonly HeldBack[];
  /** Own names of those that the operator does not want. */
  readonly leftOut: readonly string[];
  readonly notes: readonly ToolNote[];
  /** The tools as they were read, by the server's own name. */
  readonly read: ReadonlyMap<string, ReadTool>;
}

/** An offered tool with what was made of it. */
interface ReadTool {
  readonly offered: UpstreamTool;
  readonly server: DeclaredServer;
  readonly adapted: AdaptedTool;
}

/** What offers are looked through with. */
export interface ExpandMeans {
  readonly pacer: Pacer;
  readonly logger: Logger;
  /** Makes a text of the server's fit to be shown. */
  screen(text: string): string;
  readonly readAhead: ReadAhead | undefined;
}

/** What a server without an offer comes to. */
export const NOTHING_OFFERED: Expansion = {
  tools: new Map(),
  heldBack: [],
  leftOut: [],
  notes: [],
  read: new Map(),
};

/**
 * Makes tools of an offer. One that cannot be served is held back, and no other suffers for it. Takes turns, since a
 * thousand schemas take a while to check; a tool that is offered as it was before is not looked at again.
 *
 * @param before what became of the offer before this one.
 */
export async function expandOffer(
  server: DeclaredServer,
  offer: Offer,
  before: Expansion,
  means: ExpandMeans,
): Promise<Expansion> {
  const { pacer, screen } = means;
  const tools = new Map<string, RemoteDeclaration>();
  const heldBack: HeldBack[] = [];
  const leftOut: string[] = [];
  const notes: ToolNote[] = offer.notes.map(({ tool, message }) => ({ tool, message: screen(message) }));
  const read = new Map<string, ReadTool>();
  let characters = 0;
  for (const [index, raw] of offer.tools.entries()) {
    await pacer.turn();
    const tool = inline(screen(raw.name), 100);
    if (index >= MAX_TOOLS) {
      const left = offer.tools.length - MAX_TOOLS;
      notes.push({
        tool: undefined,
        message: `offers ${left} tools more than the ${MAX_TOOLS} that one server may have`,
      });
      break;
    }
    const size = sizeOf(raw);
    if (size > MAX_TOOL_CHARACTERS) {
      heldBack.push({ tool, reason: "what the server says of it has more than 1 MiB", offeredSo: true });
      continue;
    }
    characters += size;
    if (characters > MAX_CHARACTERS) {
      notes.push({ tool, message: `this tool and those after it are over ${MAX_CHARACTERS} characters together` });
      break;
    }
    const { tool: offered, note } = screenOffered(raw, screen);
    if (note !== undefined) notes.push(note);
    if (offered === undefined) continue;
    if (read.has(offered.name)) {
      const reason = "the server offers another tool of the same name, which came first";
      heldBack.push({ tool, reason, offeredSo: true });
      continue;
    }
    const adapted = await adapt(server, offered, before.read.get(offered.name), means);
    read.set(offered.name, { offered, server, adapted });
    if (adapted.kind === "left-out") leftOut.push(offered.name);
    else if (adapted.kind === "held-back")
      heldBack.push({ tool, reason: adapted.reason, offeredSo: adapted.offeredSo });
    else {
      const { declaration } = adapted;
      const other = tools.get(declaration.tool.name);
      if (other === undefined) tools.set(declaration.tool.name, declaration);
      else {
        const reason = `"${inline(other.remote.name)}" has the name ${declaration.tool.name} already`;
        heldBack.push({ tool, reason, offeredSo: false });
      }
      notes.push(...adapted.notes.map((message) => ({ tool, message })));
    }
  }
  return { tools, heldBack, leftOut, notes: notes.map(onOneLine), read };
}

async function adapt(
  server: DeclaredServer,
  offered: UpstreamTool,
  before: ReadTool | undefined,
  { logger, readAhead }: ExpandMeans,
): Promise<AdaptedTool> {
  if (before?.server === server && isDeepStrictEqual(before.offered, offered)) return before.adapted;
  await readAhead?.schemas([offered.inputSchema, offered.outputSchema ?? null]);
  try {
    return server.adapt(offered);
  } catch (error) {
    logger.error("offered-tool-failed", { tool: inline(offered.name), error });
    const reason =
      "it cannot be read because of a fault in the gateway; the log line offered-tool-failed has the cause";
    return { kind: "held-back", reason, offeredSo: false };
  }
}

/** About how many characters there are; not counted further than to see that they are too many. */
function sizeOf({ name, title, description, inputSchema, outputSchema }: UpstreamTool): number {
  let size = 0;
  const add = (value: JsonValue): void => {
    size += typeof value === "string" ? value.length + 2 : 4;
    if (typeof value !== "object" || value === null || size > MAX_TOOL_CHARACTERS) return;
    if (isJsonArray(value)) {
      for (const item of value) if (size <= MAX_TOOL_CHARACTERS) add(item);
      return;
    }
    for (const key of Object.keys(value)) {
      size += key.length + 4;
      if (size <= MAX_TOOL_CHARACTERS) add(value[key] ?? null);
    }
  };
  for (const part of [name, title, description, inputSchema, outputSchema ?? null]) add(part);
  return size;
}

function onOneLine({ tool, message }: ToolNote): ToolNote {
  return { tool, message: oneLine(message) };
}

/** What an operator reads of a tool that changed: which parts, with digests of what they were and are. */
export function changesOf(before: RemoteDeclaration, after: RemoteDeclaration): readonly string[] {
  const parts: (readonly [string, (tool: RemoteDeclaration["tool"]) => unknown])[] = [
    ["title", (tool) => tool.title],
    ["description", (tool) => tool.description],
    ["input_schema", (tool) => tool.inputSchema],
    ["output_schema", (tool) => tool.outputSchema],
    ["hints", (tool) => ({ ...tool.claimedHints, ...tool.hints })],
  ];
  const changed = parts.flatMap(([name, partOf]) => {
    const [was, is] = [partOf(before.tool), partOf(after.tool)];
    return isDeepStrictEqual(was, is) ? [] : [`${name} ${digest(was)} → ${digest(is)}`];
  });
  return changed.length > 0 ? changed : ["settings"];
}

function digest(part: unknown): string {
  if (part === undefined || part === "") return "none";
  return hash("sha256", stringifyJson(part as never), "hex").slice(0, 12);
}
