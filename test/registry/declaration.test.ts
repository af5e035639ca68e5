import { expect, test } from "vitest";
import type { Step } from "../../src/core/step.ts";
import { declare, ORDER_STATUS, parse, problems } from "./declaration-fixture.ts";

const MINIMAL =
  "name: t\ndescription: Find one order by its number\ntype: http\nendpoint: http://127.0.0.1:7434/orders\n";

test("E1 loads as written, with every field where it belongs [S2-21] [S2-22] [S2-23]", () => {
  const { tool, rules, policy, source } = declare(ORDER_STATUS, { source: "file:order_status.yaml" });
  expect(source).toBe("file:order_status.yaml");
  expect(tool).toEqual({
    name: "order_status",
    title: "",
    description: "根据订单号查询订单当前状态，支持传入订单号和时间范围",
    kind: "http",
    inputSchema: {
      type: "object",
      properties: {
        order_id: { type: "string", description: "订单号，例如 SO20241001" },
        include_history: { type: "boolean", default: false, description: "是否返回完整状态流转历史" },
      },
      required: ["order_id"],
      additionalProperties: false,
    },
    outputSchema: undefined,
    hints: {},
    labels: {},
    delivery: "conclusive",
    enabled: true,
  });
  expect(rules).toMatchObject({ successField: "code", successValue: 0, dataField: "data" });
  expect(policy).toEqual({
    totalMs: 60_000,
    timeouts: { connectMs: 5_000, readMs: 30_000, idleMs: 30_000 },
    effectClass: "read",
    upstream: "https://api.example.com",
    group: undefined,
    retry: { maxRetries: 0, backoff: "exponential", initialBackoffMs: 1_000, maxBackoffMs: 30_000, budget: 0.2 },
    concurrencyLimit: undefined,
    hedge: undefined,
    circuitBreaker: { failureThreshold: 5, resetTimeoutMs: 60_000, scope: "tool" },
    adaptiveConcurrency: false,
    queue: { maxLength: 1_000, maxWaitMs: 30_000 },
    rateLimit: undefined,
  });
});

test("name and description keep every character [S2-26]", () => {
  const { tool } = declare(`${MINIMAL}title: "订单 📦 «x»"\n`);
  expect(tool.title).toBe("订单 📦 «x»");
  const folded = declare(
    "name: t\ntype: http\nendpoint: http://127.0.0.1/x\ndescription: |\n  第一行，查询订单的状态\n  第二行：物流\n",
  ).tool;
  expect(folded.description).toBe("第一行，查询订单的状态\n第二行：物流\n");
});

test("E1 with E2 and a maximum length merged into it loads [S2-37]", () => {
  const merged = ORDER_STATUS.replace("method: GET", "method: POST").replace(
    "  data_field: data\n",
    "  data_field: data\n  max_length: 1200\n  truncation: head\n",
  );
  const { rules } = declare(`${merged}request_body:\n  order_id: $order_id\n  include_history: $include_history\n`);
  expect(rules).toMatchObject({ maxLength: 1_200, truncation: "head" });
});

test("`body` and `request_body` together are refused", () => {
  const body = "  order_id: $order_id\n  include_history: $include_history\n";
  const text = ORDER_STATUS.replace("method: GET", "method: POST");
  expect(problems(`${text}body:\n${body}`)).toEqual([]);
  expect(problems(`${text}body:\n${body}request_body:\n${body}`)).toEqual([
    expect.stringMatching(/^26:1 .*`request_body`.*only one/),
  ]);
});

test("E3 loads as it stands [S2-57] [S2-58]", () => {
  const text =
    "timeout: { connect: 3s, read: 10s }\nretry: { max_retries: 3, backoff: exponential, max_backoff: 30s }\ncircuit_breaker: { failure_threshold: 5, reset_timeout: 60s }\nconcurrency_limit: 10\n";
  expect(declare(ORDER_STATUS + text).policy).toMatchObject({
    timeouts: { connectMs: 3_000, readMs: 10_000, idleMs: 10_000 },
    retry: { maxRetries: 3, backoff: "exponential", initialBackoffMs: 1_000, maxBackoffMs: 30_000, budget: 0.2 },
    hedge: undefined,
    circuitBreaker: { failureThreshold: 5, resetTimeoutMs: 60_000, scope: "tool" },
    concurrencyLimit: 10,
  });
});

