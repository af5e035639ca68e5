import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { Effect } from "../../clients/typescript/src/gen/toolgate/v1/errors_pb.ts";
import type { CallResponseSchema } from "../../clients/typescript/src/gen/toolgate/v1/tool_gateway_service_pb.ts";
import {
  CheckStatus,
  Delivery,
  FailureOrigin,
  ToolKind,
  ToolState,
  TruncationMode,
} from "../../clients/typescript/src/index.ts";
import { type FakeServices, gatewayError, type StreamResponse, startFakeGateway } from "../clients/fake-gateway.ts";
import { type Ran, type RunSetup, runInProcess, startCli } from "./test-host.ts";

/** Runs a command line against a gateway that answers as told. */
async function run(services: FakeServices, argv: readonly string[], setup: RunSetup = {}): Promise<Ran> {
  await using gateway = await startFakeGateway(services);
  return await runInProcess([...argv, "--address", `127.0.0.1:${gateway.port}`], setup);
}

const ORDER_STATUS = {
  name: "order_status",
  alias: "order_status",
  description: "根据订单号查询订单当前状态\n第二行",
  kind: ToolKind.HTTP,
  state: ToolState.READY,
  source: "file:order_status.yaml",
  delivery: Delivery.CONCLUSIVE,
  hints: { readOnly: true },
  labels: { team: "orders" },
  defaultTimeout: { seconds: 60n },
  etag: "e1",
  contractDigest: "d1",
  inputSchemaJson: JSON.stringify({
    type: "object",
    properties: {
      order_id: { type: "string", description: "订单号" },
      include_history: { type: "boolean", default: false },
      mode: { enum: ["fast", "full"] },
    },
    required: ["order_id"],
  }),
};

const WEATHER = {
  name: "weather",
  description: "Weather of a town",
  kind: ToolKind.HTTP,
  state: ToolState.UNAVAILABLE,
  stateReason: "secret WEATHER_API_KEY is not set",
  source: "file:weather.yaml",
};

const PROBLEM = {
  source: "file:broken.yaml",
  line: 3,
  column: 5,
  message: "unknown key `endpont`, did you mean `endpoint`?",
};

function answering(response: MessageInitShape<typeof CallResponseSchema>): FakeServices {
  return { gateway: { get: () => ({ tool: ORDER_STATUS }), call: () => response } };
}

test("tool list prints an aligned table, why a tool cannot be called, and problems after it [S2-32, S2-85]", async () => {
  const ran = await run(
    {
      gateway: { list: () => ({ tools: [ORDER_STATUS, WEATHER], problems: [{ ...PROBLEM, lastGoodServing: true }] }) },
    },
    ["tool", "list"],
  );
  expect(ran.code).toBe(0);
  expect(ran.stdout.split("\n")).toEqual([
    "NAME          STATE        KIND  SOURCE                  DESCRIPTION",
    "order_status  active       http  file:order_status.yaml  根据订单号查询订单当前状态 第二行",
    "weather       unavailable  http  file:weather.yaml       Weather of a town",
    "",
  ]);
  expect(ran.stderr).toBe(
    "\nweather is unavailable: secret WEATHER_API_KEY is not set\n" +
      "\nproblem: broken.yaml:3:5: unknown key `endpont`, did you mean `endpoint`? (the last good version keeps serving)\n",
  );
});

test("tool list fits a terminal and paints the state", async () => {
  const services: FakeServices = { gateway: { list: () => ({ tools: [WEATHER] }) } };
  const ran = await run(services, ["tool", "list"], { columns: 60 });
  const [, line] = ran.stdout.split("\n");
  expect(line).toContain("\u001b[33munavailable\u001b[39m");
  expect(stripVTControlCharacters(line ?? "")).toBe("weather  unavailable  http  file:weather.yaml  Weather of a…");
  const plain = await run(services, ["tool", "list", "--no-color"], { columns: 60 });
  expect(plain.stdout).not.toContain("\u001b");
  const noColor = await run(services, ["tool", "list"], { columns: 60, env: { NO_COLOR: "1" } });
  expect(noColor.stdout).toBe(plain.stdout);
});

