import type { ConfigIssue } from "../../core/adapter.ts";
import { isJsonObject, type JsonObject, type JsonValue, jsonPointer, ownValue } from "../../core/json.ts";
import { nearestWords } from "../../core/nearest.ts";
import type { DeclaredTool } from "../../core/tool.ts";
import { declaredParams, isAlwaysGiven, namedTypes } from "./param-schema.ts";
import type { TextTemplate } from "./text-template.ts";

/** A text entry of a map. */
export type TextEntry = readonly [name: string, text: string, pointer: string];

/** Reads the keys of one declaration, and keeps what is wrong with them and which parameters they name. */
export class TemplateChecker {
  readonly keys: JsonObject;
  readonly tool: DeclaredTool;
  /** Declared parameters: name → schema. */
  readonly params: JsonObject;
  readonly issues: ConfigIssue[] = [];
  readonly warnings: ConfigIssue[] = [];
  /** Parameters that some template names. */
  readonly named = new Set<string>();

  constructor(keys: JsonObject, tool: DeclaredTool) {
    this.keys = keys;
    this.tool = tool;
    this.params = declaredParams(tool.inputSchema);
  }

  issue(pointer: string, message: string): void {
    this.issues.push({ pointer, message });
  }

  warn(pointer: string, message: string): void {
    this.warnings.push({ pointer, message });
  }

  /** A key that is text. */
  text(key: string): string | undefined {
    const value = ownValue(this.keys, key);
    return typeof value === "string" ? value : undefined;
  }

  /** Text entries of a map, each with its pointer. */
  entries(key: string): TextEntry[] {
    const map = ownValue(this.keys, key);
    if (!isJsonObject(map)) return [];
    return Object.entries(map).map(([name, value]) => [name, textOf(value), jsonPointer([key, name])] as const);
  }

  /** Notes the parameters of a `{param}` template. */
  refer(parts: TextTemplate, pointer: string): void {
    for (const [i, part] of parts.entries()) {
      if (typeof part === "string") continue;
      const before = parts[i - 1];
      const variable = typeof before === "string" && before.endsWith("$");
      this.name(part.param, pointer, `${variable ? "$" : ""}{${part.param}}`);
    }
  }

  /** Notes that a parameter is named, and that it is declared. */
  name(param: string, pointer: string, written: string): void {
    this.named.add(param);
    if (Object.hasOwn(this.params, param)) return;
    const names = Object.keys(this.params);
    const [nearest] = nearestWords(param, names);
    const hint = nearest === undefined ? "" : `; did you mean \`${nearest}\`?`;
    const declared = names.length === 0 ? "no parameter is declared" : `declared are: ${names.slice(0, 20).join(", ")}`;
    const variable = written.startsWith("$") ? ` (${this.aboutVariables()})` : "";
    this.issue(pointer, `\`${written}\` names no parameter${hint || `; ${declared}`}${variable}`);
  }

  /** Each parameter must be a scalar, or a list where `arrays` says so. `place` goes on with "takes …". */
  checkScalars(parts: TextTemplate, pointer: string, place: string, arrays = false): void {
    for (const part of parts) {
      if (typeof part === "string") continue;
      const wrong = namedTypes(ownValue(this.params, part.param) ?? true)?.find(
        (type) => type === "object" || (type === "array" && !arrays),
      );
      if (wrong === undefined) continue;
      this.issue(
        pointer,
        `parameter \`${part.param}\` is an ${wrong}, and ${place} takes ${arrays ? "no objects" : "only text, numbers and booleans"}`,
      );
    }
  }

  /** Each parameter must have a value in every call. `place` says where it stands. */
  checkAlwaysGiven(parts: TextTemplate, pointer: string, place: string): void {
    for (const part of parts) {
      if (typeof part === "string" || !Object.hasOwn(this.params, part.param)) continue;
      if (isAlwaysGiven(this.tool.inputSchema, part.param)) continue;
      this.issue(pointer, `parameter \`${part.param}\` stands in ${place}, so it must be required or have a default`);
    }
  }

  /** What is said to one who wrote `$NAME` and meant a variable of the environment. */
  protected aboutVariables(): string {
    return "environment variables are never read here; a dollar sign is `$$`";
  }
}

/** Text of a value that the schema allows as text only. */
export function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}
