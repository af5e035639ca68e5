import { ownObject } from "../config/own-values.ts";
import { yamlText } from "../config/yaml-text.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../core/json.ts";
import type { DeclaredTool } from "../core/tool.ts";
import type { ResolvedAccess } from "./access.ts";
import type { Declaration, RemoteTool } from "./declaration.ts";
import { explainDeclaration, type OriginParts, originOf } from "./explain-declaration.ts";
import type { Override } from "./server-parts.ts";
import type { SettledOverride } from "./settled-override.ts";

/** What is explained of a tool that a server brought. */
export interface RemoteParts {
  readonly tool: DeclaredTool;
  readonly remote: RemoteTool;
  readonly stepConfigs: Declaration["stepConfigs"];
  readonly settled: SettledOverride;
  readonly access: ResolvedAccess;
  /** Those that concern it, the most specific last. */
  readonly overrides: readonly Override[];
}

/** Keys whose value at the top of the declaration is the server's own, and not its tools'. */
const OF_THE_SERVER = ["title", "description"];

/** Every effective value of a server's tool: what the server says, what an override does, what the declaration does. */
export function explainRemote(parts: RemoteParts, place: OriginParts): Declaration["explained"] {
  const { tool, remote, stepConfigs, settled, access, overrides } = parts;
  const layers = overrides.map(({ pointer }) => pointer).toReversed();
  const own = { ...place, layers, otherwise: `server ${remote.server}` };
  const both = { ...place, layers: [...layers, ""] };
  const { timeouts, policies, result } = settled;
  const values = explainDeclaration(
    { tool, timeouts, policies, access, stepConfigs, adapter: [], result: result.explain() },
    both,
  ).map((each) => (isForeign(each.key, tool) ? { ...each, origin: originOf(each.key.split("."), own) } : each));
  const said = `server ${remote.server}`;
  return [
    ...values,
    line("server", remote.server, originOf(["name"], place)),
    line("offered.name", remote.name, said),
    line("offered.digest", remote.offeredDigest, said),
    line("visible", remote.visible, originOf(["visible"], { ...place, layers })),
    ...Object.entries<boolean>({ ...tool.claimedHints }).map(([key, value]) => {
      return line(`claimed_hints.${snakeCase(key)}`, value, `${said}, without effect`);
    }),
    ...paramLines(ownObject(settled.keys, "params") ?? {}).map(([steps, value]) => {
      return line(steps.join("."), value, originOf(steps, { ...place, layers }));
    }),
  ];
}

/** What the server says unless an override says something else. */
function isForeign(key: string, { hints }: DeclaredTool): boolean {
  if (key.startsWith("hints.")) return Object.keys(hints).length > 0;
  return ["name", "input_schema", "output_schema", ...OF_THE_SERVER].includes(key);
}

function paramLines(params: JsonObject): (readonly [steps: readonly string[], value: JsonValue])[] {
  return Object.entries(params).flatMap(([name, keys]) => {
    if (!isJsonObject(keys)) return [];
    return Object.entries(keys).map(([key, value]) => [["params", name, key], value] as const);
  });
}

function snakeCase(word: string): string {
  return word.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function line(key: string, value: JsonValue, origin: string): Declaration["explained"][number] {
  return { key, value: yamlText(value), origin };
}
