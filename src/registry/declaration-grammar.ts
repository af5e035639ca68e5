import { setImmediate } from "node:timers/promises";
import { createDocumentCheck, type DocumentCheck } from "../config/document-check.ts";
import { DocumentsAhead } from "../config/documents-ahead.ts";
import { SharedParts } from "../config/shared-parts.ts";
import type { Adapter } from "../core/adapter.ts";
import type { JsonObject } from "../core/json.ts";
import { freezeJson, SharedResults } from "../core/shared-values.ts";
import type { Step } from "../core/step.ts";
import type { ToolKind } from "../core/tool.ts";
import { RESULT_SCHEMA } from "../shaping/result-rules.ts";
import { composeDeclarationSchema, kindSchema, notYetKeys, type SchemaParts } from "./declaration-schema.ts";
import type { ReadSchema } from "./params.ts";
import { Standards } from "./standards.ts";
import type { SchemaProblem } from "./tool-schemas.ts";

/** What a grammar is made of. */
export interface GrammarParts {
  readonly adapters: ReadonlyMap<ToolKind, Adapter>;
  readonly steps: readonly Step[];
  /** What is wrong with a JSON Schema for arguments or results, in one line; `undefined` where it can be used. */
  readonly schemaProblem: SchemaProblem;
}

/** What a declaration may hold in a gateway with these adapters and steps. Made once, since it compiles schemas. */
export interface DeclarationGrammar extends GrammarParts {
  /** JSON Schema of a declaration, for editors. */
  readonly schema: JsonObject;
  /** Keys that are known and have no effect yet. */
  readonly notYet: readonly string[];
  /** Policies and time limits of declarations that set none. */
  readonly standards: Standards;
  /** What declarations have in common. */
  readonly parts: SharedParts;
  /** What was read ahead of declarations. */
  readonly documents: DocumentsAhead;
  /** Schemas of parts that declarations have in common. */
  readonly schemas: SharedResults<ReadSchema>;
  /** Checks declarations of a kind; of one that is not in force, what all kinds have in common. */
  check(kind: ToolKind): DocumentCheck;
  /**
   * Compiles the checks of all kinds in force, one a turn of the event loop: each takes some 20 ms, which the first
   * declaration of its kind would hold up calls with.
   */
  prepare(): Promise<void>;
}

/** Makes the grammar of declarations. Checks are compiled at their first use. */
export function createDeclarationGrammar(parts: GrammarParts): DeclarationGrammar {
  const schemaParts: SchemaParts = {
    kinds: new Map([...parts.adapters].map(([kind, adapter]) => [kind, adapter.configSchema])),
    steps: new Map(
      parts.steps.flatMap(({ name, configSchema }) => (configSchema === undefined ? [] : [[name, configSchema]])),
    ),
    result: RESULT_SCHEMA,
    servers: new Set([...parts.adapters.values()].filter(({ offers }) => offers === true).map(({ kind }) => kind)),
  };
  const checks = new Map<ToolKind, DocumentCheck>();
  const check = (kind: ToolKind): DocumentCheck => {
    const found = checks.get(kind) ?? createDocumentCheck(kindSchema(kind, schemaParts));
    checks.set(kind, found);
    return found;
  };
  return {
    ...parts,
    schema: composeDeclarationSchema(schemaParts),
    notYet: notYetKeys(schemaParts),
    standards: new Standards(),
    parts: new SharedParts(),
    documents: new DocumentsAhead(),
    schemas: new SharedResults(({ schema }) => freezeJson(schema)),
    check,
    prepare: async () => {
      for (const kind of parts.adapters.keys()) {
        check(kind);
        await setImmediate();
      }
    },
  };
}
