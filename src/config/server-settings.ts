import type { JsonValue } from "../core/json.ts";
import type { Setting } from "./setting.ts";

/** How MCP servers are started, by dotted key. */
export const SERVER_SETTINGS = {
  "servers.program_starts": atOnce(
    "Most MCP servers that are programs (`command`) and start at a time; the others wait for their turn.",
    16,
  ),
  "servers.remote_starts": atOnce("Most MCP servers that are reached over HTTP (`url`) and start at a time.", 64),
} as const satisfies Readonly<Record<string, Setting>>;

/** Most servers that start at a time. */
export interface ServerStarts {
  /** Programs. Default 16. */
  readonly programs: number;
  /** Servers behind a URL. Default 64. */
  readonly remote: number;
}

/** Reads how servers are started. */
export function readServerStarts(values: ReadonlyMap<string, JsonValue>): ServerStarts {
  const number = (key: keyof typeof SERVER_SETTINGS): number => Number(values.get(key));
  return { programs: number("servers.program_starts"), remote: number("servers.remote_starts") };
}

function atOnce(description: string, standard: number): Setting & { readonly standard: number } {
  return { schema: { type: "integer", minimum: 1, maximum: 10_000, description }, standard };
}