test("hedges are for tools that only read and answer as a whole", () => {
  const { policy } = declare(`${MINIMAL}hedge: { after: p90, max: 2 }\n`);
  expect(policy.hedge).toEqual({ after: { percentile: 90 }, max: 2 });
  expect(declare(`${MINIMAL}hedge: { after: 1m30s }\n`).policy.hedge).toEqual({ after: { ms: 90_000 }, max: 1 });
  expect(declare(`${MINIMAL}hedge: { max: 2 }\n`).policy.hedge).toBeUndefined();
  expect(problems(`${MINIMAL}method: POST\nhedge: { after: 1s }\n`)).toEqual([
    "6:1 `hedge` runs a call twice, and this tool may change something: remove it, or say `hints: {read_only: true}` if the tool only reads",
  ]);
  expect(problems(`${MINIMAL}delivery: incremental\nhedge: { after: 1s }\n`)).toEqual([
    "6:1 `hedge` runs a call twice, and this tool gives its output in pieces: remove it",
  ]);
  const preset = new Map([["hedge.after", "1s"]] as const);
  expect(problems(`${MINIMAL}method: POST\n`, { defaults: { policies: preset } })).toEqual([]);
  expect(problems(`${MINIMAL}hedge: { after: p100 }\n`)).toEqual([
    expect.stringMatching(/^5:10 `hedge\.after`: expected a duration .* or a percentile/),
  ]);
});

test("E5, E6 and E7 are refused as not supported yet, naming their keys", () => {
  const skill =
    "name: order_assistant\ndescription: 订单查询助手，擅长查询订单状态和历史流转\ntools:\n  - order_status\nprompt: |\n  当用户询问订单状态时使用。\n";
  expect(problems(skill)).toEqual([
    "3:1 a skill document (`tools` and `prompt` without `type`) is not supported yet: a file declares one tool of type http or script",
    "3:1 `tools` is not supported yet: remove it",
    "5:1 `prompt` is not supported yet: remove it",
  ]);
  const mcp =
    'name: mcp_filesystem\ntype: mcp\nmcp:\n  command: npx\n  args: [ "-y", "@modelcontextprotocol/server-filesystem" ]\n  cwd: /tmp\n';
  expect(problems(mcp)).toEqual([
    "2:1 `type: mcp` is not supported yet: a file declares one tool of type http or script",
    "3:1 `mcp` is not supported yet: remove it",
  ]);
  const remote =
    "name: mcp_github\ntype: mcp\nmcp:\n  url: https://mcp.example.com/github\n  headers:\n    Authorization: Bearer ${GITHUB_MCP_TOKEN}\n";
  expect(problems(remote)).toHaveLength(2);
  expect(problems("description: all\ntools: [a]\nincludes: [b]\n")[0]).toMatch(/^2:1 a toolset document/);
});

test("a kind that is not in force does not hide what is wrong with the rest of the document", () => {
  const later = `name: list files
type: grpc
title: 7
mcp: {}
labels: { team: [a] }
params:
  - { name: folder, type: text }
  - { name: depth, type: integer, default: deep }
result: { truncation: middle }
timeout: { total: 10 }
anything: at all
`;
  const found = problems(later);
  expect(found.map((line) => line.split(" ")[0])).toEqual([
    "1:1",
    "2:1",
    "4:1",
    "5:11",
    "7:21",
    "8:35",
    "9:11",
    "10:12",
  ]);
  expect(found.slice(0, 3)).toEqual([
    expect.stringContaining("`name`: expected 1 to 64 letters, digits"),
    "2:1 `type: grpc` is not supported yet: a file declares one tool of type http or script",
    "4:1 `mcp` is not supported yet: remove it",
  ]);
  expect(found[5]).toContain("`params[1].default`: expected a whole number");
});

