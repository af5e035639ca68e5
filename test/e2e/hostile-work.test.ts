import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { createGatewayClient, reasonOf } from "./gateway-client.ts";
import { type GatewayProcess, startGateway } from "./gateway-process.ts";
import { startHttpServers, type ToldTool } from "./http-servers.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";
import { LONGEST_TURN } from "./turn-marks.ts";

/**
 * What is asserted of CPU time in one turn of the gateway's event loop. 20 ms are aimed at; code that runs for the first
 * time takes three times what it takes later, and CPU time itself doubles on a machine that many processes share.
 */
const MAX_TURN_MS = 120;

/** The same where a server has a list of tools read, which is one message of up to a million characters. */
const MAX_LIST_TURN_MS = 200;

function tool(name: string, schema: object): string {
  return JSON.stringify({
    name,
    description: "Takes what it is given and is never called",
    type: "http",
    method: "POST",
    endpoint: "http://127.0.0.1:9/x",
    input_schema: { type: "object", ...schema },
  });
}

const HEAD =
  "name: big\ndescription: A tool whose declaration is far too large\ntype: http\nendpoint: http://127.0.0.1:9/\n";

const DECLARATIONS = [
  `${HEAD}x-a:\n${"  - a: b\n".repeat(100_000)}`,
  HEAD + "a: b\n".repeat(150_000),
  `${HEAD}x-a: ${"[".repeat(500_000)}\n`,
  HEAD.replace("9/", `9/${"{a}".repeat(160_000)}`),
  `${HEAD}params:\n${Array.from({ length: 199 }, (_, i) => `  - {name: p${i}, type: string, pattern: '^\\p{L}{1,20}${i}$'}\n`).join("")}`,
  // Aliases are not in the plain form.
  `${HEAD}x-n: &n { a: 1 }\nx-a:\n${"  - { e: *n, g: 1.5 }\n".repeat(900)}nope: 1\n`,
];

/** What is asked of a gateway, and why it says no. */
type Request = readonly [ask: () => Promise<unknown>, reason: string];

/** The most CPU time that one turn of the loop of a gateway has taken since this was asked the last time. */
async function longestTurnMs(gateway: GatewayProcess, nth: number): Promise<number> {
  process.kill(gateway.pid, "SIGUSR2");
  const [, ms] = await gateway.waitFor(new RegExp(`(?:${LONGEST_TURN} \\S+\\s[^]*){${nth}}${LONGEST_TURN} (\\S+)\\n`));
  return Number(ms);
}

test("huge declarations, schemas and arguments hold up no call of another tool [X-D04, X-D05, X-D06]", {
  timeout: START_TIMEOUT_MS + 60_000,
}, async () => {
  const properties = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`p${i}`, { type: "string" }]));
  await using gateway = await startGateway({
    tools: {
      "quick.json": tool("quick", { properties: { n: { type: "integer" } } }),
      "wide.json": tool("wide", { properties }),
      "slow.json": tool("slow", { properties: { a: { pattern: "(a?){500}a{500}" } } }),
      "forms.json": tool("forms", {
        properties: { a: { items: { anyOf: Array.from({ length: 900 }, (_, i) => ({ const: i })) } } },
      }),
    },
    env: { NODE_OPTIONS: `--import=${pathToFileURL("test/e2e/turn-watch.ts").href}` },
  });
  using client = createGatewayClient(gateway.port);
  const { service } = client;
  const check = (name: string, args: object): Promise<unknown> =>
    service
      .call({
        invocation: { name, validateOnly: true, arguments: { case: "argumentsJson", value: JSON.stringify(args) } },
      })
      .then(() => "OK", reasonOf);
  await check("quick", { n: 0 });
  const hostile: readonly Request[] = [
    ...DECLARATIONS.map(
      (value): Request => [
        () => service.register({ declaration: { case: "declarationYaml", value } }).catch(reasonOf),
        "DECLARATION_INVALID",
      ],
    ),
    [() => check("slow", { a: "a".repeat(500) }), "ARGUMENTS_INVALID"],
    [() => check("forms", { a: Array.from({ length: 15_000 }, () => "x") }), "ARGUMENTS_INVALID"],
    [() => check("forms", { a: Array.from({ length: 100_000 }, () => 1) }), "ARGUMENTS_INVALID"],
    [() => check("wide", { p0: "x", p1999: "y" }), "OK"],
  ];
  const turnsMs: number[] = [];
  await longestTurnMs(gateway, turnsMs.length);
  for (const [ask, reason] of hostile) {
    const quick = Array.from({ length: 10 }, (_, n) => check("quick", { n }));
    expect(await ask()).toBe(reason);
    expect(await Promise.all(quick)).toEqual(quick.map(() => "OK"));
    turnsMs.push(await longestTurnMs(gateway, turnsMs.length + 1));
  }
  console.log(`longest turn, in ms of CPU, for each hostile request: ${turnsMs.map(Math.round).join(", ")}`);
  expect(Math.max(...turnsMs)).toBeLessThan(MAX_TURN_MS);
});

