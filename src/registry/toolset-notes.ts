import { inline } from "../config/wording.ts";
import { didYouMean } from "../core/nearest.ts";
import type { DeclarationProblem } from "../core/registry.ts";
import type { Toolsets } from "../core/toolsets.ts";
import { sourceProblem } from "./problems.ts";
import type { ServedServers } from "./served-servers.ts";
import type { Snapshot } from "./snapshot.ts";

/** Source of what there is to say of settings. */
export const SETTINGS_SOURCE = "gateway.yaml";

/** Most notes on unknown names, and most names each is compared with. */
const MAX_NOTES = 100;
const MAX_COMPARED = 1_000;

/** The toolsets in force, and the lines they stand on by dotted key, as `gateway.yaml:12`. */
export interface PlacedToolsets {
  readonly toolsets: Toolsets;
  readonly origins: ReadonlyMap<string, string>;
}

/** Names in toolsets that no tool has. A server that has told of no tools yet may still have them. */
export function toolsetNotes(
  { toolsets, origins }: PlacedToolsets,
  snapshot: Snapshot,
  servers: Pick<ServedServers, "named">,
): readonly DeclarationProblem[] {
  const unknown = [...toolsets.namedTools].filter(([tool]) => {
    const entry = snapshot.named(tool);
    return (entry === undefined || entry.isServer) && !mayCome(tool, servers);
  });
  return unknown.slice(0, MAX_NOTES).flatMap(([tool, sets]) => {
    const what = whatIsWrong(tool, snapshot);
    return sets.map((set): DeclarationProblem => {
      const line = Number(/:(\d+)$/.exec(origins.get(`toolsets.${set}`) ?? "")?.[1] ?? 0);
      const message = `toolset "${set}" names the tool "${inline(tool)}": ${what}`;
      return { ...sourceProblem(SETTINGS_SOURCE, message, true), line, column: Math.min(line, 1) };
    });
  });
}

function whatIsWrong(tool: string, snapshot: Snapshot): string {
  if (snapshot.named(tool) !== undefined) return `it is a server: write \`${tool}/*\` for its tools`;
  const near = didYouMean(tool, snapshot.namesAround(tool, MAX_COMPARED));
  return near === "" ? "no tool has this name" : `no tool has this name; ${near}`;
}

function mayCome(tool: string, servers: Pick<ServedServers, "named">): boolean {
  const server = servers.named(tool.split("/", 1)[0] ?? "");
  return tool.includes("/") && server !== undefined && !server.heard;
}
