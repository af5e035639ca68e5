import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { DeclarationProblem } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { toolgate } from "./cli-process.ts";
import { type EchoUpstream, startEchoUpstream } from "./echo-upstream.ts";
import { createGatewayClient, type GatewayClient, reasonOf } from "./gateway-client.ts";
import { type GatewayProcess, startGateway } from "./gateway-process.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";

/** Of those secrets that travel in other forms too. */
const SECRET = "sk-live-0123456789+/abcdef";
const FORMS = [SECRET, encodeURIComponent(SECRET), Buffer.from(SECRET).toString("base64")];
/** Default of `limits.response_bytes`. */
const RESPONSE_BYTES = 16 * 2 ** 20;

const running = new AsyncDisposableStack();
let upstream: EchoUpstream;
let process_: GatewayProcess;
let gateway: GatewayClient;
let problems: readonly DeclarationProblem[];

const DESCRIPTION = "description: 用于检查真实案例 holds a case from the field\n";

/** A declaration of a tool that answers as the first part of its path says. */
function declare(name: string, more = "", path = `echo/${name}`): string {
  return `name: ${name}\n${DESCRIPTION}type: http\nendpoint: http://127.0.0.1:${upstream.port}/${path}\n${more}`;
}

function refused(): Readonly<Record<string, string>> {
  const names = [..."abcdefghi"];
  const entries = (i: number): string[] => Array.from({ length: 9 }, () => (i === 0 ? "x" : `*${names[i - 1]}`));
  const bomb = names.map((name, i) => `  ${name}: &${name} [${entries(i).join(", ")}]\n`).join("");
  return {
    twice: declare("twice", "method: GET\nmethod: DELETE\n"),
    several: `${declare("several")}---\n${declare("several_too")}`,
    tab: declare("tab", "retry:\n\tmax_retries: 3\n"),
    aliases: declare("aliases").replace(DESCRIPTION, `description:\n${bomb}`),
    unquoted: declare("unquoted", "method: POST\nparams: [{name: id, type: string}]\nrequest_body: {id: {id}}\n"),
    placeholder: declare("placeholder", "params: []\n", "echo/placeholder/{id}"),
    host: declare("host", "params: [{name: tenant, type: string, required: true}]\n").replace(
      "127.0.0.1:",
      "{tenant}.127.0.0.1:",
    ),
  };
}

function accepted(): Readonly<Record<string, string>> {
  const post = "method: POST\n";
  const auth = "auth: {header_name: Authorization, secret_ref: ORDER_API_TOKEN, prefix: Bearer}\n";
  return {
    plain: declare("plain"),
    batch: declare(
      "batch",
      `${post}params:\n  - {name: batch, type: string, enum: [1e3, 2e3], default: 1e3}\nrequest_body: {batch: $batch}\n`,
    ),
    zeros: declare(
      "zeros",
      `${post}params:\n  - {name: branch_code, type: string, default: 007}\n  - {name: order, type: string, default: SO20241001}\n` +
        '  - {name: mode, type: string, enum: [0o755, "0o644"]}\n',
    ),
    digits: declare(
      "digits",
      `${post}params:\n  - {name: seller_id, type: integer, default: 871234567890123457, maximum: 9223372036854775807}\n` +
        "request_body: {seller: $seller_id}\n",
    ),
    windows: `\ufeff${declare("windows").replace(DESCRIPTION, "description: |\n  查询订单的状态\n  以及物流信息\n").replaceAll("\n", "\r\n")}`,
    merged: `x-net: &net {timeout: {connect: 1s, read: 2s}}\n${declare("merged", "<<: *net\n", "silent/merged")}`,
    needed: declare("needed", "params: [{name: id, type: string, required: true}]\n", "echo/needed/{id}"),
    dripping: declare("dripping", "timeout: {read: 1s, total: 3s}\n", "dripping"),
    stuck: declare("stuck", "timeout: {read: 1s, total: 3s}\n", "stuck"),
    silent: declare("silent", "timeout: {read: 1s, total: 3s}\n", "silent"),
    announced: declare("announced", "", "announced"),
    endless: declare("endless", "", "endless"),
    ...Object.fromEntries(
      ["echo", "failing", "broken", "reset", "silent"].map((kind) => [
        `secret_${kind}`,
        declare(`secret_${kind}`, `${auth}timeout: {read: 1s}\n`, `${kind}/secret`),
      ]),
    ),
    secret_refused: declare("secret_refused", auth).replace(/127\.0\.0\.1:\d+/, "127.0.0.1:1"),
  };
}

beforeAll(async () => {
  upstream = running.use(await startEchoUpstream());
  const tools = Object.entries({ ...refused(), ...accepted() }).map(([name, text]) => [`${name}.yaml`, text]);
  const env = { ORDER_API_TOKEN: SECRET };
  process_ = running.use(
    await startGateway({ tools: Object.fromEntries(tools), env, config: "log: { level: debug }\n" }),
  );
  gateway = running.use(createGatewayClient(process_.port));
  problems = (await gateway.service.list({})).problems;
}, START_TIMEOUT_MS);

