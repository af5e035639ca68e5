import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { createAdapters } from "../src/adapters/index.ts";
import { GATEWAY_CONFIG_SCHEMA, GROUP_MEMBERS, SETTINGS } from "../src/config/gateway-config-schema.ts";
import type { Setting } from "../src/config/setting.ts";
import { TOOLSET_SETTINGS } from "../src/config/toolset-settings.ts";
import { ERROR_CATALOGUE } from "../src/core/errors.ts";
import { FAILURE_REASONS, NOTICE_REASONS } from "../src/core/failures.ts";
import { type JsonObject, type JsonValue, stringifyJson } from "../src/core/json.ts";
import { createPipelineSteps } from "../src/pipeline/index.ts";
import { createSchemaChecker } from "../src/pipeline/schema-checker.ts";
import { createDeclarationGrammar } from "../src/registry/declaration-grammar.ts";
import { coveragePage } from "../test/coverage/report.ts";

/** A file of docs/ that is made from the source. */
export interface GeneratedDocument {
  /** From the repository's root. */
  readonly path: string;
  readonly text: string;
}

/** Everything `npm run gen` writes besides what buf generates. Reads the titles of the tests, and writes nothing. */
export function generatedDocuments(): readonly GeneratedDocument[] {
  return [
    { path: "docs/errors.md", text: errorsPage() },
    { path: "docs/configuration.md", text: configurationPage() },
    { path: "docs/coverage.md", text: coveragePage() },
    { path: "docs/schema/tool.schema.json", text: schemaFile(declarationSchema()) },
    { path: "docs/schema/gateway.schema.json", text: schemaFile(GATEWAY_CONFIG_SCHEMA) },
  ];
}

function declarationSchema(): JsonObject {
  const checker = createSchemaChecker({ maxCompiled: 1 });
  const { schema } = createDeclarationGrammar({
    adapters: new Map(
      createAdapters({ environment: {}, folder: "/", shell: true }).map((adapter) => [adapter.kind, adapter]),
    ),
    steps: createPipelineSteps({ checker }),
    schemaProblem: (tool) => checker.problem(tool),
  });
  return schema;
}

function schemaFile(schema: JsonObject): string {
  return `${stringifyJson(schema, 2)}\n`;
}

function errorsPage(): string {
  const reasons = Object.entries(ERROR_CATALOGUE).map(([reason, entry]) => [
    `\`${reason}\``,
    `\`${entry.status}\``,
    entry.retryable ? "yes" : "no",
    entry.meaning,
    entry.mend,
  ]);
  const failures = Object.entries(FAILURE_REASONS).map(([reason, meaning]) => [`\`${reason}\``, meaning]);
  const notices = Object.entries(NOTICE_REASONS).map(([reason, meaning]) => [`\`${reason}\``, meaning]);
  return `<!-- Generated from src/core/errors.ts by \`npm run gen\`; do not edit. -->

# Errors and failures

Two things can go wrong, and they look different on the wire.

- **The gateway could not run the call, or no complete answer came**: the RPC ends with a gRPC status. Its details hold
  \`google.rpc.ErrorInfo\` (\`reason\` from the table below, \`domain\` \`toolgate\`, and in \`metadata\` whatever varies in
  the text), \`toolgate.v1.ToolErrorDetail\` (a text a model may read, whether a retry makes sense, and whether anything
  may have happened), and where they fit \`google.rpc.BadRequest\` and \`google.rpc.RetryInfo\`.
- **The tool ran and said no**: the RPC ends well, and \`result.failure\` says why. A model must read it, and a breaker or
  a mesh between must not count it.

Tell errors apart by \`reason\`. The text is for people and may change; a published reason keeps its meaning and its
status. A text is cut after 1,024 bytes, on the border of a character and with \`…\` at its end: errors ride in trailers,
of which some clients take 8 KiB.

## Errors

"Retry" says whether the same call may work later without a change by the caller. \`ToolErrorDetail.retryable\` says it
for the error at hand and wins.

${table(["Reason", "Status", "Retry", "When", "What to do"], reasons)}

## Failures of a tool

These stand in \`result.failure.reason\` of an answer whose status is \`OK\`.

${table(["Reason", "When"], failures)}

\`result.failure.origin\` says whose no it is where the reason does not tell: the tool's own, or its protocol's, as when
an MCP server answers with a JSON-RPC error.

## Notices

These stand in \`result.notices[].reason\`, beside a result that is given all the same.

${table(["Reason", "When"], notices)}
`;
}

function configurationPage(): string {
  return `<!-- Generated from src/config/gateway-config-schema.ts by \`npm run gen\`; do not edit. -->

# gateway.yaml

What is not a tool stands in \`gateway.yaml\`, which \`toolgate serve --config\` reads at its start and again whenever the
file changes, or at once on SIGHUP. What tools are made of (\`defaults\`, \`groups\`, \`toolsets\`, \`expose\`,
\`limits.response_bytes\`), \`identity\`, \`denied_calls\`, \`rate_limit\` and \`log.level\` are in force soon after, for calls that begin then; every other key needs a new start, and the log line
\`settings reloaded\` names those that wait for one. A file that is refused leaves everything as it was, and the log says
what is wrong with it. Every key has a default, so the file may be empty or absent. A dot is a level of nesting:
\`tools.settle\` is the key \`settle\` under \`tools\`.
An unknown key is refused with the nearest known one; a known key without effect yet is refused as not supported yet.
Editors check the file with [schema/gateway.schema.json](schema/gateway.schema.json). Certificates and Unix sockets have a
page of their own: [tls.md](tls.md); so has who may call what: [security.md](security.md).

${table(["Key", "Default", "Meaning"], settingRows(SETTINGS))}

## Groups

Tools that share an upstream can share limits: \`groups\` maps names to groups, and a tool joins one with \`group: NAME\` in
its declaration. What a group says of a policy stands in for tools of the group that do not set it themselves, before
\`defaults\` and what is built in (the defaults below).

${table(["Key under `groups.NAME`", "Default", "Meaning"], settingRows(GROUP_MEMBERS))}

## Toolsets

\`toolsets\` maps names to sets of tools ([declarations.md](declarations.md#toolset)). They can change while the gateway runs.

${table(["Key under `toolsets.NAME`", "Default", "Meaning"], settingRows(TOOLSET_SETTINGS))}
`;
}

function settingRows(settings: Readonly<Record<string, Setting>>): string[][] {
  return Object.entries(settings).map(([key, { schema, standard }]) => [
    `\`${key}\``,
    standard === undefined ? "" : `\`${typeof standard === "string" ? standard : stringifyJson(standard)}\``,
    textOf(schema["description"]),
  ]);
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  return [header, header.map(() => "---"), ...rows].map(tableRow).join("\n");
}

function tableRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

async function main(): Promise<void> {
  for (const { path, text } of generatedDocuments()) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
}

if (import.meta.main) await main();