test("tool list sends its filters and shows disabled tools unless told otherwise", async () => {
  const seen: unknown[] = [];
  const services: FakeServices = {
    gateway: {
      list: ({ filter }) => {
        seen.push(filter?.names, filter?.kinds, filter?.states, filter?.labels, filter?.toolsets);
        return {};
      },
    },
  };
  const ran = await run(services, [
    "tool",
    "list",
    "--name",
    "order_*",
    "--kind",
    "http",
    "--state",
    "active",
    "--label",
    "team=a",
    "--toolset",
    "shop",
  ]);
  expect(seen).toEqual([["order_*"], [ToolKind.HTTP], [ToolState.READY], { team: "a" }, ["shop"]]);
  expect(ran).toMatchObject({ code: 0, stdout: "", stderr: "No tool matches.\n" });
  seen.length = 0;
  const all = await run(services, ["tool", "list"]);
  expect(seen[2]).toHaveLength(4);
  expect(all.stderr).toContain("No tools yet");
  const wrong = await run(services, ["tool", "list", "--state", "ready"]);
  expect(wrong).toMatchObject({
    code: 2,
    stderr: 'error: --state takes one of active, degraded, unavailable, disabled; got "ready"\n',
  });
});

test("tool list --output json has schemas as JSON, all pages and the problems", async () => {
  const ran = await run(
    {
      gateway: {
        list: ({ pageToken, omitSchemas }) => {
          if (omitSchemas) throw new Error("schemas are wanted");
          return pageToken === ""
            ? { tools: [ORDER_STATUS], problems: [PROBLEM], nextPageToken: "2", revision: 9_007_199_254_740_993n }
            : { tools: [WEATHER], revision: 9_007_199_254_740_993n };
        },
      },
    },
    ["tool", "list", "--output", "json"],
  );
  expect(ran.stdout).toContain('"revision": 9007199254740993');
  expect(JSON.parse(ran.stdout)).toMatchObject({
    tools: [
      { name: "order_status", state: "active", inputSchema: { required: ["order_id"] } },
      { name: "weather", state: "unavailable" },
    ],
    problems: [{ ...PROBLEM, lastGoodServing: false, note: false }],
  });
});

test("tool get shows the parameters", async () => {
  const ran = await run({ gateway: { get: () => ({ tool: ORDER_STATUS }) } }, ["tool", "get", "order_status"]);
  expect(ran.code).toBe(0);
  expect(ran.stdout).toBe(
    [
      "name        order_status",
      "state       active",
      "kind        http",
      "source      file:order_status.yaml",
      "delivery    conclusive",
      "hints       read only",
      "labels      team=orders",
      "time limit  1m",
      "etag        e1",
      "digest      d1",
      "",
      "根据订单号查询订单当前状态",
      "第二行",
      "",
      "PARAMETER        TYPE                            DESCRIPTION",
      "order_id         string           required       订单号",
      "include_history  boolean          default false",
      'mode             "fast" | "full"',
      "",
    ].join("\n"),
  );
});

test("tool call converts params by the tool's schema and prints the structured result [S2-86]", async () => {
  let sent: unknown;
  const ran = await run(
    {
      gateway: {
        get: () => ({ tool: ORDER_STATUS }),
        call: ({ invocation }) => {
          sent = invocation?.arguments.value;
          return { callId: "c1", result: { structuredJson: '{"id":9007199254740993,"状态":"shipped"}' } };
        },
      },
    },
    ["tool", "call", "order_status", "--param", "order_id=007", "--param", "include_history=true"],
  );
  expect(sent).toBe('{"order_id":"007","include_history":true}');
  expect(ran).toEqual({ code: 0, stdout: '{\n  "id": 9007199254740993,\n  "状态": "shipped"\n}\n', stderr: "" });
});

test("tool call --request-id sends the key, and an answer that an earlier call had is said to be one", async () => {
  const sent: (string | undefined)[] = [];
  const gateway: FakeServices["gateway"] = {
    get: () => ({ tool: ORDER_STATUS }),
    call: ({ invocation }) => {
      sent.push(invocation?.requestId);
      return { callId: "c1", result: { structuredJson: "1" }, stats: { attempts: 1, replayed: sent.length > 1 } };
    },
  };
  const command = ["tool", "call", "order_status", "--json", "{}", "--request-id", "refund-1"];
  const first = await run({ gateway }, command);
  expect(first).toEqual({ code: 0, stdout: "1\n", stderr: "" });
  const second = await run({ gateway }, command);
  expect(second).toEqual({
    code: 0,
    stdout: "1\n",
    stderr: "this is the answer of the call that had this --request-id first\n",
  });
  expect(sent).toEqual(["refund-1", "refund-1"]);
});