afterAll(async () => {
  await running.disposeAsync();
});

/** Each reported problem of a file as `line: message`. */
function problemsOf(name: string): string[] {
  return problems
    .filter(({ source, note }) => source === `file:${name}.yaml` && !note)
    .map(({ line, message }) => `${line}: ${message}`);
}

async function errorOf(name: string, args: Readonly<Record<string, unknown>> = {}): Promise<ConnectError> {
  try {
    await gateway.call(name, args);
  } catch (error) {
    return ConnectError.from(error);
  }
  throw new Error(`${name} can be called`);
}

/** The file is reported as said, its tools are not there, nothing was sent, and others answer. */
async function expectRefused(name: string, report: RegExp, tools = [name]): Promise<void> {
  expect(problemsOf(name)).toEqual([expect.stringMatching(report)]);
  for (const tool of tools) expect(reasonOf(await errorOf(tool, { id: "7" }))).toBe("TOOL_NOT_FOUND");
  expect(upstream.last(name)).toBeUndefined();
  expect((await gateway.call("plain")).result?.failure).toBeUndefined();
}

async function bodyOf(name: string, argumentsJson = "{}"): Promise<string | undefined> {
  await gateway.service.call({ invocation: { name, arguments: { case: "argumentsJson", value: argumentsJson } } });
  return upstream.last(name)?.body;
}

/** The bytes of a CallRequest whose Struct nests lists; no library writes one that deep. */
function callWithStruct(tool: string, argument: string, depth: number): Buffer {
  const field = (number: number, ...parts: readonly Buffer[]): Buffer => {
    const length: number[] = [];
    const body = Buffer.concat(parts);
    for (let rest = body.length; length.length === 0 || rest > 0; rest >>= 7)
      length.push((rest & 127) | (rest > 127 ? 128 : 0));
    return Buffer.concat([Buffer.from([(number << 3) | 2, ...length]), body]);
  };
  let value = field(6);
  for (let i = 0; i < depth; i++) value = field(6, field(1, value));
  const entry = field(1, field(1, Buffer.from(argument)), field(2, value));
  return field(1, field(1, Buffer.from(tool)), field(3, entry));
}

test("a file with a key written twice is refused, and neither method is sent [Y-D01]", async () => {
  await expectRefused("twice", /^6: key `method` is written twice, on lines 5 and 6/);
});

test("a file with two documents gives no tool at all, and says so [Y-D06]", async () => {
  await expectRefused("several", /^5: .*multi-document files are not supported/, ["several", "several_too"]);
});

test("a file with a tab as indentation is refused by its line [Y-D07]", async () => {
  await expectRefused("tab", /^6: a tab as indentation/);
});

test("a file whose aliases blow up is refused and holds up nobody [Y-D08]", async () => {
  await expectRefused("aliases", /^1: with its aliases written out the document is longer than 1 MiB/);
});

test("a file with a template without quotes is refused with the mend [Y-D14]", async () => {
  await expectRefused("unquoted", /^7: `request_body\.id` is a mapping here, not text: quote the template, "\{id\}"/);
});

test("a placeholder without a parameter is refused at load, a call without its argument before anything is sent [T-D05]", async () => {
  await expectRefused("placeholder", /^4: `\{id\}` names no parameter/);
  const error = await errorOf("needed");
  expect(reasonOf(error)).toBe("ARGUMENTS_INVALID");
  expect(error.rawMessage).toContain("needed");
  expect(upstream.last("needed")).toBeUndefined();
});

test("a parameter in the host is refused at load [T-D08]", async () => {
  await expectRefused("host", /^4: `endpoint`: scheme, host and port must be fixed text/);
});

test("1e3 reaches the upstream as text [Y-D02]", async () => {
  expect(await bodyOf("batch")).toBe('{"batch":"1e3"}');
});

test("007 is listed and sent as text, and 0o755 stays what it is [Y-D03]", async () => {
  const { tool } = await gateway.service.get({ name: "zeros" });
  expect(JSON.parse(tool?.inputSchemaJson ?? "").properties).toMatchObject({
    branch_code: { default: "007" },
    mode: { enum: ["0o755", "0o644"] },
  });
  expect(await bodyOf("zeros", '{"mode":"0o755"}')).toBe('{"mode":"0o755","branch_code":"007","order":"SO20241001"}');
});

test("the upstream gets every digit of a 64-bit integer, from the file and from the call [Y-D04, A-D03]", async () => {
  expect(await bodyOf("digits")).toBe('{"seller":871234567890123457}');
  expect(await bodyOf("digits", '{"seller_id":871234567890123459}')).toBe('{"seller":871234567890123459}');
});

