import { ownList, ownObject, ownText } from "../config/own-values.ts";
import { keyText } from "../config/wording.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import { GatewayError } from "../core/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, jsonPointer, ownValue, stringifyJson } from "../core/json.ts";
import { misfit } from "./value-fit.ts";

/** Keywords of an object's schema that may speak of its properties besides `properties` and `required`. */
const ALSO_SPEAK = [
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "dependentRequired",
  "dependentSchemas",
  "dependencies",
] as const;

/** A foreign tool's parameters as callers see them, or why they cannot be shown so. */
export type OverriddenParams =
  | {
      readonly ok: true;
      /** What callers' arguments are held against. */
      readonly schema: JsonObject;
      /** The arguments as the server gets them. @throws GatewayError ARGUMENTS_INVALID. */
      toServer(args: JsonObject): JsonObject;
    }
  | { readonly ok: false; readonly reason: string };

/** What an override says in vain, or against itself. */
export function paramIssues(params: JsonObject, pointer: string): ConfigIssue[] {
  return Object.entries(params).flatMap(([param, keys]) => {
    if (!isJsonObject(keys)) return [];
    const has = (key: string): boolean => ownValue(keys, key) !== undefined;
    const idle = (key: string, why: string): ConfigIssue[] => {
      const message = `parameter ${keyText(param)}: \`${key}\` has no effect${why}`;
      return has(key) ? [{ pointer: `${pointer}${jsonPointer([param, key])}`, message }] : [];
    };
    if (has("value")) {
      const why = ", since `value` is always sent: remove one of them";
      return [...["name", "description", "default"].flatMap((key) => idle(key, why)), ...shownValue(keys, idle)];
    }
    if (ownValue(keys, "hidden") !== true) return [];
    const why = " on a parameter that is hidden: remove it, or send a `value`";
    return ["name", "description", "default"].flatMap((key) => idle(key, why));
  });
}

function shownValue(keys: JsonObject, idle: (key: string, why: string) => ConfigIssue[]): ConfigIssue[] {
  return ownValue(keys, "hidden") === false
    ? idle("hidden", ": a parameter with a `value` is never shown; remove `hidden: false`")
    : [];
}

/** Overrides of a tool's parameters, and what they are applied to. */
export interface ParamOverrides {
  /** Canonical name of the tool. */
  readonly tool: string;
  /** Of the arguments, as the server gave it. */
  readonly schema: JsonObject;
  /** What is different, by the server's name of each. */
  readonly params: JsonObject;
  /**
   * The parameters that were named for this tool alone: where it has not got one, it must not be served, since what was
   * to be fixed or hidden may go by another name now.
   */
  readonly mustExist: ReadonlySet<string>;
}

/** Applies overrides of parameters to the schema of a tool's arguments. */
export function overrideParams({ tool, schema, params, mustExist }: ParamOverrides): OverriddenParams {
  const known = ownObject(schema, "properties") ?? {};
  const unknown = [...mustExist].find((name) => !Object.hasOwn(known, name));
  if (unknown !== undefined) {
    return refused(`\`params\` names ${keyText(unknown)}, which is none of its parameters (any more)`);
  }
  const properties = new Map<string, JsonValue>();
  const required = new Set((ownList(schema, "required") ?? []).filter((name) => typeof name === "string"));
  const moves = new Moves(tool);
  for (const [name, property] of Object.entries(known)) {
    const keys = ownObject(params, name);
    const changed = keys === undefined ? property : moves.apply({ name, property, keys, required, schema });
    if (moves.problem !== undefined) return refused(moves.problem);
    const shown = moves.shownName(name);
    if (changed === undefined || shown === undefined) continue;
    if (properties.has(shown)) return refused(`two of its parameters would be named ${keyText(shown)}`);
    properties.set(shown, changed);
  }
  const { required: _required, ...rest } = schema;
  const needed = [...required];
  const shown = {
    ...rest,
    properties: Object.fromEntries(properties),
    ...(needed.length === 0 ? {} : { required: needed }),
  };
  return { ok: true, schema: shown, toServer: (args) => moves.toServer(args) };
}

interface Param {
  /** The server's name. */
  readonly name: string;
  readonly property: JsonValue;
  readonly keys: JsonObject;
  /** Names that callers must send: is kept up to date. */
  readonly required: Set<string>;
  readonly schema: JsonObject;
}

