import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CheckStatus, createToolgateClient, type ToolgateClient } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { textOf } from "../e2e/gateway-client.ts";
import { type ServerBed, startBed } from "./bed.ts";
import { node } from "./commands.ts";
import { installed } from "./installed.ts";

/** Nobody listens there. */
const NOWHERE = "http://127.0.0.1:9";

const KUBECONFIG = {
  apiVersion: "v1",
  kind: "Config",
  "current-context": "here",
  contexts: [{ name: "here", context: { cluster: "here", user: "me" } }],
  clusters: [{ name: "here", cluster: { server: NOWHERE } }],
  users: [{ name: "me", user: {} }],
};

const running = new AsyncDisposableStack();
let bed: ServerBed;
let client: ToolgateClient;
let folder: string;

/** A search engine that knows one page, and breaks down when it is asked for trouble. */
async function startSearchEngine(): Promise<string> {
  const engine = createServer((request, response) => {
    const trouble = request.url?.includes("trouble") === true;
    response.writeHead(trouble ? 500 : 200, { "content-type": "application/json" });
    const results = [{ title: "Toolgate", url: "http://127.0.0.1/toolgate", content: "a gateway", score: 1 }];
    response.end(JSON.stringify({ query: "toolgate", results, number_of_results: 1 }));
  });
  await new Promise<void>((resolve) => void engine.listen(0, "127.0.0.1", resolve));
  running.defer(() => void engine.close());
  return `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "toolgate-servers-")));
  running.defer(() => rm(folder, { recursive: true, force: true }));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, JSON.stringify(KUBECONFIG));
  await chmod(kubeconfig, 0o600);
  await mkdir(join(folder, "home"));
  const context7 = await installed({ spec: "@upstash/context7-mcp@4.1.1" });
  const kubernetes = await installed({ spec: "kubernetes-mcp-server@0.0.67" });
  const excel = await installed({ spec: "@negokaz/excel-mcp-server@0.12.0" });
  const github = await installed({ spec: "@modelcontextprotocol/server-github@2025.4.8" });
  const notion = await installed({ spec: "@notionhq/notion-mcp-server@2.5.2" });
  const postman = await installed({ spec: "@postman/postman-mcp-server@2.13.0" });
  const elastic = await installed({ spec: "@elastic/mcp-server-elasticsearch@0.3.1" });
  const mysql = await installed({ spec: "@benborla29/mcp-server-mysql@2.0.9" });
  const searxng = await installed({ spec: "mcp-searxng@1.16.0" });
  const engine = await startSearchEngine();
  const home = { HOME: join(folder, "home") };
  bed = running.use(
    await startBed({
      context7: { mcp: { ...node(`${context7}/dist/index.js`), protocol: "2026-07-28" } },
      kubernetes: {
        mcp: {
          protocol: "2026-07-28",
          command: process.execPath,
          args: [`${kubernetes}/bin/index.js`, "--kubeconfig", kubeconfig],
        },
      },
      excel: { mcp: { command: process.execPath, args: [`${excel}/dist/launcher.js`] } },
      github: { mcp: node(`${github}/dist/index.js`) },
      notion: { mcp: { ...node(`${notion}/bin/cli.mjs`), env: { NOTION_TOKEN: "none" } } },
      postman: {
        mcp: {
          ...node(`${postman}/dist/src/index.js`, "--full"),
          env: { POSTMAN_API_KEY: "none", POSTMAN_MCP_TELEMETRY: "off", ...home },
        },
      },
      elastic: { mcp: { ...node(`${elastic}/dist/index.js`), env: { ES_URL: NOWHERE, ES_API_KEY: "none", ...home } } },
      mysql: {
        mcp: {
          ...node(`${mysql}/dist/index.js`),
          env: { MYSQL_HOST: "127.0.0.1", MYSQL_PORT: "9", MYSQL_USER: "u", MYSQL_PASS: "p", MYSQL_DB: "d" },
        },
      },
      search: { mcp: { ...node(`${searxng}/dist/cli.js`), env: { SEARXNG_URL: engine } } },
    }),
  );
  const transport = createNodeTransport({ baseUrl: `http://127.0.0.1:${bed.gateway.port}` });
  running.defer(() => transport.close());
  client = createToolgateClient(transport);
}, 900_000);

