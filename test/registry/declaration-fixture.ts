import { httpAdapter } from "../../src/adapters/http/index.ts";
import { createScriptAdapter } from "../../src/adapters/script/index.ts";
import type { Adapter } from "../../src/core/adapter.ts";
import type { Step } from "../../src/core/step.ts";
import type { ToolKind } from "../../src/core/tool.ts";
import { createSchemaChecker } from "../../src/pipeline/schema-checker.ts";
import type { Declaration, DeclarationDefaults, DeclarationOutcome } from "../../src/registry/declaration.ts";
import { createDeclarationGrammar, type DeclarationGrammar } from "../../src/registry/declaration-grammar.ts";
import { parseDeclaration } from "../../src/registry/parse-declaration.ts";

/** E1 as every reader of the gateway's sources has it. */
export const ORDER_STATUS = `name: order_status
description: 根据订单号查询订单当前状态，支持传入订单号和时间范围
type: http
endpoint: https://api.example.com/orders/{order_id}/status
method: GET
params:
  - name: order_id
    required: true
    type: string
    description: 订单号，例如 SO20241001
  - name: include_history
    required: false
    type: boolean
    default: false
    description: 是否返回完整状态流转历史
result:
  success_field: code
  success_value: 0
  data_field: data
auth:
  header_name: Authorization
  secret_ref: ORDER_API_TOKEN
`;

/** What a test may say besides the text. */
export interface Reading {
  readonly format?: "yaml" | "json";
  readonly source?: string;
  readonly steps?: readonly Step[];
  readonly defaults?: Partial<DeclarationDefaults>;
  readonly origins?: ReadonlyMap<string, string>;
}

export function createGrammar(steps: readonly Step[] = []): DeclarationGrammar {
  const checker = createSchemaChecker({ maxCompiled: 10 });
  const scriptAdapter = createScriptAdapter({ environment: {}, folder: "/srv/tools", shell: false });
  const adapters = new Map<ToolKind, Adapter>([
    ["http", httpAdapter],
    ["script", scriptAdapter],
  ]);
  return createDeclarationGrammar({ adapters, steps, schemaProblem: (schema) => checker.problem(schema) });
}

const plainGrammar = createGrammar();

export function parse(text: string, reading: Reading = {}): DeclarationOutcome {
  const { format = "yaml", source = "file:t.yaml", steps, defaults = {}, origins = new Map() } = reading;
  const grammar = steps === undefined ? plainGrammar : createGrammar(steps);
  return parseDeclaration(text, {
    format,
    source,
    grammar,
    origins,
    defaults: { maxResponseBytes: 16_777_216, ...defaults },
  });
}

/** The declaration; fails the test where the text is refused. */
export function declare(text: string, reading: Reading = {}): Declaration {
  const outcome = parse(text, reading);
  if (!outcome.ok) throw new Error(lines(outcome.problems).join("\n"));
  return outcome.declaration;
}

/** Problems as `line:column message`; empty where the text is taken. */
export function problems(text: string, reading: Reading = {}): string[] {
  const outcome = parse(text, reading);
  return outcome.ok ? [] : lines(outcome.problems);
}

/** Notes as `line:column message`. */
export function notes(text: string, reading: Reading = {}): string[] {
  return lines(declare(text, reading).notes);
}

/** `line:column message` of each. */
export function lines(
  all: readonly { readonly line: number; readonly column: number; readonly message: string }[],
): string[] {
  return all.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

/** A tool with parameters and nothing else that matters; the parameters begin on line 7. */
export function withParams(...params: readonly string[]): string {
  return `name: t\ndescription: Find one order by its number\ntype: http\nmethod: POST\nendpoint: http://127.0.0.1/x\nparams:\n${params.map((param) => `  - ${param}\n`).join("")}`;
}