test.for(["", "has space", "x".repeat(65), "ключ"])("tool call refuses %j as --request-id", async (key) => {
  const refused = await runInProcess(["tool", "call", "t", "--request-id", key]);
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toContain("It takes 1 to 64 visible ASCII characters, such as a UUID.");
});

test("tool call --explain prints address, masked headers, status and the normalised body [S2-87]", async () => {
  const ran = await run(
    answering({
      callId: "c1",
      result: { structuredJson: '{"status":"shipped"}' },
      stats: { attempts: 1, effect: Effect.NONE, total: { nanos: 14_000_000 } },
      explanation: {
        exchanges: [
          {
            method: "GET",
            url: "http://127.0.0.1:7434/orders/SO1/status?include_history=false",
            requestHeaders: [
              { name: "accept", value: "application/json" },
              { name: "authorization", value: "***" },
            ],
            requestBody: '{\n"a": 1}',
            status: 200,
            responseHeaders: [{ name: "content-type", value: "application/json" }],
            firstByte: { nanos: 12_000_000 },
          },
        ],
      },
    }),
    ["tool", "call", "order_status", "--json", "{}", "--explain"],
  );
  expect(ran.stdout).toBe('{\n  "status": "shipped"\n}\n');
  expect(ran.stderr).toBe(
    [
      "> GET http://127.0.0.1:7434/orders/SO1/status?include_history=false",
      "> accept: application/json",
      "> authorization: ***",
      ">",
      "> {",
      '> "a": 1}',
      "< 200 after 12ms",
      "< content-type: application/json",
      "",
      "call c1: 14ms, 1 attempt, effect none",
      "",
    ].join("\n"),
  );
});

test("a failure the tool reported ends with 1, a refused credential with 7", async () => {
  const failed = await run(
    answering({
      result: {
        structuredJson: '{"code":404}',
        failure: { reason: "TOOL_FAILED", message: "no such order", upstreamCode: 200, retryable: false },
      },
    }),
    ["tool", "call", "order_status"],
  );
  expect(failed.code).toBe(1);
  expect(failed.stdout).toBe('{\n  "code": 404\n}\n');
  expect(failed.stderr).toBe("failed: TOOL_FAILED (200) no such order\n");
  const denied = await run(
    answering({ result: { failure: { reason: "UPSTREAM_UNAUTHORIZED", message: "refused", retryable: true } } }),
    ["tool", "call", "order_status"],
  );
  expect(denied).toMatchObject({
    code: 7,
    stderr: "failed: UPSTREAM_UNAUTHORIZED refused; the same call may work later\n",
  });
});

test("text, bytes and links of a result are printed, and how it was shortened is said", async () => {
  const ran = await run(
    answering({
      result: {
        content: [
          { part: { case: "text", value: "one" } },
          { part: { case: "blob", value: { mimeType: "image/png", data: new Uint8Array(3) } } },
          { part: { case: "link", value: { uri: "https://example.com/a", name: "report" } } },
        ],
        truncation: { mode: TruncationMode.HEAD_TAIL, originalLength: 1_000_000n },
      },
    }),
    ["tool", "call", "order_status"],
  );
  expect(ran.stdout).toBe("one\n[3 bytes of image/png; --output json has them]\n[report: https://example.com/a]\n");
  expect(ran.stderr).toBe("shortened: head_tail kept, 1000000 characters in all\n");
});

test("a terminal gets no control characters of a tool's text, a pipe gets the text itself", async () => {
  const services = answering({ result: { content: [{ part: { case: "text", value: "a\u001b[31mred\u0007\tb\n" } }] } });
  expect((await run(services, ["tool", "call", "t"], { columns: 80 })).stdout).toBe("a\\x1b[31mred\\x07\tb\n");
  expect((await run(services, ["tool", "call", "t"])).stdout).toBe("a\u001b[31mred\u0007\tb\n");
});

test("tool call --output json has everything", async () => {
  const ran = await run(
    answering({
      callId: "c1",
      result: {
        structuredJson: '{"id":9007199254740993}',
        content: [{ part: { case: "blob", value: { mimeType: "image/png", data: new Uint8Array([1, 2]) } } }],
      },
      stats: { attempts: 2, effect: Effect.COMMITTED, total: { seconds: 1n } },
    }),
    ["tool", "call", "order_status", "--output", "json"],
  );
  expect(ran.stdout).toContain("9007199254740993");
  expect(JSON.parse(ran.stdout)).toMatchObject({
    callId: "c1",
    content: [{ blob: { mimeType: "image/png", data: "AQI=" } }],
    stats: { attempts: 2, effect: "committed", totalMs: 1000, queuedMs: 0 },
  });
});