function told(name: string, properties: object): ToldTool {
  return { name, description: "Takes what it is given", inputSchema: { type: "object", properties } };
}

function numbered<T>(count: number, make: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

/** Lists of tools that take long to look through, by what is hostile about them. */
const LISTS: Readonly<Record<string, readonly ToldTool[]>> = {
  patterns: numbered(20, (n) =>
    told(`t${n}`, Object.fromEntries(numbered(16, (i) => [`p${i}`, { pattern: `^\\p{L}{1,20}${n}x${i}$` }]))),
  ),
  many: numbered(1_000, (n) =>
    told(
      `t${n}`,
      Object.fromEntries(numbered(15, (i) => [`p${i}`, { type: "string", description: `Part ${i} of it` }])),
    ),
  ),
  wide: numbered(5, (n) =>
    told(`t${n}`, Object.fromEntries(numbered(1_900, (i) => [`p${n}_${i}`, { type: "string", minLength: i }]))),
  ),
  huge: [told("t0", { a: { enum: numbered(60_000, (i) => `the value of number ${i}`) } })],
};

test("lists of tools of hostile servers hold up no call of another tool [X-D05]", {
  timeout: START_TIMEOUT_MS + 120_000,
}, async () => {
  await using servers = await startHttpServers();
  const names = Object.keys(LISTS);
  for (const name of names) servers.tools.set(name, [{ name: "first" }]);
  const declared = names.map((name) => [
    `${name}.yaml`,
    `name: ${name}\ntype: mcp\nmcp: { url: '${servers.url(name)}', protocol: legacy }\n`,
  ]);
  await using gateway = await startGateway({
    tools: { "quick.json": tool("quick", { properties: { n: { type: "integer" } } }), ...Object.fromEntries(declared) },
    env: { NODE_OPTIONS: `--import=${pathToFileURL("test/e2e/turn-watch.ts").href}` },
  });
  using client = createGatewayClient(gateway.port);
  const { service } = client;
  const isThere = (name: string): Promise<boolean> =>
    service.get({ name }).then(
      () => true,
      () => false,
    );
  for (const name of names) {
    await expect.poll(() => isThere(`${name}/first`), { timeout: 60_000 }).toBe(true);
    await expect.poll(() => servers.listeners(name), { timeout: 60_000 }).toBeGreaterThan(0);
  }
  const turnsMs: number[] = [];
  await longestTurnMs(gateway, turnsMs.length);
  for (const name of names) {
    servers.tools.set(name, [...(LISTS[name] ?? []), { name: "last" }]);
    servers.notify(name);
    await expect.poll(() => isThere(`${name}/last`), { timeout: 60_000 }).toBe(true);
    turnsMs.push(await longestTurnMs(gateway, turnsMs.length + 1));
  }
  console.log(`longest turn, in ms of CPU, for each list: ${turnsMs.map(Math.round).join(", ")}`);
  expect(Math.max(...turnsMs)).toBeLessThan(MAX_LIST_TURN_MS);
});
