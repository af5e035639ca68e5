import { readFileSync } from "node:fs";
import ts from "typescript";
import { expect, test } from "vitest";

/** What a module exports: a type as `type X`, anything else as `X`, in the order of the alphabet. */
function exportsOf(path: string): string[] {
  const source = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
  return source.statements.flatMap((statement) => namesIn(statement)).toSorted();
}

function namesIn(statement: ts.Statement): string[] {
  if (ts.isExportDeclaration(statement)) return listed(statement);
  const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined;
  if (modifiers?.some((modifier) => modifier.kind === ts.SyntaxKind.ExportKeyword) !== true) return [];
  // Anything that is not declared under one name shows as a whole.
  if (!("name" in statement)) return [statement.getText()];
  const name = (statement as ts.DeclarationStatement).name?.getText() ?? "default";
  return [ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement) ? `type ${name}` : name];
}

function listed({ exportClause, isTypeOnly }: ts.ExportDeclaration): string[] {
  if (exportClause === undefined || !ts.isNamedExports(exportClause)) return ["*"];
  return exportClause.elements.map((one) => (isTypeOnly || one.isTypeOnly ? `type ${one.name.text}` : one.name.text));
}

test("the gateway exports this", () => {
  expect(exportsOf("src/index.ts")).toEqual([
    "ERROR_CATALOGUE",
    "FAILURE_REASONS",
    "GatewayError",
    "NOTICE_REASONS",
    "VERSION",
    "createGateway",
    "createPinoLogger",
    "createSecrets",
    "parseGatewayConfig",
    "silentLogger",
    "systemClock",
    "type Clock",
    "type ErrorReason",
    "type FailureReason",
    "type Gateway",
    "type GatewayConfig",
    "type GatewayConfigOutcome",
    "type GatewayOptions",
    "type LogFields",
    "type Logger",
    "type NoticeReason",
    "type PinoLogger",
    "type PinoLoggerOptions",
    "type Reconfigured",
    "type Secrets",
    "withRedaction",
  ]);
});

test("the client exports this", () => {
  expect(exportsOf("clients/typescript/src/index.ts")).toEqual([
    "CheckStatus",
    "Delivery",
    "EarlyStop",
    "FailureOrigin",
    "SchemaForm",
    "ToolKind",
    "ToolState",
    "ToolgateError",
    "TruncationMode",
    "createToolgateClient",
    "parseExact",
    "stringifyExact",
    "type CallEvent",
    "type CallExplanation",
    "type CallOutcome",
    "type ClientOptions",
    "type ClientReason",
    "type Content",
    "type ContentAnnotations",
    "type ContinuationOptions",
    "type DeclarationProblem",
    "type DiagnoseResponse",
    "type EffectName",
    "type ExplainResponse",
    "type GatewayReason",
    "type GetOptions",
    "type InputAnswer",
    "type InvokeContext",
    "type InvokeOptions",
    "type JsonInput",
    "type JsonValue",
    "type ListOptions",
    "type ListResponse",
    "type NeededInput",
    "type ReadResultOptions",
    "type RegisterOptions",
    "type RegisterResponse",
    "type RequestOptions",
    "type ResourceLink",
    "type ResultNotice",
    "type ResultPage",
    "type ResultQuery",
    "type StatusName",
    "type StreamOptions",
    "type Tool",
    "type ToolArguments",
    "type ToolFailure",
    "type ToolResult",
    "type ToolSelection",
    "type ToolgateClient",
    "type ToolgateReason",
    "type UnregisterOptions",
    "type UpstreamExchange",
    "type Violation",
    "type WatchEvent",
    "type WatchOptions",
  ]);
  expect(exportsOf("clients/typescript/src/node.ts")).toEqual([
    "createNodeTransport",
    "type NodeTransport",
    "type NodeTransportOptions",
  ]);
  expect(exportsOf("clients/typescript/src/browser.ts")).toEqual([
    "createBrowserTransport",
    "type BrowserTransportOptions",
  ]);
});