afterAll(async () => {
  await running.disposeAsync();
});

test("a search server finds a page, and says what is wrong when its engine is [S2-104]", async () => {
  expect((await bed.tools("search")).length).toBe(4);
  expect(textOf(await bed.call("search/searxng_web_search", { query: "toolgate" }))).toContain("127.0.0.1/toolgate");
  const { result } = await bed.call("search/searxng_web_search", { query: "trouble" });
  expect(result?.failure?.message).toContain("500");
});

test("context7 and kubernetes speak the stateless era", async () => {
  expect((await bed.tools("context7")).length).toBe(2);
  expect((await bed.tools("kubernetes")).length).toBeGreaterThan(10);
  expect(await bed.protocol("context7")).toBe("2026-07-28");
  expect(await bed.protocol("kubernetes")).toBe("2026-07-28");
  const view = await bed.call("kubernetes/configuration_view");
  expect(textOf(view)).toContain(NOWHERE);
  const pods = await bed.call("kubernetes/pods_list");
  expect(pods.result?.failure?.message).toContain("connect");
  // It calls what went wrong a success: only its words tell.
  const found = await bed.call("context7/resolve-library-id", { query: "http", libraryName: "undici" });
  expect(textOf(found)).toContain("Error");
});

test("a server of 2025-03-26 writes a sheet and reads it, and knows a file that is not there", async () => {
  expect((await bed.tools("excel")).length).toBe(6);
  const fileAbsolutePath = join(folder, "orders.xlsx");
  const missing = await bed.call("excel/excel_describe_sheets", { fileAbsolutePath });
  expect(missing.result?.failure).toBeDefined();
  await writeFile(fileAbsolutePath, Buffer.from(EMPTY_BOOK, "base64"));
  const sheet = { fileAbsolutePath, sheetName: "orders" };
  const values = [["SO20241001", 12]];
  const written = await bed.call("excel/excel_write_to_sheet", { ...sheet, newSheet: true, range: "A1:B1", values });
  expect(written.result?.failure).toBeUndefined();
  expect(textOf(await bed.call("excel/excel_read_sheet", sheet))).toContain("SO20241001");
});

test("a server of 2024-11-05 answers with an error of its protocol, which is a failure with its code", async () => {
  expect((await bed.tools("github")).length).toBe(26);
  const { result } = await bed.call("github/get_issue", { owner: "nobody", repo: "nothing", issue_number: 1 });
  expect(result?.failure).toMatchObject({ reason: "UPSTREAM_ERROR", upstreamCode: -32_603 });
});

test("servers with large and odd schemas have their tools, but for one with a pattern that nobody can bound", async () => {
  expect((await bed.tools("notion")).length).toBe(24);
  const page = await bed.call("notion/API-get-self");
  expect(page.result?.failure).toBeDefined();
  expect((await bed.tools("postman")).length).toBe(203);
  expect(await bed.problem("postman")).toMatch(/"getWorkspace" is held back: .*back-references/);
  const user = await bed.call("postman/getAuthenticatedUser");
  expect(user.result?.failure).toBeDefined();
});

test("a server that writes other things than messages works all the same, and the doctor shows them", async () => {
  expect((await bed.tools("elastic")).length).toBe(4);
  // It calls what went wrong a success: only its words tell.
  expect(textOf(await bed.call("elastic/list_indices", { indexPattern: "*" }))).toContain("ECONNREFUSED");
  const { checks } = await client.diagnose();
  const about = checks.find(({ subject, status }) => subject.includes("elastic") && status === CheckStatus.OK);
  expect(about?.message).toMatch(/\d+ lines .* were no messages/);
});

test("a server that dies after its start says how", async () => {
  expect(await bed.problem("mysql")).toContain("the server exited with code 1");
});

test("nothing of a server is left when the gateway has ended, of one that ignores TERM too", async () => {
  expect(await bed.end()).toEqual([]);
});

