import { ownList, ownObject } from "../config/own-values.ts";
import { yamlText } from "../config/yaml-text.ts";
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from "../core/json.ts";
import type { Declaration } from "./declaration.ts";
import { type OriginParts, originOf } from "./explain-declaration.ts";
import type { ServerTools } from "./server-tools.ts";

/** One effective value with where it came from. */
type Explained = Declaration["explained"][number];

/** What a declaration says of the tools of its server. */
export function explainServerKeys(keys: JsonObject, place: OriginParts): Explained[] {
  const tools = ownObject(keys, "tools") ?? {};
  const line = (steps: readonly string[], value: JsonValue): Explained => ({
    key: steps.join("."),
    value: yamlText(value),
    origin: originOf(steps, place),
  });
  return [
    line(["trust_hints"], ownValue(keys, "trust_hints") === true),
    line(["tools", "include"], ownList(tools, "include") ?? ["*"]),
    line(["tools", "exclude"], ownList(tools, "exclude") ?? []),
    ...Object.entries(ownObject(tools, "overrides") ?? {}).flatMap(([names, override]) => {
      return Object.entries(isJsonObject(override) ? override : {}).map(([key, value]) => {
        return line(["tools", "overrides", names, key], value);
      });
    }),
  ];
}

/** What has become of the tools that a server offers. */
export function explainOffered(server: ServerTools): Explained[] {
  const { expansion, name } = server;
  const line = (key: string, value: JsonValue): Explained => {
    return { key: `offered.${key}`, value: yamlText(value), origin: `server ${name}` };
  };
  if (!server.heard) return [line("tools", "none heard of yet")];
  const hidden = [...expansion.tools.values()].filter(({ remote }) => !remote.visible);
  return [
    line("tools", [...expansion.tools.keys()]),
    line(
      "hidden",
      hidden.map(({ tool }) => tool.name),
    ),
    line("left_out", expansion.leftOut),
    ...expansion.heldBack.map(({ tool, reason }) => line(`held_back.${tool}`, reason)),
    ...expansion.notes.map(({ tool, message }) => line(`note.${tool ?? "list"}`, message)),
  ];
}
