import { ownObject, ownText } from "../config/own-values.ts";
import type { SourceDocument } from "../config/source-document.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import type { JsonObject } from "../core/json.ts";
import { ownValue } from "../core/json.ts";
import type { DeclaredTool, ToolHints, ToolKind } from "../core/tool.ts";
import type { DeclarationGrammar } from "./declaration-grammar.ts";
import { withoutKeyField } from "./key-field.ts";
import { readInputSchema, readOutputSchema } from "./tool-schemas.ts";

/** A tool with what was found in its schemas. */
export interface ReadTool {
  readonly tool: DeclaredTool;
  /** The tool as its adapter sees it: with the parameter that `idempotency_field` names. */
  readonly inner: DeclaredTool;
  readonly issues: readonly ConfigIssue[];
  readonly notes: readonly ConfigIssue[];
}

/** Where a tool is read from. */
export interface ToolSource {
  /** Keys that fit the schema of declarations; absent ones take their defaults. */
  readonly keys: JsonObject;
  readonly document: SourceDocument;
  readonly kind: ToolKind;
  readonly grammar: Pick<DeclarationGrammar, "schemaProblem" | "schemas">;
}

/** Reads what a declaration says of its tool whatever the kind. */
export function readTool({ keys, document, kind, grammar }: ToolSource): ReadTool {
  const input = readInputSchema(keys, document, grammar);
  const output = readOutputSchema(keys, document, grammar);
  const field = ownValue(keys, "idempotency_field");
  const schemas = withoutKeyField(input.schema, typeof field === "string" ? field : undefined);
  const labels = ownObject(keys, "labels") ?? {};
  const tool: DeclaredTool = {
    name: ownText(keys, "name"),
    title: ownText(keys, "title"),
    description: ownText(keys, "description"),
    kind,
    inputSchema: schemas.callers,
    outputSchema: output?.schema,
    hints: readHints(ownObject(keys, "hints") ?? {}),
    labels: Object.fromEntries(Object.keys(labels).map((name) => [name, ownText(labels, name)])),
    delivery: ownValue(keys, "delivery") === "incremental" ? "incremental" : "conclusive",
    enabled: ownValue(keys, "enabled") !== false,
  };
  return {
    tool,
    inner: schemas.adapter === tool.inputSchema ? tool : { ...tool, inputSchema: schemas.adapter },
    issues: [...input.issues, ...schemas.issues, ...(output?.issues ?? [])],
    notes: input.notes,
  };
}

/** Reads `hints`. */
export function readHints(hints: JsonObject): ToolHints {
  const hint = <N extends keyof ToolHints>(name: N, key: string): Pick<ToolHints, N> | undefined => {
    const value = ownValue(hints, key);
    return typeof value === "boolean" ? ({ [name]: value } as Pick<ToolHints, N>) : undefined;
  };
  return {
    ...hint("readOnly", "read_only"),
    ...hint("destructive", "destructive"),
    ...hint("idempotent", "idempotent"),
    ...hint("openWorld", "open_world"),
  };
}
