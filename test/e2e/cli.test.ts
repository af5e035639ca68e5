import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { deferred } from "../clients/fake-gateway.ts";
import { type CliProcess, type Ended, startToolgate, toolgate } from "./cli-process.ts";

/** For tests that start many processes, on a machine that has others to run. */
const PATIENT = { timeout: 90_000 };

/** Orders as JSON, and a log that goes on until its reader leaves. */
interface Upstream extends AsyncDisposable {
  readonly port: number;
  /** The reader of the log has left. */
  readonly logLeft: Promise<void>;
}

async function startUpstream(): Promise<Upstream> {
  const { promise: logLeft, resolve } = deferred<void>();
  const server = createServer((request, response) => {
    if (request.url === "/log") tailLog(response, resolve);
    else if (request.headers.authorization !== "sk-xxx-yyy") response.writeHead(401).end("no");
    else {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(`{"code":0,"message":"ok","data":{"url":"${request.url}","id":9007199254740993}}`);
    }
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    port: (server.address() as AddressInfo).port,
    logLeft,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

function tailLog(response: ServerResponse, left: (value: void) => void): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  let line = 0;
  const timer = setInterval(() => response.write(`data: line ${++line}\n\n`), 20);
  response.once("close", () => {
    clearInterval(timer);
    left();
  });
}

let folder: string;
let upstream: Upstream;
let gateway: CliProcess;
let address: string;

/** A declaration of E1's shape. */
function orderStatus(name: string): string {
  return `name: ${name}
description: 根据订单号查询订单当前状态，支持传入订单号和时间范围
type: http
endpoint: http://127.0.0.1:${upstream.port}/orders/{order_id}/status
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
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolgate-cli-"));
  upstream = await startUpstream();
  await mkdir(join(folder, "tools"));
  await writeFile(join(folder, "tools", "order_status.yaml"), orderStatus("order_status"));
  await writeFile(
    join(folder, "tools", "log.yaml"),
    `name: log\ndescription: 跟踪日志 follow the log\ntype: http\nmethod: GET\ndelivery: incremental\n` +
      `endpoint: http://127.0.0.1:${upstream.port}/log\n`,
  );
  const config = join(folder, "gateway.yaml");
  await writeFile(config, "registration: { secrets: [ORDER_API_TOKEN] }\n");
  gateway = startToolgate(
    [
      "serve",
      "--config",
      config,
      "--tools",
      join(folder, "tools"),
      "--state",
      join(folder, "state"),
      "--listen",
      "127.0.0.1:0",
    ],
    { env: { ORDER_API_TOKEN: "sk-xxx-yyy", HOME: folder } },
  );
  const [, port] = await gateway.output("stderr", /"url":"http:\/\/127\.0\.0\.1:(\d+)"/);
  address = `127.0.0.1:${port}`;
});