test("a declaration says where its name stands", () => {
  expect(declare(`# first\n${ORDER_STATUS}`).namePlace).toEqual({ line: 2, column: 1 });
});

test("a script is a tool like any other, with keys that no other kind takes [S2-22] [S2-34]", () => {
  const script =
    "name: s\ndescription: 列出文件夹里的文件 List the files of a folder\ntype: script\ncommand: ls\nargs: [-l, 5]\n";
  const { tool, config } = declare(`${script}env: { A: 1 }\ncwd: sub\n`);
  expect(tool.kind).toBe("script");
  expect(config).toMatchObject({ cwd: "/srv/tools/sub", env: [{ name: "PATH" }, { name: "A", value: "1" }] });
  expect(problems(`${script}endpoint: http://127.0.0.1/\n`)).toEqual([
    expect.stringMatching(/^6:1 unknown key `endpoint`/),
  ]);
  expect(problems(`${ORDER_STATUS}command: ls\n`)).toEqual([expect.stringMatching(/^23:1 unknown key `command`/)]);
});

test("a type that is missing or misspelt is told with the rest of the problems", () => {
  expect(problems("name: t\nendpoint: http://127.0.0.1/x\nmethd: GET\n")).toEqual([
    '1:1 key `type` is missing; allowed: "http", "script"',
    '3:1 unknown key `methd`; did you mean "method"?',
  ]);
  expect(problems("name: t\ntype: htpp\nendpoint: http://127.0.0.1/x\n")).toEqual([
    '2:1 `type`: expected one of "http", "script"; got text "htpp"; did you mean "http"?',
  ]);
  expect(problems("name: t\ncommand: ls\narg: [a]\n")).toEqual([
    '1:1 key `type` is missing; allowed: "http", "script"',
    '3:1 unknown key `arg`; did you mean "args"?',
  ]);
});

test("unknown keys are named with the nearest known key, at every level", () => {
  const text = ORDER_STATUS.replace("    required: true\n", "    requierd: true\n")
    .replace("secret_ref", "secret_reff")
    .replace("success_field", "sucess_field");
  expect(problems(`descripton: x\n${text}`)).toEqual([
    '1:1 unknown key `descripton`; did you mean "description"?',
    '9:5 unknown key `requierd` in `params[0]`; did you mean "required"?',
    '18:3 unknown key `sucess_field` in `result`; did you mean "success_field"?',
    '23:3 unknown key `secret_reff` in `auth`; did you mean "secret_ref"?',
  ]);
});

test("a key for anchors may begin with x-, and means nothing [Y-D09]", () => {
  const text = `x-net: &net {timeout: {connect: 1s, read: 2s}}\n${MINIMAL}<<: *net\n`;
  const { policy, explained } = declare(text, { source: "file:net.yaml" });
  expect(policy.timeouts).toMatchObject({ connectMs: 1_000, readMs: 2_000 });
  expect(explained).toContainEqual({ key: "timeout.read", value: "2s", origin: "file:net.yaml:1" });
  expect(problems(`${MINIMAL}labels: {x-a: b}\nhints: {x-a: b}\n`)).toEqual([
    expect.stringMatching(/^6:9 unknown key `x-a` in `hints`/),
  ]);
});

test("every problem of a file comes back at once, in order of position, whatever finds it", () => {
  const text = `name: "bad name"
type: http
endpoint: http://127.0.0.1/{missing}
metod: GET
params:
  - {name: a, type: strng}
  - {name: b, type: integer, default: soon}
labels: [x]
timeout: {connect: 3, total: 1000h}
result: {max_length: 0}
cache: {}
`;
  const found = problems(text);
  expect(found.map((line) => line.split(" ")[0])).toEqual([
    "1:1",
    "4:1",
    "6:15",
    "7:30",
    "8:1",
    "9:11",
    "10:10",
    "11:1",
  ]);
});