/** A workbook with one empty sheet. */
const EMPTY_BOOK =
  "UEsDBBQAAAAIABSHfl29XP2Q8gAAABwCAAATAAAAW0NvbnRlbnRfVHlwZXNdLnhtbK2RvU7DMBDHX8XyWsVOOyCEknQodASG8gCHc0ms+Es+t4S3x0kLAyqwMJ3s/8fvZFfbyRp2wkjau5qvRckZOuVb7fqavxz2xS3fNtXhPSCxbHVU8yGlcCclqQEtkPABXVY6Hy2kfIy9DKBG6FFuyvJGKu8SulSkuYM31T12cDSJPUz5+oyNaIiz3dk4s2oOIRitIGVdnlz7jVJcCCInFw8NOtAqG7i8SpiVnwGX3FN+h6hbZM8Q0yPY7JKTkW8+jq/ej+L3kitb+q7TCluvjjZHBIWI0NKAmKwRyxQWtFv9zV/MJJex/udFvvo/95DLdzcfUEsDBBQAAAAIABSHfl0cSfe+pAAAABYBAAALAAAAX3JlbHMvLnJlbHONz8EOwiAMBuBXIb07pgdjzNguxmRXMx8AWcfIBiWAOt9ejs548Nj0/7+mVbPYmT0wRENOwLYogaFT1BunBVy78+YATV1dcJYpJ+JofGS54qKAMSV/5DyqEa2MBXl0eTNQsDLlMWjupZqkRr4ryz0PnwasTdb2AkLbb4F1L4//2DQMRuGJ1N2iSz9OfCWyLIPGJGCZ+ZPCdCOaiowCryu+erB+A1BLAwQUAAAACAAUh35dHTwHyK4AAAAKAQAADwAAAHhsL3dvcmtib29rLnhtbI2Pyw6CQAxFf2XSvQ64MIbw2BgT1+oHjFBgAjMl7fj4fEeQvavevk578+rtRvVEFku+gHSbgEJfU2N9V8DtetocoCrzF/FwJxpUnPZSQB/ClGktdY/OyJYm9LHTEjsTYsqdlonRNNIjBjfqXZLstTPWw0LI+B8Gta2t8Uj1w6EPC4RxNCH+Kr2dBMp8viC/qLxxWMDlq1NQc+3cRFugOLNR8LlJQZe5Xtf06qz8AFBLAwQUAAAACAAUh35d8KZigaYAAAAXAQAAGgAAAHhsL19yZWxzL3dvcmtib29rLnhtbC5yZWxzjc9LCsIwEADQq4TZ22ldiEjTbkToVuoBQjpNSpsPSfzd3uBCLLhwNczvDVO3D7OwG4U4OcuhKkpgZKUbJqs4XPrTZg9tU59pESlPRD35yPKKjRx0Sv6AGKUmI2LhPNncGV0wIuU0KPRCzkIRbstyh+HbgLXJuoFD6IYKWP/09I/txnGSdHTyasimHyfw7sIcNVHKqAiKEodPKeI7VEVWAZsaVx82L1BLAwQUAAAACAAUh35d8jm5z3gAAACLAAAAGAAAAHhsL3dvcmtzaGVldHMvc2hlZXQxLnhtbD2MSw7CMAxErxJ5Tx1YIISSdFNxAjiA1ZomovkojoDjE3XBcubNGzN+46beXCXkZOE4aFCc5ryEtFp43G+HC4zOfHJ9iWduqs+TWPCtlSuizJ4jyZALp06euUZqPdYVpVSmZZfihietzxgpJHBm7yZqhM7g/9n9AFBLAQIUAxQAAAAIABSHfl29XP2Q8gAAABwCAAATAAAAAAAAAAAAAACAAQAAAABbQ29udGVudF9UeXBlc10ueG1sUEsBAhQDFAAAAAgAFId+XRxJ976kAAAAFgEAAAsAAAAAAAAAAAAAAIABIwEAAF9yZWxzLy5yZWxzUEsBAhQDFAAAAAgAFId+XR08B8iuAAAACgEAAA8AAAAAAAAAAAAAAIAB8AEAAHhsL3dvcmtib29rLnhtbFBLAQIUAxQAAAAIABSHfl3wpmKBpgAAABcBAAAaAAAAAAAAAAAAAACAAcsCAAB4bC9fcmVscy93b3JrYm9vay54bWwucmVsc1BLAQIUAxQAAAAIABSHfl3yObnPeAAAAIsAAAAYAAAAAAAAAAAAAACAAakDAAB4bC93b3Jrc2hlZXRzL3NoZWV0MS54bWxQSwUGAAAAAAUABQBFAQAAVwQAAAAA";