afterAll(async () => {
  gateway.child.kill("SIGTERM");
  await gateway.ended;
  await upstream[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

function cli(...argv: string[]): Promise<Ended> {
  return toolgate(argv, { env: { TOOLGATE_ADDRESS: address, HOME: folder }, cwd: folder });
}

test("--version prints a version [S2-75]", async () => {
  expect(await cli("--version")).toMatchObject({ code: 0, stdout: `${manifest.version}\n`, stderr: "" });
});

test("tool list shows the declared tool with status active [S2-32, S2-85]", async () => {
  const { code, stdout } = await cli("tool", "list");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^order_status +active +http +file:order_status\.yaml +根据订单号查询订单当前状态/m);
});

test("tool call works without any model, and its result keeps every digit [S1-29, S2-86]", async () => {
  const ended = await cli("tool", "call", "order_status", "--param", "order_id=SO20241001");
  expect(ended).toMatchObject({ code: 0, stderr: "" });
  expect(ended.stdout).toBe(
    '{\n  "url": "/orders/SO20241001/status?include_history=false",\n  "id": 9007199254740993\n}\n',
  );
  expect(ended.lingeredMs).toBeLessThan(10_000);
});

test("tool call --explain prints the assembled URL, masked headers, the status and the normalised body [S2-87, K-D05]", async () => {
  const ended = await cli("tool", "call", "order_status", "--param", "order_id=SO 1", "--explain");
  expect(ended.code).toBe(0);
  expect(ended.stderr).toContain(
    `> GET http://127.0.0.1:${upstream.port}/orders/SO%201/status?include_history=false\n`,
  );
  expect(ended.stderr).toMatch(/^> authorization: \*\*\*$/m);
  expect(ended.stderr).toMatch(/^< 200 after /m);
  expect(ended.stderr + ended.stdout).not.toContain("sk-xxx-yyy");
  expect(ended.stdout).toContain('"url": "/orders/SO%201/status');
});

test("argument, name and network problems end with codes and errors of their own [S2-30, S2-88]", PATIENT, async () => {
  const missing = await cli("tool", "call", "order_status");
  expect(missing.code).toBe(2);
  expect(missing.stderr).toContain("error: ARGUMENTS_INVALID");
  expect(missing.stderr).toMatch(/^ {2}\/order_id +MISSING/m);
  const unknown = await cli("tool", "call", "order_statu");
  expect(unknown.code).toBe(3);
  expect(unknown.stderr).toContain('did you mean "order_status"?');
  const nobody = await cli("tool", "list", "--address", "127.0.0.1:1");
  expect(nobody.code).toBe(4);
});

test("a tool file that is dropped into the folder can be called without a restart [S2-20]", PATIENT, async () => {
  await writeFile(join(folder, "tools", "dropped.yaml"), orderStatus("dropped"));
  let ended = await cli("tool", "call", "dropped", "--param", "order_id=1");
  for (let i = 0; i < 20 && ended.code === 3; i++)
    ended = await cli("tool", "call", "dropped", "--param", "order_id=1");
  expect(ended.code).toBe(0);
  await rm(join(folder, "tools", "dropped.yaml"));
});

test(
  "tool register -f makes a tool live at once, tool unregister takes it away [S2-14, S2-31, S2-84]",
  PATIENT,
  async () => {
    const file = join(folder, "registered.yaml");
    await writeFile(file, orderStatus("registered"));
    expect((await cli("tool", "register", "-f", file, "--validate-only")).stderr).toContain("valid");
    expect((await cli("tool", "get", "registered")).code).toBe(3);
    const registered = await cli("tool", "register", "--file", file, "--lease", "10m", "--must-not-exist");
    expect(registered).toMatchObject({ code: 0, stdout: "" });
    expect((await cli("tool", "call", "registered", "--param", "order_id=1")).code).toBe(0);
    expect((await cli("tool", "register", "--file", file, "--must-not-exist")).code).toBe(8);
    expect((await cli("tool", "get", "registered", "--output", "json")).stdout).toContain('"source": "api"');
    expect((await cli("tool", "unregister", "registered")).code).toBe(0);
    expect((await cli("tool", "unregister", "order_status")).code).toBe(8);
  },
);

test("a refused declaration is told by file, line and column [S2-80]", async () => {
  const file = join(folder, "broken.yaml");
  await writeFile(file, orderStatus("broken").replace("endpoint:", "endpont:"));
  const ended = await cli("tool", "register", "-f", file);
  expect(ended.code).toBe(8);
  expect(ended.stderr).toContain(`${file}:4:1: unknown key \`endpont\``);
});

test("tool call --stream prints output as it comes, and Ctrl-C reaches the upstream [S2-68]", async () => {
  await using running = startToolgate(["tool", "call", "log", "--stream", "--address", address]);
  await running.output("stdout", /line 3/);
  running.child.kill("SIGINT");
  expect(await running.ended).toMatchObject({ code: 130, stderr: "interrupted\n" });
  await upstream.logLeft;
});

test("explain names where a value comes from", async () => {
  const { code, stdout } = await cli("explain", "order_status");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^result\.data_field +file:order_status\.yaml:\d+ +data$/m);
  expect(stdout).toMatch(/^timeout\.read +default +30s$/m);
});

test(
  "doctor is content with a sound gateway, and ends with 1 and the mend on a broken declaration [S2-76, S2-77, Y-D16]",
  PATIENT,
  async () => {
    const sound = await cli("doctor");
    expect(sound).toMatchObject({ code: 0, stderr: expect.stringMatching(/0 broken\n$/) });
    const file = join(folder, "tools", "half.yaml");
    await writeFile(file, "name: half\ntype: http\n");
    let broken = await cli("doctor");
    for (let i = 0; i < 20 && broken.code === 0; i++) broken = await cli("doctor");
    expect(broken.code).toBe(1);
    expect(broken.stdout).toMatch(/broken {3}declaration: half\.yaml:1:1: /);
    expect(broken.stdout).toContain("mend: Correct the file");
    const report = JSON.parse((await cli("doctor", "--output", "json")).stdout);
    expect(report.gateway.problems[0].source).toBe("file:half.yaml");
    await rm(file);
  },
);

test("a second serve on the same port says that it is in use", async () => {
  const ended = await cli("serve", "--listen", address, "--state", join(folder, "other"));
  expect(ended).toMatchObject({ code: 1, stdout: "" });
  expect(ended.stderr).toContain(`error: ${address} is in use by another program\n`);
});

test("every problem of gateway.yaml is told with file, line and column", async () => {
  const file = join(folder, "bad-gateway.yaml");
  await writeFile(file, "listen: 127.0.0.1:0\nlimts: {}\nshutdown:\n  drain: 5\n");
  const ended = await cli("serve", "--config", file);
  expect(ended.code).toBe(2);
  expect(ended.stderr).toMatch(/ {2}bad-gateway\.yaml:2:1: .*`limts`.*"limits"/);
  expect(ended.stderr).toMatch(/ {2}bad-gateway\.yaml:4:\d+: .*drain/);
});

test("SIGTERM lets a running call end before the gateway does", PATIENT, async () => {
  const { promise: answered, resolve: answer } = deferred<void>();
  const { promise: asked, resolve: ask } = deferred<void>();
  const slow = createServer((_request, response) => {
    ask();
    response.writeHead(200, { "content-type": "application/json" });
    void answered.then(() => response.end('{"done":true}'));
  });
  await new Promise<void>((done) => slow.listen(0, "127.0.0.1", done));
  const tools = join(folder, "slow-tools");
  await mkdir(tools);
  await writeFile(
    join(tools, "slow.yaml"),
    `name: slow\ndescription: 慢速工具 a slow tool\ntype: http\nmethod: GET\nendpoint: http://127.0.0.1:${(slow.address() as AddressInfo).port}/\n`,
  );
  await using server = startToolgate(
    ["serve", "--tools", tools, "--state", join(folder, "slow-state"), "--listen", "127.0.0.1:0"],
    { env: { HOME: folder } },
  );
  const [, port] = await server.output("stderr", /"url":"http:\/\/127\.0\.0\.1:(\d+)"/);
  const call = toolgate(["tool", "call", "slow", "--address", `127.0.0.1:${port}`]);
  await asked;
  server.child.kill("SIGTERM");
  await server.output("stderr", /gateway-stopping/);
  answer();
  expect(await call).toMatchObject({ code: 0, stdout: '{\n  "done": true\n}\n' });
  expect((await server.ended).code).toBe(0);
  slow.close();
});