test("an error names the reason, each wrong place and the mend, and --output json has it as JSON", async () => {
  const services: FakeServices = {
    gateway: {
      call: () => {
        throw gatewayError(Code.InvalidArgument, "ARGUMENTS_INVALID", "order_status: 2 arguments are wrong", {
          violations: [
            { field: "/order_id", description: "expected string, got nothing", reason: "MISSING" },
            { field: "/n", description: "expected integer, got text", reason: "WRONG_TYPE" },
          ],
          effect: Effect.NONE,
        });
      },
    },
  };
  const ran = await run(services, ["tool", "call", "order_status"]);
  expect(ran).toEqual({
    code: 2,
    stdout: "",
    stderr: [
      "error: ARGUMENTS_INVALID order_status: 2 arguments are wrong",
      "  /order_id  MISSING     expected string, got nothing",
      "  /n         WRONG_TYPE  expected integer, got text",
      "mend: `toolgate tool get NAME` shows what the tool takes. Nothing was sent to its upstream.",
      "",
    ].join("\n"),
  });
  const json = await run(services, ["tool", "call", "order_status", "--output", "json"]);
  expect(json.stdout).toBe("");
  expect(JSON.parse(json.stderr)).toMatchObject({
    error: { reason: "ARGUMENTS_INVALID", exitCode: 2, violations: [{ field: "/order_id" }, { field: "/n" }] },
  });
});

test("an error that may have had an effect says so", async () => {
  const ran = await run(
    {
      gateway: {
        call: () => {
          throw gatewayError(Code.Unknown, "UPSTREAM_ANSWER_LOST", "the answer was lost", {
            effect: Effect.UNKNOWN,
            callId: "c7",
          });
        },
      },
    },
    ["tool", "call", "create_refund"],
  );
  expect(ran.code).toBe(5);
  expect(ran.stderr).toContain("  the call may have taken effect (call c7)\n");
});

test("a gateway that is not there ends with 4 and says how to start one", async () => {
  const ran = await runInProcess(["tool", "list", "--address", "127.0.0.1:1"]);
  expect(ran.code).toBe(4);
  expect(ran.stderr).toContain("error: GATEWAY_UNREACHABLE");
  expect(ran.stderr).toContain("mend: Start one with `toolgate serve`");
  const viaEnv = await runInProcess(["tool", "list"], { env: { TOOLGATE_ADDRESS: "127.0.0.1:1" } });
  expect(viaEnv.stderr).toContain("127.0.0.1:1");
  const wrong = await runInProcess(["tool", "list", "--address", "not an address"]);
  expect(wrong).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--address takes HOST:PORT, https://HOST:PORT or unix:PATH, got "not an address"'),
  });
});

const STREAM: StreamResponse[] = [
  { sequence: 0n, event: { case: "started", value: { callId: "c1" } } },
  { sequence: 1n, event: { case: "output", value: { delta: { case: "text", value: "one " } } } },
  { sequence: 2n, event: { case: "progress", value: { current: 1, total: 2, message: "half" } } },
  { sequence: 3n, event: { case: "output", value: { delta: { case: "text", value: "two" } } } },
  { sequence: 4n, event: { case: "log", value: { level: "info", message: "a line" } } },
  { sequence: 5n, event: { case: "completed", value: { result: { structuredJson: '{"lines":2}' } } } },
];

const STREAMING: FakeServices = {
  gateway: {
    async *callStream(): AsyncGenerator<StreamResponse> {
      yield* STREAM;
    },
  },
};

test("tool call --stream prints output as it comes, and the rest of the result after it [S2-68]", async () => {
  const ran = await run(STREAMING, ["tool", "call", "tail", "--stream"]);
  expect(ran).toEqual({
    code: 0,
    stdout: 'one two\n{\n  "lines": 2\n}\n',
    stderr: "progress 1/2 half\ninfo: a line\n",
  });
});

test("tool call --stream --output json prints one event a line", async () => {
  const ran = await run(STREAMING, ["tool", "call", "tail", "--stream", "--output", "json"]);
  const events = ran.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(events.map((event) => event.event)).toEqual(["started", "output", "progress", "output", "log", "completed"]);
  expect(events.at(-1)).toMatchObject({ callId: "c1", structured: { lines: 2 } });
});

