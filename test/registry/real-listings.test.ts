import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { UpstreamTool } from "../../src/core/adapter.ts";
import { isJsonObject, type JsonObject, ownValue, parseJson } from "../../src/core/json.ts";
import { listedTool, offered, problemLines, server, startServers } from "./server-fixture.ts";
import { ANONYMOUS, toolNames } from "./support.ts";

/** What real servers answered to tools/list, by a name for each: as they sent it, without the rest of the answer. */
function readListings(): ReadonlyMap<string, readonly UpstreamTool[]> {
  const file = new URL("../fixtures/mcp-listings.json.gz", import.meta.url);
  const listings = parseJson(gunzipSync(readFileSync(file)).toString("utf8"));
  return new Map(
    Object.entries(isJsonObject(listings) ? listings : {}).map(([name, listing]) => [name, toolsOf(listing)]),
  );
}

function toolsOf(listing: unknown): readonly UpstreamTool[] {
  const tools = isJsonObject(listing) ? ownValue(listing, "tools") : [];
  return (Array.isArray(tools) ? tools : []).filter(isJsonObject).map((tool: JsonObject) => {
    const object = (key: string): JsonObject | undefined => {
      const value = ownValue(tool, key);
      return isJsonObject(value) ? value : undefined;
    };
    const text = (key: string): string => {
      const value = ownValue(tool, key);
      return typeof value === "string" ? value : "";
    };
    return offered(text("name"), {
      title: text("title"),
      description: text("description"),
      inputSchema: object("inputSchema") ?? {},
      outputSchema: object("outputSchema"),
    });
  });
}

const LISTINGS = readListings();

/** All that is held back of 3,191 tools: six name definitions that were not sent along, one a pattern that may take for ever. */
const HELD_BACK: ReadonlyMap<string, string> = new Map([
  ["secret-scanning-update-org-custom-pattern", "is not in the schema"],
  ["code-scanning-update-alert", "is not in the schema"],
  ["code-scanning-create-variant-analysis", "is not in the schema"],
  ["dependency-graph-create-repository-snapshot", "is not in the schema"],
  ["secret-scanning-update-alert", "is not in the schema"],
  ["secret-scanning-update-repo-custom-pattern", "is not in the schema"],
  ["getWorkspace", "look-around, back-references and counts over 1,000 cannot be run in linear time"],
]);

test("the tools of 60 listings of real servers all register, but for seven whose schemas cannot be used [M-D12, M-D13]", async () => {
  const files = [...LISTINGS.keys()].map((name): [string, string] => [`${name}.yaml`, server(name)]);
  const { registry } = await startServers({ files: Object.fromEntries(files), offers: Object.fromEntries(LISTINGS) });
  const { problems } = registry.list(ANONYMOUS);
  const lines = problemLines(registry).filter((_line, i) => problems[i]?.message.includes("is held back"));
  const wanted = [...HELD_BACK].map(([name, why]) => [
    `tool "${name}" is held back: its input schema cannot be used: `,
    why,
  ]);
  expect(lines).toHaveLength(wanted.length);
  for (const [i, words] of wanted.entries()) for (const word of words) expect(lines[i]).toContain(word);

  const offeredCount = [...LISTINGS.values()].reduce((sum, tools) => sum + tools.length, 0);
  const names = toolNames(registry);
  expect(LISTINGS.size).toBe(60);
  expect(offeredCount).toBe(3191);
  expect(names.length).toBe(offeredCount - HELD_BACK.size);
  const aliases = registry.list(ANONYMOUS).tools.map(({ definition }) => definition.alias);
  expect(new Set(aliases).size).toBe(names.length);
  expect(aliases.filter((alias) => !/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(alias))).toEqual([]);

  // What a server says arrives as it said it: a description of 34,527 characters, a schema of 41 KB, definitions.
  const drawio = LISTINGS.get("drawio")?.find(({ description }) => description.length > 30_000);
  expect(listedTool(registry, `drawio/${drawio?.name}`).definition.description).toBe(drawio?.description);
  const collection = LISTINGS.get("postman")?.find(({ name }) => name === "createCollection");
  expect(listedTool(registry, "postman/createCollection").definition.inputSchema).toEqual(collection?.inputSchema);
  const notion = JSON.stringify(listedTool(registry, "notion/API-post-page").definition.inputSchema);
  expect(notion).toContain('"$defs"');
}, 120_000);