test("a placeholder without a parameter is refused by name, once the parameters are sound [S2-35] [T-D05]", () => {
  expect(problems(ORDER_STATUS.replace("{order_id}", "{orderid}"))).toEqual([
    expect.stringMatching(/^4:1 `\{orderid\}` names no parameter/),
  ]);
});

test("a template without quotes is refused with the mend [Y-D14]", () => {
  expect(problems(ORDER_STATUS.replace("https://api.example.com/orders/{order_id}/status", "{base}/orders"))).toEqual([
    '4:11 `endpoint` is a mapping here, not text: quote the template, "{base}/orders"',
  ]);
});

test("a file of Windows loads like any other [Y-D05]", () => {
  const windows = declare(`\ufeff${ORDER_STATUS.replaceAll("\n", "\r\n")}`);
  expect(windows.digest).toBe(declare(ORDER_STATUS).digest);
});

test("texts that are no declaration are refused with their place [Y-D01] [Y-D06] [Y-D07] [S2-80]", () => {
  expect(problems(ORDER_STATUS.replace("method: GET", "method: GET\nmethod: DELETE"))).toEqual([
    "6:1 key `method` is written twice, on lines 5 and 6: keep one",
  ]);
  expect(problems(`${MINIMAL}---\n${MINIMAL}`)).toEqual([expect.stringMatching(/^5:1 a second document begins here/)]);
  expect(problems(`${MINIMAL}retry:\n\tmax_retries: 3\n`)).toEqual([
    expect.stringMatching(/^6:1 a tab as indentation/),
  ]);
  expect(problems(ORDER_STATUS.replace("    type: string", "   type: string"))).toEqual([
    expect.stringMatching(/^9:\d+ the indentation does not fit/),
  ]);
});

test("aliases that blow up inside a declaration are refused at once [Y-D08]", () => {
  const names = [..."abcdefghi"];
  const bomb = names
    .map(
      (name, i) =>
        `  ${name}: &${name} [${Array.from({ length: 9 }, () => (i === 0 ? "x" : `*${names[i - 1]}`)).join(",")}]\n`,
    )
    .join("");
  expect(problems(`${MINIMAL.replace(/description.*\n/, "")}description:\n${bomb}`)).toEqual([
    expect.stringMatching(/1 MiB/),
  ]);
});

test("the same declaration as JSON is the same declaration [S2-21]", () => {
  const json = JSON.stringify({
    name: "order_status",
    description: "根据订单号查询订单当前状态，支持传入订单号和时间范围",
    type: "http",
    endpoint: "https://api.example.com/orders/{order_id}/status",
    method: "GET",
    params: [
      { name: "order_id", required: true, type: "string", description: "订单号，例如 SO20241001" },
      {
        name: "include_history",
        required: false,
        type: "boolean",
        default: false,
        description: "是否返回完整状态流转历史",
      },
    ],
    result: { success_field: "code", success_value: 0, data_field: "data" },
    auth: { header_name: "Authorization", secret_ref: "ORDER_API_TOKEN" },
  });
  expect(declare(json, { format: "json", source: "api:order_status" }).digest).toBe(declare(ORDER_STATUS).digest);
  expect(problems('{"name": "t", "type": "http", "endpoint": 7}', { format: "json" })).toEqual([
    "1:31 `endpoint`: expected text, got number 7",
  ]);
});