const QUEUED: FakeServices = {
  gateway: {
    async *callStream(): AsyncGenerator<StreamResponse> {
      yield { sequence: 0n, event: { case: "started", value: { callId: "c1" } } };
      yield { sequence: 1n, event: { case: "queued", value: { limit: 'tool "tail"', position: 2 } } };
      const stats = { attempts: 1, effect: Effect.NONE, queued: { seconds: 2n }, total: { seconds: 3n } };
      yield { sequence: 2n, event: { case: "completed", value: { stats, result: { structuredJson: "1" } } } };
    },
  },
};

test("a call that waits for its turn says so, and how long it did [S2-67]", async () => {
  const { stderr } = await run(QUEUED, ["tool", "call", "tail", "--stream", "--explain"]);
  expect(stderr).toBe(
    'waits for tool "tail", number 2 in line\ncall c1: 3s (2s of it waiting for its turn), 1 attempt, effect none\n',
  );
  const { stdout } = await run(QUEUED, ["tool", "call", "tail", "--stream", "--output", "json"]);
  const [, queued, completed] = stdout.split("\n").map((line) => JSON.parse(line === "" ? "{}" : line));
  expect(queued).toEqual({ event: "queued", limit: 'tool "tail"', position: 2 });
  expect(completed).toMatchObject({ stats: { totalMs: 3_000, queuedMs: 2_000 } });
});

/** A gateway whose stream never ends by itself, and what it saw. */
function endless(): { services: FakeServices; cancelled: Promise<void> } {
  let tell: () => void = () => undefined;
  const cancelled = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const services: FakeServices = {
    gateway: {
      async *callStream(_request, context): AsyncGenerator<StreamResponse> {
        yield { sequence: 0n, event: { case: "started", value: { callId: "c1" } } };
        yield { sequence: 1n, event: { case: "output", value: { delta: { case: "text", value: "tick\n" } } } };
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
        tell();
      },
    },
  };
  return { services, cancelled };
}

test("Ctrl-C cancels the call at the gateway and ends with 130, SIGTERM with 143", async () => {
  for (const [signal, code, words] of [
    ["SIGINT", 130, "interrupted"],
    ["SIGTERM", 143, "terminated"],
  ] as const) {
    const { services, cancelled } = endless();
    await using gateway = await startFakeGateway(services);
    const running = startCli(["tool", "call", "tail", "--stream", "--address", `127.0.0.1:${gateway.port}`]);
    await running.stdout.has("tick");
    running.signal(signal);
    expect(await running.ended).toEqual({ code, stdout: "tick\n", stderr: `${words}\n` });
    await cancelled;
  }
});

test("a second Ctrl-C ends the process at once", async () => {
  const { services } = endless();
  await using gateway = await startFakeGateway(services);
  const running = startCli(["tool", "call", "tail", "--stream", "--address", `127.0.0.1:${gateway.port}`]);
  await running.stdout.has("tick");
  running.signal("SIGINT");
  running.signal("SIGINT");
  expect(running.exits).toEqual([130]);
  await running.ended;
});

