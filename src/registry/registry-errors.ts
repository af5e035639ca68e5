import { GatewayError } from "../core/errors.ts";
import { nearestWords } from "../core/nearest.ts";
import type { DeclarationProblem } from "../core/registry.ts";
import type { Snapshot } from "./snapshot.ts";

/** Most problems that stand in one error. */
const MAX_VIOLATIONS = 100;
/** Most names that an unknown one is compared with: all 10,000 would hold up the loop for 30 ms and more. */
const MAX_COMPARED = 1_000;

/** No tool of this name; the nearest that exist stand in text and metadata. */
export function toolNotFound(name: string, snapshot: Snapshot): GatewayError {
  const shown = name.length > 128 ? `${name.slice(0, 128)}…` : name;
  const near = nearestWords(name, snapshot.namesAround(name, MAX_COMPARED));
  const mend = near.length === 0 ? "use a name from List" : `did you mean ${near.map(quoted).join(", ")}?`;
  return new GatewayError("TOOL_NOT_FOUND", `no tool "${shown}"; ${mend}`, {
    metadata: { tool: shown, nearest: near.join(",") },
  });
}

/** The caller may not call it, where the gateway says so. */
export function toolDenied(name: string): GatewayError {
  return new GatewayError("PERMISSION_DENIED", `you may not call tool "${name}": its \`allowed_roles\` say who may`, {
    metadata: { tool: name },
  });
}

/** The name is a server's; `tools`: those it has. */
export function serverIsNoTool(name: string, tools: readonly string[]): GatewayError {
  const few = tools.slice(0, 3);
  const mend =
    few.length === 0 ? "it has offered no tools" : `call one of its tools, such as ${few.map(quoted).join(", ")}`;
  return new GatewayError("TOOL_NOT_FOUND", `"${name}" is a server and no tool: ${mend}`, {
    metadata: { tool: name, nearest: few.join(",") },
  });
}

/** The tool is switched off. */
export function toolDisabled(name: string, source: string): GatewayError {
  const message = `tool "${name}" is disabled: its declaration (${source}) says \`enabled: false\`; set \`enabled: true\` there`;
  return new GatewayError("TOOL_DISABLED", message, {
    modelMessage: `tool "${name}" is disabled`,
    metadata: { tool: name },
  });
}

/** The name belongs to a tool that must not be replaced. */
export function nameTaken(name: string, source: string): GatewayError {
  const message = source.startsWith("api:")
    ? `tool "${name}" is registered already; leave must_not_exist out to replace it, or choose another name`
    : `tool "${name}" is declared in ${source}; change it there, or choose another name`;
  return new GatewayError("TOOL_EXISTS", message, { metadata: { tool: name, source: sourceName(source) } });
}

/** The name belongs to a tool that the caller may not see. */
export function nameNotFree(name: string): GatewayError {
  return new GatewayError("TOOL_EXISTS", `the name "${name}" is not free; choose another`, {
    metadata: { tool: name },
  });
}

/** The tool belongs to a file. */
export function notRemovable(name: string, source: string): GatewayError {
  const message = `tool "${name}" is declared in ${source}; remove it there, the service removes only what was registered over the wire`;
  return new GatewayError("TOOL_NOT_REMOVABLE", message, { metadata: { tool: name, source: sourceName(source) } });
}

/** The caller's version is not the present one. */
export function etagMismatch(name: string, exists: boolean): GatewayError {
  const found = exists ? "has changed since that etag was read" : "does not exist, so it has no etag";
  return new GatewayError("ETAG_MISMATCH", `tool "${name}" ${found}; get the tool again`, { metadata: { tool: name } });
}

/** No room for one more registration. */
export function registryFull(limit: number): GatewayError {
  return new GatewayError("REGISTRY_FULL", `${limit} tools are registered, which is the limit; unregister some first`);
}

/** The declaration is refused; each problem is a violation. */
export function declarationInvalid(problems: readonly DeclarationProblem[], format: "yaml" | "json"): GatewayError {
  const real = problems.filter((problem) => !problem.note);
  const texts = real.map((problem) => positioned(problem.line, problem.column, problem.message));
  const more = texts.length > 1 ? ` (and ${texts.length - 1} more)` : "";
  const violations = texts.slice(0, MAX_VIOLATIONS).map((description) => ({
    field: `declaration_${format}`,
    description,
    reason: "DECLARATION_INVALID",
  }));
  return new GatewayError(
    "DECLARATION_INVALID",
    `the declaration is refused: ${texts[0] ?? "no reason given"}${more}`,
    {
      violations,
    },
  );
}

/** A message with the place it is about, where that is known. */
export function positioned(line: number, column: number, message: string): string {
  return line === 0 ? message : `line ${line}, column ${column}: ${message}`;
}

function quoted(name: string): string {
  return `"${name}"`;
}

function sourceName(source: string): string {
  return source.startsWith("api:") ? "api" : source;
}
