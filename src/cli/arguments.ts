import { isUtf8 } from "node:buffer";
import { readFile } from "node:fs/promises";
import {
  hasDuplicateNames,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  ownValue,
  parseJson,
  pointerSteps,
} from "../core/json.ts";
import { jsonFault } from "../core/json-fault.ts";
import { CliError } from "./cli-error.ts";
import { EXIT } from "./exit-codes.ts";

/** Most `$ref` steps that are followed; a schema may point at itself. */
const MAX_REFS = 4;

/** What the command line says about a tool's arguments. */
export interface GivenArguments {
  /** `name=value` texts, in order. */
  readonly params: readonly string[];
  /** JSON text, `@file`, or `-` for stdin. */
  readonly json?: string | undefined;
}

/**
 * The arguments to send. A `--param` is converted by the tool's input schema: text where the schema takes a string, JSON
 * otherwise; text that is no JSON goes as it stands, so that the gateway can say what it expected. Params win over the
 * same names of `--json`.
 *
 * @throws CliError for text that cannot be read as arguments.
 */
export async function toolArguments(
  given: GivenArguments,
  schema: () => Promise<JsonObject>,
  readStdin: () => Promise<string>,
): Promise<JsonObject> {
  const base = given.json === undefined ? {} : parseObject(await jsonText(given.json, "--json", readStdin));
  if (given.params.length === 0) return base;
  const inputSchema = await schema();
  const params = new Map<string, JsonValue>();
  for (const param of given.params) {
    const { name, value } = splitParam(param);
    if (params.has(name)) {
      throw new CliError(EXIT.usage, `--param ${name} is given twice`, {
        mend: `Write a list as JSON: --param '${name}=[…]'.`,
      });
    }
    params.set(name, convert(name, await valueText(value, `--param ${name}`), inputSchema));
  }
  return { ...base, ...Object.fromEntries(params) };
}

/** The text of a file named on the command line. @throws CliError when it cannot be read or is no UTF-8. */
export async function fileText(path: string, option: string): Promise<string> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(path);
  } catch (error) {
    throw new CliError(EXIT.usage, `${option}: cannot read ${path}: ${systemReason(error)}`, { cause: error });
  }
  // Anything else would be sent with its characters replaced, and nobody would know.
  if (!isUtf8(bytes))
    throw new CliError(EXIT.usage, `${option}: ${path} is no UTF-8 text`, { mend: "Save it as UTF-8." });
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

/** Why a file operation failed, without the path that Node repeats. */
export function systemReason(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const words: Readonly<Record<string, string>> = {
    ENOENT: "no such file or folder",
    EACCES: "permission denied",
    EPERM: "permission denied",
    EISDIR: "it is a folder",
    ENOTDIR: "a part of the path is no folder",
    EROFS: "the file system is read-only",
    ENOSPC: "no space left",
  };
  return words[code] ?? (code || "unknown reason");
}

function splitParam(param: string): { name: string; value: string } {
  const at = param.indexOf("=");
  if (at < 1) {
    throw new CliError(EXIT.usage, `--param takes name=value, got "${param}"`, {
      mend: "For instance --param order_id=SO20241001.",
    });
  }
  return { name: param.slice(0, at), value: param.slice(at + 1) };
}

/** `@file` reads a file, `@@…` is text that begins with one `@`. */
async function valueText(value: string, option: string): Promise<string> {
  if (value.startsWith("@@")) return value.slice(1);
  return value.startsWith("@") ? fileText(value.slice(1), option) : value;
}

/** JSON text of an option: as it stands, of `@file`, or for `-` of stdin. @throws CliError when it cannot be read. */
export async function jsonText(json: string, option: string, readStdin: () => Promise<string>): Promise<string> {
  if (json === "-") return readStdin();
  return json.startsWith("@") ? fileText(json.slice(1), option) : json;
}

function parseObject(text: string): JsonObject {
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch (error) {
    throw new CliError(EXIT.usage, `--json ${jsonFault(text)?.description ?? "is not valid JSON"}`, {
      mend: `For instance --json '{"order_id": "SO20241001"}'.`,
      cause: error,
    });
  }
  if (hasDuplicateNames(text, value)) {
    throw new CliError(EXIT.usage, `--json ${jsonFault(text)?.description ?? "has a name twice"}`);
  }
  if (!isJsonObject(value)) throw new CliError(EXIT.usage, "--json must be one JSON object, the arguments by name");
  return value;
}

function convert(name: string, text: string, inputSchema: JsonObject): JsonValue {
  const types = new Set(acceptedTypes(propertySchema(inputSchema, name), inputSchema, MAX_REFS));
  if (types.has("string")) return text;
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch {
    const wantsJson = types.size > 0 && [...types].every((type) => type === "object" || type === "array");
    if (!wantsJson) return text;
    const example = types.has("array") ? `[1, 2]` : `{"key": 1}`;
    throw new CliError(EXIT.usage, `--param ${name} must be JSON, got ${text}`, {
      mend: `Quote it for the shell: --param '${name}=${example}'.`,
    });
  }
  // For a parameter without a known type, text that only looks like JSON in quotes stays what was typed.
  return types.size === 0 && typeof value === "string" ? text : value;
}

function propertySchema(inputSchema: JsonObject, name: string): JsonValue | undefined {
  const properties = ownValue(inputSchema, "properties");
  return isJsonObject(properties) ? ownValue(properties, name) : undefined;
}

/** JSON types a schema takes; none where it does not say. */
function acceptedTypes(schema: JsonValue | undefined, root: JsonObject, refsLeft: number): string[] {
  if (!isJsonObject(schema)) return [];
  const ref = ownValue(schema, "$ref");
  if (typeof ref === "string") return refsLeft === 0 ? [] : acceptedTypes(resolveRef(root, ref), root, refsLeft - 1);
  const type = ownValue(schema, "type");
  if (typeof type === "string") return [type];
  if (Array.isArray(type)) return type.filter((word) => typeof word === "string");
  const values =
    ownValue(schema, "enum") ?? (Object.hasOwn(schema, "const") ? [ownValue(schema, "const") ?? null] : undefined);
  if (Array.isArray(values)) return values.map((value: JsonValue) => (value === null ? "null" : jsonType(value)));
  const branches = [ownValue(schema, "anyOf"), ownValue(schema, "oneOf"), ownValue(schema, "allOf")];
  return branches.flatMap((list) =>
    Array.isArray(list) ? list.flatMap((branch: JsonValue) => acceptedTypes(branch, root, refsLeft)) : [],
  );
}

function jsonType(value: JsonValue): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "bigint" ? "number" : typeof value;
}

/** A `$ref` into the same schema; undefined for any other. */
function resolveRef(root: JsonObject, ref: string): JsonValue | undefined {
  if (!ref.startsWith("#")) return undefined;
  let place: JsonValue | undefined = root;
  for (const step of pointerSteps(ref.slice(1))) {
    place = isJsonObject(place) ? ownValue(place, step) : undefined;
  }
  return place;
}
