import { expect, test } from "vitest";
import { createAdapters } from "../../src/adapters/index.ts";
import { createSchemaChecker } from "../../src/pipeline/schema-checker.ts";
import { createDeclarationGrammar } from "../../src/registry/declaration-grammar.ts";
import { parseDeclaration } from "../../src/registry/parse-declaration.ts";

const checker = createSchemaChecker({ maxCompiled: 10 });
const grammar = createDeclarationGrammar({
  adapters: new Map(
    createAdapters({ environment: {}, folder: "/srv/tools", shell: false }).map((adapter) => [adapter.kind, adapter]),
  ),
  steps: [],
  schemaProblem: (schema) => checker.problem(schema),
});

const PROGRAM = `name: mcp_filesystem
type: mcp
mcp:
  command: npx
  args: [ "-y", "@modelcontextprotocol/server-filesystem" ]
  cwd: /tmp
`;
const REMOTE = `name: mcp_github
type: mcp
mcp:
  url: https://mcp.example.com/github
  headers:
    Authorization: Bearer \${GITHUB_MCP_TOKEN}
`;

test.each([
  ["mcp_filesystem", PROGRAM, undefined],
  ["mcp_filesystem", PROGRAM.replace("  cwd", "cwd"), undefined],
  ["mcp_github", REMOTE, ["GITHUB_MCP_TOKEN"]],
] as const)("the server %s loads as written, with its secrets known by name [S2-22]", (name, text, secretRefs) => {
  const outcome = parseDeclaration(text, {
    format: "yaml",
    source: `file:${name}.yaml`,
    grammar,
    reach: "all",
    origins: new Map(),
    defaults: { maxResponseBytes: 1_000_000 },
  });
  expect(outcome).toMatchObject({ ok: true, declaration: { tool: { name }, adapter: { kind: "mcp" }, secretRefs } });
});