test("the digest changes with what has an effect, and with nothing else", () => {
  const { digest } = declare(ORDER_STATUS);
  expect(digest).toMatch(/^[0-9a-f]{64}$/);
  expect(declare(`# a comment\n${ORDER_STATUS}`).digest).toBe(digest);
  expect(declare(ORDER_STATUS.replace("name: order_status\n", "").concat("name: order_status\n")).digest).toBe(digest);
  const changes = [
    ORDER_STATUS.replace("订单号，例如", "订单编号，例如"),
    ORDER_STATUS.replace("success_value: 0", 'success_value: "0"'),
    ORDER_STATUS.replace("api.example.com", "api.example.org"),
    ORDER_STATUS.replace("ORDER_API_TOKEN", "OTHER_TOKEN"),
    `${ORDER_STATUS}timeout: {total: 61s}\n`,
    `${ORDER_STATUS}enabled: false\n`,
    `${ORDER_STATUS}labels: {a: b}\n`,
    `${ORDER_STATUS}hints: {read_only: true}\n`,
    `${ORDER_STATUS}title: x\n`,
  ].map((text) => declare(text).digest);
  changes.push(declare(ORDER_STATUS, { defaults: { readMs: 1_000 } }).digest);
  changes.push(declare(ORDER_STATUS, { defaults: { maxLength: 1_000 } }).digest);
  changes.push(declare(ORDER_STATUS, { defaults: { maxResponseBytes: 1_000 } }).digest);
  expect(new Set([digest, ...changes]).size).toBe(changes.length + 1);
});

test("a refused declaration still tells its name, for whoever keeps the last good one", () => {
  expect(parse(`${MINIMAL}cache: {}\n`)).toMatchObject({ ok: false, name: "t" });
  expect(parse("name: [x]\n")).toMatchObject({ ok: false, name: undefined });
  expect(parse("name: t\nname: t\n")).toMatchObject({ ok: false, name: undefined });
  expect(parse(`${MINIMAL}cache: {}\n`, { source: "api:t" })).toMatchObject({
    problems: [{ source: "api:t", line: 5, column: 1, lastGoodServing: false, note: false }],
  });
});

test("names are the ones every caller can write", () => {
  for (const name of ["a", "order.status-2_x", "A".repeat(64), "007"])
    expect(declare(MINIMAL.replace("name: t", `name: ${name}`)).tool.name).toBe(name);
  for (const name of ["a/b", "订单", "a b", "A".repeat(65), '""']) {
    expect(problems(MINIMAL.replace("name: t", `name: ${name}`))).toEqual([
      expect.stringMatching(/^1:1 `name`: expected 1 to 64 letters, digits/),
    ]);
  }
});

test("hints, labels, enabled and delivery are taken over", () => {
  const { tool } = declare(
    `${MINIMAL}enabled: false\ndelivery: incremental\nlabels: {team: orders, tier: 007, __proto__: x}\nhints: {read_only: true, destructive: false, idempotent: true, open_world: false}\n`,
  );
  expect(tool).toMatchObject({
    enabled: false,
    delivery: "incremental",
    hints: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
  });
  expect(Object.entries(tool.labels)).toEqual([
    ["team", "orders"],
    ["tier", "007"],
    ["__proto__", "x"],
  ]);
});

test("a step's key is checked by its schema and handed to it", () => {
  const step: Step = {
    name: "cache",
    scope: "call",
    configSchema: {
      type: "object",
      additionalProperties: false,
      properties: { minutes: { type: "integer", minimum: 1 } },
    },
    compile: () => undefined,
  };
  const text = `${MINIMAL}cache: {minutes: 5}\n`;
  expect(problems(text)).toEqual(["5:1 `cache` is not supported yet: remove it"]);
  const { stepConfigs, digest, explained } = declare(text, { steps: [step] });
  expect([...stepConfigs]).toEqual([["cache", { minutes: 5 }]]);
  expect(explained).toContainEqual({ key: "cache", value: '{"minutes":5}', origin: "file:t.yaml:5" });
  expect(declare(text.replace("5}", "6}"), { steps: [step] }).digest).not.toBe(digest);
  expect(problems(`${MINIMAL}cache: {minutes: 0}\n`, { steps: [step] })).toEqual([
    "5:9 `cache.minutes`: expected a number >= 1, got number 0",
  ]);
});
