import { resolve } from "node:path";
import type { JsonValue } from "../core/json.ts";
import { path, type Setting, text } from "./setting.ts";

/** What the gateway keeps on disk, by dotted key. */
export const STATE_SETTINGS = {
  "state.folder": text(
    "state",
    "Folder that keeps the registrations made over the wire and the record of calls, relative to this file. One gateway at a time may use it: another one is refused at its start.",
  ),
  "state.encryption_key": path(
    "Secret that logins at MCP servers (`toolgate login`) are encrypted with (AES-256-GCM), by its reference: 32 bytes as 64 hexadecimal digits or as base64. Absent: they stand on the disk as they are, for the gateway's user alone.",
  ),
} as const satisfies Readonly<Record<string, Setting>>;

/** Where state is kept. */
export interface StateSettings {
  /** Absolute path of the folder for registrations made over the wire, the record of calls, and logins. */
  readonly folder: string;
  /** Reference of the secret that logins are encrypted with; absent: they are not. */
  readonly encryptionKey?: string | undefined;
}

/** Reads where state is kept. `folder`: what a relative path begins at. */
export function readState(values: ReadonlyMap<string, JsonValue>, folder: string): StateSettings {
  const of = (key: keyof typeof STATE_SETTINGS): string => {
    const value = values.get(key);
    return typeof value === "string" ? value : "";
  };
  return { folder: resolve(folder, of("state.folder")), encryptionKey: of("state.encryption_key") || undefined };
}