test("a reader of stdout that goes away ends the command quietly and cancels the call", async () => {
  const { services, cancelled } = endless();
  await using gateway = await startFakeGateway(services);
  const running = startCli(["tool", "call", "tail", "--stream", "--address", `127.0.0.1:${gateway.port}`]);
  await running.stdout.has("tick");
  running.stdout.emit("error", Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
  expect(await running.ended).toMatchObject({ code: 0, stderr: "" });
  await cancelled;
});

test("tool register sends the file, its options, and prints warnings [S2-31, S2-84]", async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-register-"));
  const seen: unknown[] = [];
  const services: FakeServices = {
    gateway: {
      register: (request) => {
        seen.push(request.declaration.case, request.declaration.value, request.lease?.seconds, request.mustNotExist);
        seen.push(request.etag, request.validateOnly);
        return { tools: [{ name: "t", state: ToolState.READY }], revision: 5n, warnings: ["short description"] };
      },
    },
  };
  try {
    const file = join(folder, "t.yaml");
    await writeFile(file, "name: t\n");
    const ran = await run(services, [
      "tool",
      "register",
      "-f",
      file,
      "--lease",
      "10m",
      "--must-not-exist",
      "--etag",
      "e1",
    ]);
    expect(seen).toEqual(["declarationYaml", "name: t\n", 600n, true, "e1", false]);
    expect(ran).toEqual({
      code: 0,
      stdout: "",
      stderr: "warning: short description\nt is registered: active, revision 5\n",
    });
    const checked = await run(services, ["tool", "register", "--file", "-", "--validate-only"], { stdin: "name: t" });
    expect(checked.stderr).toContain("t is a valid declaration; nothing was changed");
    const gone = await run(services, ["tool", "register", "-f", `${file}.gone`]);
    expect(gone).toMatchObject({
      code: 2,
      stderr: `error: --file: cannot read ${file}.gone: no such file or folder\n`,
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a refused declaration names each problem by file, line and column", async () => {
  const services: FakeServices = {
    gateway: {
      register: () => {
        throw gatewayError(
          Code.InvalidArgument,
          "DECLARATION_INVALID",
          "the declaration is refused: line 2 (and 1 more)",
          {
            violations: [
              {
                field: "declaration_yaml",
                description: "line 2, column 1: unknown key `endpont`",
                reason: "DECLARATION_INVALID",
              },
              { field: "declaration_yaml", description: "too long", reason: "DECLARATION_INVALID" },
            ],
            effect: Effect.NONE,
          },
        );
      },
    },
  };
  const ran = await run(services, ["tool", "register", "-f", "-"], { stdin: "x" });
  expect(ran).toEqual({
    code: 8,
    stdout: "",
    stderr:
      "error: DECLARATION_INVALID the declaration is refused\n" +
      "  stdin:2:1: unknown key `endpont`\n" +
      "  stdin: too long\n" +
      "mend: Correct the places named; nothing was changed.\n",
  });
  const json = await run(services, ["tool", "register", "-f", "-", "--output", "json"], { stdin: "x" });
  expect(JSON.parse(json.stderr)).toMatchObject({ error: { reason: "DECLARATION_INVALID", violations: [{}, {}] } });
});

test("tool unregister says what it did", async () => {
  const ran = await run({ gateway: { unregister: () => ({ revision: 6n }) } }, [
    "tool",
    "unregister",
    "t",
    "--allow-missing",
  ]);
  // Whether it was there before, the gateway does not say.
  expect(ran).toEqual({ code: 0, stdout: "", stderr: "t is not registered (revision 6)\n" });
  const removed = await run({ gateway: { unregister: () => ({ revision: 7n }) } }, ["tool", "unregister", "t"]);
  expect(removed.stderr).toBe("t is not registered any more (revision 7)\n");
});

test("a wrong command line is an error in JSON too where JSON is asked for", async () => {
  const cases: readonly (readonly [argv: readonly string[], message: string])[] = [
    [["tool", "lst", "--output", "json"], "unknown command 'lst'"],
    [["--output=json", "tool", "get"], "missing required argument 'name'"],
    [["tool", "list", "--colour", "--output", "json"], "unknown option '--colour'"],
    [
      ["tool", "call", "t", "--timeout", "3", "--output", "json"],
      "option '--timeout <duration>' argument '3' is invalid.",
    ],
    [["--output", "json"], "a command is missing"],
  ];
  for (const [argv, message] of cases) {
    const { code, stdout, stderr } = await runInProcess(argv);
    expect({ code, stdout }, message).toEqual({ code: 2, stdout: "" });
    const { error } = JSON.parse(stderr);
    expect(error).toMatchObject({ exitCode: 2, mend: "`toolgate --help` shows how." });
    expect(error.message).toContain(message);
  }
  expect((await runInProcess(["tool", "lst", "--", "--output", "json"])).stderr).toMatch(
    /^error: unknown command 'lst'/,
  );
  const serve = await runInProcess(["serve", "--config", "/nowhere/gateway.yaml", "--output", "json"]);
  expect(JSON.parse(serve.stderr)).toMatchObject({ error: { exitCode: serve.code } });
  expect(serve.code).not.toBe(0);
});

test("explain prints each value with its origin, and the steps", async () => {
  const services: FakeServices = {
    operator: {
      explain: () => ({
        name: "t",
        values: [
          { key: "timeout.read", value: "10s", origin: "file:t.yaml:12" },
          { key: "timeout.total", value: "1m", origin: "default" },
        ],
        steps: ["audit", "deadline"],
      }),
    },
  };
  const ran = await run(services, ["explain", "t"]);
  expect(ran.stdout).toBe(
    "KEY            FROM            VALUE\n" +
      "timeout.read   file:t.yaml:12  10s\n" +
      "timeout.total  default         1m\n" +
      "\nA call passes: audit → deadline\n",
  );
});

test("doctor reports each check with its mend and ends with 1 when something is broken [S2-76, S2-77]", async () => {
  const home = await mkdtemp(join(tmpdir(), "toolgate-doctor-"));
  const services: FakeServices = {
    operator: {
      diagnose: () => ({
        version: "9.9.9",
        runtime: "Node.js 24.21.0",
        uptime: { seconds: 90n },
        checks: [
          { subject: "tools folder", status: CheckStatus.OK, message: "readable" },
          {
            subject: "secret ORDER_API_TOKEN",
            status: CheckStatus.FAILED,
            message: "is not set",
            mend: "export ORDER_API_TOKEN",
          },
        ],
        problems: [PROBLEM],
      }),
    },
  };
  try {
    const ran = await run(services, ["doctor"], { home, env: { https_proxy: "http://proxy:3128" } });
    expect(ran.code).toBe(1);
    expect(ran.stdout).toContain("ok       runtime: Node.js 24.21.0\n");
    expect(ran.stdout).toContain(`ok       folder ${home}/.toolgate: not there yet`);
    expect(ran.stdout).toContain("look at  proxy: https_proxy set");
    expect(ran.stdout).toContain("toolgate 9.9.9 on Node.js 24.21.0, up for 1m30s\n");
    expect(ran.stdout).toContain(
      "broken   secret ORDER_API_TOKEN: is not set\n         mend: export ORDER_API_TOKEN\n",
    );
    expect(ran.stdout).toContain("broken   declaration: broken.yaml:3:5: unknown key");
    expect(ran.stderr).toBe("4 ok, 1 to look at, 2 broken\n");
    const json = await run(services, ["doctor", "--output", "json"], { home });
    expect(JSON.parse(json.stdout)).toMatchObject({ gateway: { uptimeMs: 90_000, problems: [PROBLEM] } });
  } finally {
    await rm(home, { recursive: true });
  }
});

test("doctor ends with 0 for what is only worth a look, with --strict with 1; what a server has is told once, by the gateway", async () => {
  const message = 'tool "odd" is held back: its input schema cannot be used';
  const services: FakeServices = {
    operator: {
      diagnose: () => ({
        version: "9.9.9",
        runtime: "Node.js 24.21.0",
        checks: [
          { subject: "server fs", status: CheckStatus.OK, message: "speaks MCP" },
          { subject: "server:fs", status: CheckStatus.WARNING, message, mend: "Look at the server." },
        ],
        problems: [{ source: "server:fs", message, note: true }],
      }),
    },
  };
  const ran = await run(services, ["doctor"]);
  expect(ran.code).toBe(0);
  expect(ran.stdout.match(/held back/g)).toHaveLength(1);
  expect(ran.stdout).toContain("ok       server fs: speaks MCP\n");
  expect((await run(services, ["doctor", "--strict"])).code).toBe(1);
});

test("doctor without a gateway says how to start one", async () => {
  const ran = await runInProcess(["doctor", "--address", "127.0.0.1:1"]);
  expect(ran.code).toBe(1);
  expect(ran.stdout).toContain("broken   gateway 127.0.0.1:1: the gateway cannot be reached");
  expect(ran.stdout).toContain("mend: Start one with `toolgate serve`");
});

test("doctor notes another version of the gateway and ends with 0 when nothing is broken", async () => {
  const ran = await run({ operator: { diagnose: () => ({ version: "0.0.1", runtime: "Node.js 22.23.3" }) } }, [
    "doctor",
  ]);
  expect(ran.code).toBe(0);
  expect(ran.stdout).toContain("look at  versions: the gateway is toolgate 0.0.1, this command 9.9.9\n");
});

test("--version prints the version alone, --help goes to stdout, and a wrong line ends with 2 [S2-75]", async () => {
  expect(await runInProcess(["--version"])).toEqual({ code: 0, stdout: "9.9.9\n", stderr: "" });
  const help = await runInProcess(["tool", "call", "--help"]);
  expect(help.code).toBe(0);
  expect(help.stdout).toContain("--param <name=value>");
  const wrong = await runInProcess(["tool", "cal", "x"]);
  expect(wrong).toMatchObject({ code: 2, stdout: "" });
  expect(wrong.stderr).toContain("Did you mean call?");
  expect((await runInProcess(["tool", "call"])).code).toBe(2);
  expect((await runInProcess(["tool", "call", "t", "--timeout", "5"])).stderr).toContain(
    "Write a duration above zero with its unit",
  );
  const bare = await runInProcess([]);
  expect(bare.code).toBe(2);
  expect(bare.stderr).toContain("Usage: toolgate");
});

test("Ctrl-C ends a command that waits for stdin", async () => {
  const running = startCli(["tool", "call", "t", "--json", "-", "--address", "127.0.0.1:1"]);
  await new Promise((resolve) => setImmediate(resolve));
  running.signal("SIGINT");
  expect(await running.ended).toMatchObject({ code: 130, stderr: "interrupted\n" });
});

const NEEDS_INPUT = {
  state: "h1",
  requestsJson: JSON.stringify({
    q1: { kind: "form", message: "Which\u001b size?", schema: { type: "object" }, params: {} },
    q2: { kind: "url", message: "Log in", url: "https://example.com/login", params: {} },
  }),
  expiresIn: { seconds: 600n },
};

test("tool call shows what a tool asks for and how to answer, and ends with a code of its own", async () => {
  const services = answering({ callId: "c1", result: { needsInput: NEEDS_INPUT } });
  const ran = await run(services, ["tool", "call", "order_status"]);
  expect([ran.code, ran.stdout]).toEqual([9, ""]);
  expect(ran.stderr.split("\n")).toEqual([
    "the tool asks for input and waits 10m for it; nothing is answered by itself",
    "q1 (form): Which\\x1b size?",
    '  content: {"type":"object"}',
    "q2 (url): Log in https://example.com/login",
    'answer: the same command with --continue h1 --input \'{"q1":{"action":"accept","content":{}},"q2":{"action":"accept","content":{}}}\'',
    "        or with an action of decline or cancel",
    "",
  ]);
  const json = await run(services, ["tool", "call", "order_status", "--output", "json"]);
  expect(JSON.parse(json.stdout)).toMatchObject({
    needsInput: { state: "h1", expiresInMs: 600_000, requests: { q1: { kind: "form" } } },
  });
});

test("tool call --continue sends the answers, and the two options go together", async () => {
  const sent: unknown[] = [];
  const services: FakeServices = {
    gateway: {
      call: ({ invocation }) => {
        sent.push(invocation?.acceptsInput, invocation?.continuation?.state, invocation?.continuation?.inputsJson);
        return { callId: "c1", result: { content: [{ part: { case: "text", value: "done" } }] } };
      },
    },
  };
  const input = '{"q1":{"action":"decline"}}';
  const ran = await run(services, ["tool", "call", "order_status", "--continue", "h1", "--input", input]);
  expect([ran.code, ran.stdout, sent]).toEqual([0, "done\n", [true, "h1", input]]);
  const alone = await run(services, ["tool", "call", "order_status", "--continue", "h1"]);
  expect(alone.code).toBe(2);
  expect(alone.stderr).toContain("--continue and --input go together");
});

test("tool call tells of a notice, of where a part comes from, and of whose a failure is", async () => {
  const services = answering({
    callId: "c1",
    result: {
      content: [
        { part: { case: "text", value: "# A" }, resource: { uri: "file:///a.md", mimeType: "text/markdown" } },
        {
          part: { case: "blob", value: { mimeType: "image/png", data: new Uint8Array([1]) } },
          resource: { uri: "file:///a.png", mimeType: "" },
        },
        {
          part: { case: "link", value: { uri: "file:///b", name: "b", title: "B", sizeBytes: 3n } },
          annotations: { audience: ["user"], priority: 0.5 },
        },
      ],
      notices: [{ reason: "OUTPUT_SCHEMA_MISMATCH", message: "no fit" }],
      failure: { reason: "TOOL_FAILED", message: "no", origin: FailureOrigin.TOOL },
    },
  });
  const ran = await run(services, ["tool", "call", "order_status"]);
  expect(ran.stdout).toBe(
    "# A\n[1 bytes of image/png from file:///a.png; --output json has them]\n[B: file:///b, 3 bytes]\n",
  );
  expect(ran.stderr).toBe("notice: OUTPUT_SCHEMA_MISMATCH no fit\nfailed: TOOL_FAILED no\n");
  const json = JSON.parse((await run(services, ["tool", "call", "order_status", "--output", "json"])).stdout);
  expect(json).toMatchObject({
    content: [
      { text: "# A", resource: { uri: "file:///a.md", mimeType: "text/markdown" } },
      { blob: { mimeType: "image/png", data: "AQ==" } },
      { link: { uri: "file:///b", title: "B", sizeBytes: 3 }, annotations: { audience: ["user"], priority: 0.5 } },
    ],
    notices: [{ reason: "OUTPUT_SCHEMA_MISMATCH", message: "no fit" }],
    failure: { origin: "tool" },
  });
});
