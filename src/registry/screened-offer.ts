import type { Offer, UpstreamTool } from "../core/adapter.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../core/json.ts";
import { foreignNameProblem } from "./foreign-text.ts";

/** Keywords of a schema whose texts are for readers: another text means the same. */
const FOR_READERS: ReadonlySet<string> = new Set(["title", "description", "$comment"]);

type Screen = (text: string) => string;

/** What became of a tool. */
export interface ScreenedTool {
  /** `undefined`: it cannot be shown. */
  readonly tool: UpstreamTool | undefined;
  /** Absent where it is as it was. */
  readonly note?: Offer["notes"][number];
}

/**
 * A tool that a server offers, with its texts fit to be shown. One whose name or schema says something that would have to
 * be shown otherwise than it is (a parameter, a value) is left out, since a call with what is shown would not be one of
 * it.
 */
export function screenOffered(tool: UpstreamTool, screen: Screen): ScreenedTool {
  const screened = screenTool(tool, screen);
  if (screened === undefined) {
    const message = "is left out: a name or a value in it holds a secret, or characters that are not seen";
    return { tool: undefined, note: { tool: screen(tool.name), message } };
  }
  if (screened === tool) return { tool };
  const message =
    "what the server says of it holds secrets, which stand as ***, or characters that are not seen, which stand as <U+…>";
  return { tool: screened, note: { tool: tool.name, message } };
}

/** The tool itself where there is nothing to change; `undefined`: it cannot be shown. */
function screenTool(tool: UpstreamTool, screen: Screen): UpstreamTool | undefined {
  const { name, inputSchema, outputSchema } = tool;
  // Nothing that a server says has been checked yet, so a text may be none.
  const word = (text: string): string => (typeof text === "string" ? screen(text) : text);
  const title = word(tool.title);
  const description = word(tool.description);
  const input = isJsonObject(inputSchema) ? screenSchema(inputSchema, screen) : { schema: inputSchema, shows: true };
  const output = isJsonObject(outputSchema)
    ? screenSchema(outputSchema, screen)
    : { schema: outputSchema, shows: true };
  // A name that is refused anyway is left to who says why.
  const named = word(name) === name || foreignNameProblem(name) !== undefined;
  const shows = named && input.shows && output.shows;
  if (!shows) return undefined;
  const same =
    title === tool.title &&
    description === tool.description &&
    input.schema === inputSchema &&
    output.schema === outputSchema;
  return same ? tool : { ...tool, title, description, inputSchema: input.schema, outputSchema: output.schema };
}

interface ScreenedSchema<T> {
  readonly schema: T;
  /** Whether all in it but texts for readers is as it was. */
  readonly shows: boolean;
}

function screenSchema(schema: JsonObject, screen: Screen): ScreenedSchema<JsonObject> {
  const entries = Object.entries(schema).map(([key, value]) => {
    if (FOR_READERS.has(key) && typeof value === "string") return { key, schema: screen(value), shows: true, value };
    return { key, value, ...screenValue(value, screen), named: screen(key) === key };
  });
  const shows = entries.every((entry) => entry.shows && (!("named" in entry) || entry.named));
  if (entries.every((entry) => entry.schema === entry.value)) return { schema, shows };
  return { schema: Object.fromEntries(entries.map((entry) => [entry.key, entry.schema])), shows };
}

function screenValue(value: JsonValue, screen: Screen): ScreenedSchema<JsonValue> {
  if (typeof value === "string") return { schema: value, shows: screen(value) === value };
  if (isJsonObject(value)) return screenSchema(value, screen);
  if (!isJsonArray(value)) return { schema: value, shows: true };
  const items = value.map((item) => screenValue(item, screen));
  const shows = items.every((item) => item.shows);
  return {
    schema: items.every((item, i) => item.schema === value[i]) ? value : items.map((item) => item.schema),
    shows,
  };
}
