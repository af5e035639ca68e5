import { durationMs, timestampDate } from "@bufbuild/protobuf/wkt";
import { type DeclarationProblem, type Tool, ToolState } from "../../clients/typescript/src/index.ts";
import { isJsonObject, type JsonObject, type JsonValue, ownValue, parseJson, stringifyJson } from "../core/json.ts";
import { durationWords } from "./durations.ts";
import { fitColumns, tableLines } from "./table.ts";
import { type Output, type Paint, plain } from "./terminal.ts";
import { deliveryWord, kindWord, stateWord } from "./words.ts";

/** Prints tools as a table, and why those that cannot be called are so. */
export function printToolTable(tools: readonly Tool[], out: Output, err: Output): void {
  const rows = tools.map((tool) => [
    plain(tool.name),
    stateWord(tool.state),
    kindWord(tool.kind),
    plain(tool.source),
    plain(tool.description),
  ]);
  const [header = "", ...lines] = tableLines(
    [["NAME", "STATE", "KIND", "SOURCE", "DESCRIPTION"], ...rows],
    out.columns,
  );
  out.line(out.paint("bold", header));
  for (const [index, line] of lines.entries()) {
    const tool = tools[index];
    out.line(tool === undefined ? line : paintState(line, tool, out));
  }
  const ailing = tools.filter((tool) => tool.stateReason !== "");
  if (ailing.length > 0) err.line();
  for (const tool of ailing) {
    err.line(`${err.paint("yellow", `${tool.name} is ${stateWord(tool.state)}:`)} ${plain(tool.stateReason)}`);
  }
}

/** Prints declaration problems: `file:line:column: what`, notes apart. */
export function printProblems(problems: readonly DeclarationProblem[], err: Output): void {
  for (const problem of problems) {
    const kind = problem.note ? err.paint("dim", "note:") : err.paint("red", "problem:");
    const serving = problem.lastGoodServing ? " (the last good version keeps serving)" : "";
    err.line(`${kind} ${problemPlace(problem)} ${plain(problem.message)}${serving}`);
  }
}

/** `weather.yaml:3:5:`, or as much of it as is known. */
export function problemPlace({ source, line, column }: DeclarationProblem): string {
  const place = plain(source.replace(/^file:/, ""));
  return line === 0 ? `${place}:` : `${place}:${line}:${column}:`;
}

/** Prints everything about one tool. */
export function printTool(tool: Tool, out: Output): void {
  const { hints } = tool;
  const facts: [string, string][] = [
    ["name", tool.name],
    ["alias", tool.alias === tool.name ? "" : tool.alias],
    ["title", plain(tool.title)],
    ["state", stateWord(tool.state) + (tool.stateReason === "" ? "" : `: ${plain(tool.stateReason)}`)],
    ["kind", kindWord(tool.kind)],
    ["source", plain(tool.source)],
    ["delivery", deliveryWord(tool.delivery)],
    ["hints", hintWords(hints)],
    [
      "labels",
      plain(
        Object.entries(tool.labels)
          .map(([key, value]) => `${key}=${value}`)
          .join(", "),
      ),
    ],
    ["toolsets", plain(tool.toolsets.join(", "))],
    ["time limit", tool.defaultTimeout === undefined ? "" : durationWords(durationMs(tool.defaultTimeout))],
    ["lease until", tool.leaseExpireTime === undefined ? "" : timestampDate(tool.leaseExpireTime).toISOString()],
    ["updated", tool.updateTime === undefined ? "" : timestampDate(tool.updateTime).toISOString()],
    ["etag", tool.etag],
    ["digest", tool.contractDigest],
  ];
  const known = facts.filter(([, value]) => value !== "");
  for (const line of tableLines(known)) out.line(line);
  out.line();
  out.line(
    tool.description
      .split("\n")
      .map((line) => plain(line))
      .join("\n"),
  );
  printParameters(parseJson(tool.inputSchemaJson || "{}"), out);
}

function printParameters(schema: JsonValue, out: Output): void {
  const properties = isJsonObject(schema) ? ownValue(schema, "properties") : undefined;
  const names = isJsonObject(properties) ? Object.keys(properties) : [];
  out.line();
  if (!isJsonObject(schema) || !isJsonObject(properties) || names.length === 0) {
    out.line("It takes no parameters.");
    return;
  }
  const required = ownValue(schema, "required");
  const rows = names.map((name) => {
    const property = ownValue(properties, name);
    const must = Array.isArray(required) && required.includes(name);
    return isJsonObject(property)
      ? parameterRow(name, must, property)
      : [plain(name), "any", must ? "required" : "", ""];
  });
  const [header = "", ...lines] = tableLines([["PARAMETER", "TYPE", "", "DESCRIPTION"], ...rows], out.columns);
  out.line(out.paint("bold", header));
  for (const line of lines) out.line(line);
}

function parameterRow(name: string, must: boolean, property: JsonObject): string[] {
  const fallback = ownValue(property, "default");
  const presence = fallback === undefined ? "" : `default ${plain(stringifyJson(fallback))}`;
  const description = ownValue(property, "description");
  return [
    plain(name),
    plain(typeWords(property)),
    must ? "required" : fitColumns(presence, 30),
    typeof description === "string" ? plain(description) : "",
  ];
}

function typeWords(property: JsonObject): string {
  const values = ownValue(property, "enum");
  if (Array.isArray(values)) return fitColumns(values.map((value: JsonValue) => stringifyJson(value)).join(" | "), 60);
  const type = ownValue(property, "type");
  if (typeof type === "string") return type;
  return Array.isArray(type) ? type.map(String).join(" | ") : "any";
}

function hintWords(hints: Tool["hints"]): string {
  if (hints === undefined) return "";
  const words = [
    [hints.readOnly, "read only", "may change something"],
    [hints.destructive, "may destroy", "destroys nothing"],
    [hints.idempotent, "idempotent", "not idempotent"],
    [hints.openWorld, "open world", "closed world"],
  ] as const;
  return words.flatMap(([value, yes, no]) => (value === undefined ? [] : [value ? yes : no])).join(", ");
}

/** Paints the state within a finished line, where its width no longer matters. */
function paintState(line: string, tool: Tool, out: Output): string {
  const word = stateWord(tool.state);
  const at = line.indexOf(` ${word} `, tool.name.length);
  if (at < 0) return line;
  return `${line.slice(0, at + 1)}${out.paint(statePaint(tool.state), word)}${line.slice(at + 1 + word.length)}`;
}

function statePaint(state: ToolState): Paint {
  if (state === ToolState.READY) return "green";
  return state === ToolState.DISABLED ? "dim" : "yellow";
}