/** How a caller's arguments become the server's. */
class Moves {
  problem: string | undefined;
  readonly #tool: string;
  readonly #fixed = new Map<string, JsonValue>();
  readonly #renamed = new Map<string, string>();
  /** The server's names that callers cannot send. */
  readonly #closed = new Set<string>();

  constructor(tool: string) {
    this.#tool = tool;
  }

  /** The parameter's schema as callers see it; `undefined`: they do not, or there is a problem. */
  apply(param: Param): JsonValue | undefined {
    const { name, keys, schema } = param;
    const value = ownValue(keys, "value");
    const shown = ownText(keys, "name") === "" ? name : ownText(keys, "name");
    const hidden = value !== undefined || ownValue(keys, "hidden") === true;
    if (hidden || shown !== name) {
      this.problem = spokenOf(schema, name);
      if (this.problem !== undefined) return undefined;
      this.#closed.add(name);
    }
    return hidden ? this.#hide(param, value) : this.#show(param, shown);
  }

  #show({ name, property, keys, required }: Param, shown: string): JsonObject {
    const shape: JsonObject = isJsonObject(property) ? property : {};
    const preset = ownValue(keys, "default");
    const description = ownText(keys, "description");
    if (shown !== name) this.#renamed.set(shown, name);
    const why = preset === undefined ? undefined : misfit(preset, shape);
    if (why !== undefined) this.problem = `the \`default\` of parameter ${keyText(name)} does not fit: ${why}`;
    if (required.delete(name) && preset === undefined) required.add(shown);
    return {
      ...shape,
      ...(description === "" ? {} : { description }),
      ...(preset === undefined ? {} : { default: preset }),
    };
  }

  #hide({ name, property, required }: Param, value: JsonValue | undefined): undefined {
    if (value === undefined) {
      if (required.has(name)) this.problem = `parameter ${keyText(name)} is required: give it a \`value\` to hide it`;
      return;
    }
    const why = misfit(value, isJsonObject(property) ? property : {});
    if (why !== undefined) this.problem = `the \`value\` of parameter ${keyText(name)} does not fit: ${why}`;
    this.#fixed.set(name, value);
    required.delete(name);
  }

  /** What callers call a parameter; `undefined`: they do not see it. */
  shownName(name: string): string | undefined {
    for (const [shown, own] of this.#renamed) if (own === name) return shown;
    return this.#closed.has(name) ? undefined : name;
  }

  toServer(args: JsonObject): JsonObject {
    if (this.#closed.size === 0) return args;
    const sent = Object.entries(args).map(([name, value]): [string, JsonValue] => {
      const own = this.#renamed.get(name);
      if (own === undefined && this.#closed.has(name)) throw unknownParameter(this.#tool, name);
      return [own ?? name, value];
    });
    return Object.fromEntries([...sent, ...this.#fixed]);
  }
}

/** Why a parameter cannot be taken out of a schema: other parts of it speak of it by its name. */
function spokenOf(schema: JsonObject, name: string): string | undefined {
  const place = jsonPointer(["properties", name]);
  const text = stringifyJson(schema);
  if (text.includes(`"#${stringifyJson(place).slice(1, -1)}`)) {
    return `parameter ${keyText(name)} cannot be hidden, fixed or renamed: another part of the schema refers to it`;
  }
  const keyword = ALSO_SPEAK.find((key) => {
    const part = ownValue(schema, key);
    return part !== undefined && stringifyJson(part).includes(stringifyJson(name));
  });
  return keyword === undefined
    ? undefined
    : `parameter ${keyText(name)} cannot be hidden, fixed or renamed: \`${keyword}\` of the schema speaks of it`;
}

function unknownParameter(tool: string, name: string): GatewayError {
  const description = "unknown parameter, remove it";
  const text = `tool "${tool}" was not called, its arguments are wrong: ${keyText(name)}: ${description}`;
  const violations = [{ field: jsonPointer([name]), description, reason: "UNKNOWN_PARAMETER" }];
  return new GatewayError("ARGUMENTS_INVALID", text, { violations, metadata: { tool } });
}

function refused(reason: string): OverriddenParams {
  return { ok: false, reason };
}
