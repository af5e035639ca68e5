import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { parseDocument } from "../config/parse-document.ts";
import { type JsonObject, ownValue } from "../core/json.ts";
import { MAX_DECLARATION_BYTES } from "./declaration-source.ts";
import { createFileRules } from "./file-rules.ts";
import { scanFolder } from "./folder-scan.ts";

/** A declaration as it stands in a file, not checked. */
export interface DeclaredText {
  /** Path within the folder. */
  readonly file: string;
  readonly keys: JsonObject;
}

/** The declaration of an MCP server by its name, as a look at the disk finds it; undefined: there is none. Never rejects. */
export async function findServer(
  { folder, include }: GatewayConfig["tools"],
  name: string,
): Promise<DeclaredText | undefined> {
  const { files } = await scanFolder(folder);
  const verdictOf = createFileRules(include);
  for (const file of [...files.keys()].filter((path) => verdictOf(path) === "read").toSorted()) {
    const keys = await keysOf(join(folder, file), file.endsWith(".json") ? "json" : "yaml");
    if (keys !== undefined && ownValue(keys, "name") === name && ownValue(keys, "type") === "mcp")
      return { file, keys };
  }
  return undefined;
}

async function keysOf(path: string, format: "yaml" | "json"): Promise<JsonObject | undefined> {
  // What cannot be read is the gateway's to tell of.
  const text = await readFile(path, "utf8").catch(() => "");
  if (text === "" || text.length > MAX_DECLARATION_BYTES) return undefined;
  const outcome = parseDocument(text, format);
  return outcome.ok ? outcome.document.value : undefined;
}