test("arguments that are nested too deep are refused in either form, and the gateway lives [X-D06]", async () => {
  const json = `{"seller_id":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
  const refusal = await bodyOf("digits", json).catch((error: unknown) => error);
  expect(reasonOf(refusal)).toBe("ARGUMENTS_MALFORMED");
  const answer = await fetch(`http://127.0.0.1:${process_.port}/toolgate.v1.ToolGatewayService/Call`, {
    method: "POST",
    headers: { "content-type": "application/proto" },
    body: callWithStruct("digits", "seller_id", 5_000),
  });
  expect(answer.status).toBe(400);
  expect(await answer.text()).toContain("REQUEST_INVALID");
  expect(await bodyOf("digits")).toBe('{"seller":871234567890123457}');
});

test("a file as Windows saves it is listed without a trace of that, and works [Y-D05]", async () => {
  const { tool } = await gateway.service.get({ name: "windows" });
  expect(tool?.description).toBe("查询订单的状态\n以及物流信息\n");
  expect((await gateway.call("windows")).result?.failure).toBeUndefined();
});

test("a limit that is merged in from an anchor ends the call [Y-D09]", async () => {
  const error = await errorOf("merged");
  expect(reasonOf(error)).toBe("UPSTREAM_TIMEOUT");
  expect(error.rawMessage).toContain("2000 ms (timeout.read)");
});

test("an upstream that is silent, stuck or drips is ended by the limit the error names [U-D11]", async () => {
  const [silent, stuck, dripping] = await Promise.all([errorOf("silent"), errorOf("stuck"), errorOf("dripping")]);
  expect([silent.rawMessage, stuck.rawMessage, dripping.rawMessage]).toEqual([
    expect.stringContaining("1000 ms (timeout.read)"),
    expect.stringContaining("1000 ms (timeout.idle)"),
    expect.stringContaining("3000 ms, which is the tool's"),
  ]);
});

test("of several calls at once one that times out fails alone [S2-117]", async () => {
  const calls = ["plain", "silent", "plain"].map((name) => gateway.call(name));
  const outcomes = await Promise.allSettled(calls);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  const reasons = outcomes.map((outcome) => (outcome.status === "rejected" ? reasonOf(outcome.reason) : undefined));
  expect(reasons).toEqual([undefined, "UPSTREAM_TIMEOUT", undefined]);
});

test.skipIf(process.platform !== "linux")(
  "answers of 2 GB end at the limit, in bounded memory, while other calls go on [U-D06]",
  { timeout: START_TIMEOUT_MS },
  async () => {
    const residentBytes = async (): Promise<number> => {
      const status = await readFile(`/proc/${process_.pid}/status`, "utf8");
      return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
    };
    const before = await residentBytes();
    let most = before;
    const done = new AbortController();
    const watching = (async () => {
      while (!done.signal.aborted) {
        most = Math.max(most, await residentBytes());
        await delay(10);
      }
    })();
    for (const name of ["announced", "endless"]) {
      const big = Promise.all(Array.from({ length: 4 }, () => errorOf(name)));
      expect((await gateway.call("plain")).result?.failure).toBeUndefined();
      for (const error of await big) {
        expect(reasonOf(error)).toBe("RESULT_TOO_LARGE");
        expect(error.rawMessage).toContain(`larger than the limit of ${RESPONSE_BYTES} bytes`);
      }
    }
    done.abort();
    await watching;
    expect(most - before).toBeLessThan(4 * RESPONSE_BYTES + 100e6);
  },
);

test("whatever goes wrong with an upstream, no answer, error, list, examination or log holds the secret [K-D01, S2-47]", async () => {
  const answers: unknown[] = [];
  for (const kind of ["echo", "failing", "broken", "reset", "silent", "refused"]) {
    const invocation = { name: `secret_${kind}`, explain: true };
    const call = gateway.service.call({ invocation }).catch((error: unknown) => ConnectError.from(error));
    answers.push(await call);
  }
  expect(upstream.last("secret")?.headers.authorization).toBe(`Bearer ${SECRET}`);
  answers.push(await gateway.service.list({}));
  answers.push(await toolgate(["doctor"], { env: { TOOLGATE_ADDRESS: `127.0.0.1:${process_.port}` } }));
  const texts = [process_.output(), ...answers.map(everything)];
  expect(texts[0]).toContain("secret_reset");
  for (const text of texts) for (const form of FORMS) expect(text).not.toContain(form);
});

/** All that an answer or an error holds, details and their bytes included. */
function everything(value: unknown): string {
  if (value instanceof ConnectError) return [value.message, value.stack, bytesAsText(value.details)].join("\n");
  return bytesAsText(value);
}

function bytesAsText(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner === "bigint") return String(inner);
    return inner instanceof Uint8Array ? Buffer.from(inner).toString("utf8") : inner;
  });
}
