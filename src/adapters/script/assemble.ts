import { GatewayError } from "../../core/errors.ts";
import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  jsonPointer,
  ownValue,
  stringifyJson,
} from "../../core/json.ts";
import { fillBody } from "../shared/body-template.ts";
import { declaredParams } from "../shared/param-schema.ts";
import { argumentOf, fillText, scalarText, type TextTemplate, ValueRefused } from "../shared/text-template.ts";
import type { ArgumentGroup, ArgumentTemplate, InputTemplate, ScriptConfig } from "./script-config.ts";

/** What a call runs. */
export interface ProgramCall {
  readonly file: string;
  readonly args: readonly string[];
  /** Standard input; absent: none. */
  readonly input: string | undefined;
}

/**
 * Fills a call's arguments into the command.
 *
 * @throws GatewayError TEMPLATE_VALUE_REFUSED for an argument that cannot stand where it belongs.
 */
export function assembleProgram(config: ScriptConfig, args: JsonObject): ProgramCall {
  try {
    const input = config.input === undefined ? undefined : fillInput(config.input, args, config.keepsNull);
    return { ...fillCommand(config, args), input };
  } catch (error) {
    if (!(error instanceof ValueRefused)) throw error;
    throw refusedArgument(config.tool.name, error.param, error.message);
  }
}

/** The error for an argument that the program cannot get. `why` goes on after its name. */
function refusedArgument(tool: string, param: string, why: string): GatewayError {
  return new GatewayError(
    "TEMPLATE_VALUE_REFUSED",
    `${tool}: argument \`${param}\` ${why}; the program was not started`,
    {
      violations: [{ field: jsonPointer([param]), description: why, reason: "REFUSED_BY_TEMPLATE" }],
      metadata: { tool, param },
    },
  );
}

function fillCommand(config: ScriptConfig, args: JsonObject): Pick<ProgramCall, "file" | "args"> {
  const { command } = config;
  if (command.kind === "program") {
    return { file: command.file, args: command.groups.flatMap((group) => fillGroup(group, config, args)) };
  }
  const values = command.values.map(({ param, bare }) => {
    const value = argumentOf({ param }, args);
    if (value === undefined) throw new ValueRefused(param, "is missing, and the command line needs it");
    return checked(param, scalarText(param, value, "a command line"), { bare, config });
  });
  return { file: "/bin/sh", args: ["-c", command.text, config.tool.name, ...values] };
}

/** The entries of a group; none where an argument of one is absent. */
function fillGroup(group: ArgumentGroup, config: ScriptConfig, args: JsonObject): string[] {
  const filled = group.map((template) => fillEntry(template, config, args));
  return filled.includes(undefined) ? [] : filled.flatMap((entries) => entries ?? []);
}

function fillEntry({ parts, bare }: ArgumentTemplate, config: ScriptConfig, args: JsonObject): string[] | undefined {
  const [only] = parts;
  if (parts.length === 1 && typeof only === "object") {
    const value = argumentOf(only, args);
    if (value === undefined) return undefined;
    const items: readonly JsonValue[] = isJsonArray(value) ? value : [value];
    return items.map((item) => checked(only.param, scalarText(only.param, item, "an argument"), { bare, config }));
  }
  const text = fillText(parts, args, "an argument");
  return text === undefined ? undefined : [checked(firstParam(parts), text, { bare, config })];
}

function firstParam(parts: TextTemplate): string {
  const first = parts.find((part) => typeof part === "object");
  return first?.param ?? "";
}

/** What the system would cut short or a program take for something else is refused. */
function checked(
  param: string,
  text: string,
  { bare, config }: { readonly bare: boolean; readonly config: ScriptConfig },
): string {
  if (text.includes("\0")) throw new ValueRefused(param, "contains NUL, which no argument of a program can");
  if (!bare || !text.startsWith("-") || config.allowDash.has(param) || isDeclared(config, param, text)) return text;
  throw new ValueRefused(param, "begins with `-`, which the program could take for an option");
}

/** Whether the declaration itself names the value. */
function isDeclared({ tool }: ScriptConfig, param: string, text: string): boolean {
  const schema = ownValue(declaredParams(tool.inputSchema), param);
  if (!isJsonObject(schema)) return false;
  const items = ownValue(schema, "items");
  return [schema, ...(isJsonObject(items) ? [items] : [])].some((each) => {
    const values = ownValue(each, "enum");
    return (isJsonArray(values) ? values : [ownValue(each, "const")]).some((value) => value === text);
  });
}

function fillInput(input: InputTemplate, args: JsonObject, keepsNull: ReadonlySet<string>): string {
  switch (input.kind) {
    case "arguments":
      return `${stringifyJson(args)}\n`;
    case "json":
      return `${stringifyJson(fillBody(input.template, args, keepsNull) ?? null)}\n`;
    case "text":
      return fillText(input.parts, args, "the input") ?? "";
  }
}
