import { expect, test } from "vitest";
import { openGateway, temporaryFolder } from "./effects-gateway.ts";
import { reasonOf } from "./gateway-client.ts";

/** Ten times what is promised; client and gateway share this process, and other work on the machine counts in part. */
const MAX_TURN_MS = 250;

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
];

/** Longest CPU time of this thread in one turn of the event loop. */
function watchTurns(): { end(): number } {
  let last = process.threadCpuUsage();
  let longestMs = 0;
  const timer = setInterval(() => {
    const now = process.threadCpuUsage();
    longestMs = Math.max(longestMs, (now.user + now.system - last.user - last.system) / 1_000);
    last = now;
  }, 1);
  return {
    end: () => {
      clearInterval(timer);
      return longestMs;
    },
  };
}

test("huge declarations, schemas and arguments hold up no call of another tool [X-D04, X-D05, X-D06]", {
  timeout: 60_000,
}, async () => {
  await using folder = await temporaryFolder();
  const properties = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`p${i}`, { type: "string" }]));
  await using gateway = await openGateway({
    folder: folder.path,
    files: {
      "tools/quick.json": tool("quick", { properties: { n: { type: "integer" } } }),
      "tools/wide.json": tool("wide", { properties }),
      "tools/slow.json": tool("slow", { properties: { a: { pattern: "(a?){500}a{500}" } } }),
      "tools/forms.json": tool("forms", {
        properties: { a: { items: { anyOf: Array.from({ length: 900 }, (_, i) => ({ const: i })) } } },
      }),
    },
  });
  const { service } = gateway.client;
  const check = (name: string, args: object): Promise<unknown> =>
    service
      .call({
        invocation: { name, validateOnly: true, arguments: { case: "argumentsJson", value: JSON.stringify(args) } },
      })
      .catch(reasonOf);
  await check("quick", { n: 0 });
  const hostile: readonly (() => Promise<unknown>)[] = [
    ...DECLARATIONS.map((value) => () => {
      return service.register({ declaration: { case: "declarationYaml", value } }).catch(reasonOf);
    }),
    () => check("slow", { a: "a".repeat(500) }),
    () => check("forms", { a: Array.from({ length: 15_000 }, () => "x") }),
    () => check("forms", { a: Array.from({ length: 100_000 }, () => 1) }),
  ];
  const turns = watchTurns();
  const answers: unknown[] = [];
  const quick: Promise<unknown>[] = [];
  // One after the other, since several that come together may be worked off in one turn.
  for (const request of hostile) {
    quick.push(...Array.from({ length: 10 }, (_, n) => check("quick", { n })));
    answers.push(await request());
  }
  expect(answers).toEqual([
    ...DECLARATIONS.map(() => "DECLARATION_INVALID"),
    ...["slow", "forms", "forms"].map(() => "ARGUMENTS_INVALID"),
  ]);
  quick.push(check("wide", { p0: "x", p1999: "y" }));
  for (const answer of await Promise.all(quick)) expect(typeof answer).toBe("object");
  const longestMs = turns.end();
  console.log(`longest turn among hostile requests: ${longestMs.toFixed(0)} ms of CPU`);
  expect(longestMs).toBeLessThan(MAX_TURN_MS);
});
