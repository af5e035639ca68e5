import { readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { toolgate } from "./cli-process.ts";
import { createGatewayClient, type GatewayClient, reasonOf, textOf, valueOf } from "./gateway-client.ts";
import { type GatewayProcess, startGateway } from "./gateway-process.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";

const SECRET = "sk-live-0123456789abcdef";

/** A script tool that runs in a folder beside the tools and notes its process in `NAME.pids`. */
function script(name: string, text: string, keys: Readonly<Record<string, unknown>> = {}): Record<string, string> {
  const noted = `echo $$ >> ${name}.pids\n${text}`.replaceAll("{", "{{").replaceAll("}", "}}");
  const declaration = {
    name,
    description: "用于检查脚本进程的工具 shows what becomes of a script's process",
    type: "script",
    command: "sh",
    args: ["-c", noted],
    cwd: "../work",
    ...keys,
  };
  return { [`${name}.yaml`]: JSON.stringify(declaration) };
}

const TOOLS = {
  ...script("quick", "echo done"),
  ...script("sleeper", "exec sleep 600"),
  ...script("stubborn", "trap '' TERM; while :; do sleep 0.1; done"),
  ...script("limited", "exec sleep 600", { timeout: { total: "1s" } }),
  ...script("ticks", "while :; do echo tick; sleep 0.02; done", { delivery: "incremental", concurrency_limit: 1 }),
  ...script("flood", "exec yes 0123456789abcdef0123456789abcdef", { delivery: "incremental" }),
  ...script("limits", "echo start >> limits.log; sleep 0.05; echo end >> limits.log", { concurrency_limit: 5 }),
  ...script("leaky", 'echo "$TOKEN"; printf %s "$TOKEN" | base64; printf \'{"a":"%s"}\' "$TOKEN" >&2; exit $CODE', {
    env: { TOKEN: { secret_ref: "ORDER_API_TOKEN" }, CODE: "0" },
  }),
  ...script("leaky_failure", 'echo "$TOKEN"; echo "cannot use $TOKEN" >&2; exit 1', {
    env: { TOKEN: { secret_ref: "ORDER_API_TOKEN" } },
  }),
  ...script("leaky_stream", 'printf sk-live-01234; sleep 0.1; printf "56789abcdef end"; [ "$TOKEN" ]', {
    env: { TOKEN: { secret_ref: "ORDER_API_TOKEN" } },
    delivery: "incremental",
  }),
  ...script(
    "cmdline",
    "tr '\\0' ' ' < /proc/$$/cmdline; tr '\\0' ' ' < /proc/$PPID/cmdline; tr '\\0' '\\n' < /proc/$PPID/environ",
    {
      env: { TOKEN: { secret_ref: "ORDER_API_TOKEN" } },
    },
  ),
  ...script("reader", "cat", {
    stdin: "arguments",
    params: [{ name: "text", type: "string" }],
    result: { format: "text" },
  }),
  ...script("unrunnable", "", { command: "./not-there.sh", args: [] }),
};

const running = new AsyncDisposableStack();
let gateway: GatewayProcess;
let client: GatewayClient;

async function start(config = ""): Promise<GatewayProcess> {
  const env = { ORDER_API_TOKEN: SECRET, DB_PASSWORD: "hunter2hunter2" };
  const started = await startGateway({ tools: TOOLS, env, config });
  await mkdir(join(started.folder, "work"));
  return started;
}

beforeAll(async () => {
  gateway = running.use(await start());
  client = running.use(createGatewayClient(gateway.port));
}, START_TIMEOUT_MS);

afterAll(async () => {
  await running.disposeAsync();
});

/** Processes a tool noted, once there are so many. */
async function pidsOf(name: string, count: number, of = gateway): Promise<number[]> {
  while (true) {
    const lines = linesOf(join(of.folder, "work", `${name}.pids`));
    if (lines.length >= count) return lines.map(Number);
    await delay(5);
  }
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n").slice(0, -1);
  } catch {
    return [];
  }
}

function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return !/^\) [ZX]/.test(stat.slice(stat.lastIndexOf(")")));
  } catch {
    return false;
  }
}

async function gone(pids: readonly number[]): Promise<void> {
  while (pids.some(isAlive)) await delay(5);
}

function call(name: string, options: { readonly timeoutMs?: number; readonly signal?: AbortSignal }): Promise<unknown> {
  return client.service.call({ invocation: { name } }, options).catch((error: unknown) => error);
}

test("the tool's own limit and the caller's deadline end the process [S2-43] [R-D08] [G-D01]", async () => {
  expect(reasonOf(await call("limited", {}))).toBe("CALL_DEADLINE_EXCEEDED");
  await gone(await pidsOf("limited", 1));
  const startMs = performance.now();
  const error = await call("sleeper", { timeoutMs: 500 });
  expect(error).toMatchObject({ code: Code.DeadlineExceeded });
  await gone(await pidsOf("sleeper", 1));
  expect(performance.now() - startMs).toBeLessThan(5_000);
});

test("a cancelled call and a reader that leaves a stream end the process [G-D02]", async () => {
  const before = linesOf(join(gateway.folder, "work", "sleeper.pids")).length;
  const stop = new AbortController();
  const ended = call("sleeper", { signal: stop.signal });
  const pids = await pidsOf("sleeper", before + 1);
  stop.abort();
  expect(ConnectError.from(await ended).code).toBe(Code.Canceled);
  await gone(pids);
  // The second finds the slot free that the first has left.
  for (const count of [1, 2]) {
    for await (const { event } of client.service.callStream({ invocation: { name: "ticks" } })) {
      if (event.case === "output") break;
    }
    await gone(await pidsOf("ticks", count));
  }
});

test("a reader that is slow slows the program down [G-D08]", async () => {
  let outputs = 0;
  const stop = new AbortController();
  const stream = client.service.callStream({ invocation: { name: "flood" } }, { signal: stop.signal });
  const reader = stream[Symbol.asyncIterator]();
  while (outputs === 0) {
    const { event } = (await reader.next()).value ?? {};
    if (event?.case === "output") outputs += 1;
  }
  const [pid] = await pidsOf("flood", 1);
  // `exec` makes the noted process the one that writes.
  const written = (): number => Number(/wchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);
  let before = -1;
  while (written() !== before) {
    before = written();
    await delay(300);
  }
  expect(before).toBeLessThan(16 * 1024 * 1024);
  stop.abort();
  await gone([pid ?? 0]);
});

test("never more processes than `concurrency_limit` run [S-D11]", { timeout: 240_000 }, async () => {
  const files = (): number => readdirSync(`/proc/${gateway.pid}/fd`).length;
  await client.call("limits");
  const before = files();
  await Promise.all(Array.from({ length: 100 }, () => client.call("limits")));
  let now = 0;
  let most = 0;
  for (const word of linesOf(join(gateway.folder, "work", "limits.log"))) {
    now += word === "start" ? 1 : -1;
    most = Math.max(most, now);
  }
  expect(most).toBe(5);
  await expect.poll(files).toBe(before);
});

test("a secret that a program prints is masked, in failures and streams too [K-D04]", async () => {
  const whole = textOf(await client.call("leaky"));
  expect(whole.split("\n").slice(0, 2)).toEqual(["***", expect.stringContaining("***")]);
  const failed = await client.call("leaky_failure");
  expect(failed.result?.failure?.message).toBe("leaky_failure: the program ended with exit code 1: cannot use ***");
  expect(textOf(failed)).toBe("***\n");
  let streamed = "";
  for await (const { event } of client.service.callStream({ invocation: { name: "leaky_stream" } })) {
    if (event.case === "output" && event.value.delta.case === "text") streamed += event.value.delta.value;
  }
  expect(streamed).toBe("*** end");
});

test("no secret stands on a command line, and the launcher knows none [K-D02]", async () => {
  const shown = textOf(await client.call("cmdline"));
  expect(shown).toContain("sh -c");
  expect(shown).toContain("launcher/main");
  expect(shown).not.toMatch(/sk-live|hunter2|\*\*\*|DB_PASSWORD/);
});

test("large arguments reach a program whole [G-D05]", async () => {
  const text = "订单".repeat(200_000);
  expect(JSON.parse(textOf(await client.call("reader", { text })))).toEqual({ text });
});

test("list and doctor say why a program cannot be started [S-D10]", { timeout: START_TIMEOUT_MS }, async () => {
  const env = { TOOLGATE_ADDRESS: `127.0.0.1:${gateway.port}` };
  const reason =
    /unrunnable.*the program cannot be started: `command` \.\/not-there\.sh \(.*not-there\.sh\) does not exist/;
  expect((await toolgate(["tool", "list"], { env })).stdout).toMatch(/unrunnable +unavailable +script/);
  expect((await toolgate(["doctor"], { env })).stdout).toMatch(reason);
  const file = join(gateway.folder, "work", "not-there.sh");
  await writeFile(file, "#!/bin/sh\r\n");
  await chmod(file, 0o755);
  expect((await toolgate(["doctor"], { env })).stdout).toContain("ends with CR LF");
  await writeFile(file, "#!/bin/sh\necho '{\"ok\":true}'\n");
  expect(valueOf(await client.call("unrunnable"))).toEqual({ ok: true });
});

test("a stop ends programs, those that ignore TERM too, within the grace [S-D06]", {
  timeout: START_TIMEOUT_MS,
}, async () => {
  await using own = await start("shutdown: { drain: 0s }\n");
  using caller = createGatewayClient(own.port);
  const ended = caller.call("stubborn").catch(reasonOf);
  const pids = await pidsOf("stubborn", 1, own);
  const startMs = performance.now();
  expect(await own.stop("SIGTERM")).toBe(0);
  expect(performance.now() - startMs).toBeLessThan(8_000);
  expect(pids.some(isAlive)).toBe(false);
  expect(await ended).toBe("GATEWAY_STOPPING");
});

test("a gateway that is killed leaves no program and no launcher behind [S-D06]", {
  timeout: START_TIMEOUT_MS,
}, async () => {
  await using own = await start();
  using caller = createGatewayClient(own.port);
  const calls = ["sleeper", "stubborn", "ticks"].map((name) => caller.call(name).catch(() => undefined));
  const pids = (await Promise.all(["sleeper", "stubborn", "ticks"].map((name) => pidsOf(name, 1, own)))).flat();
  const launchers = pids.map((pid) => {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  });
  expect(new Set(launchers).size).toBe(1);
  await own.stop("SIGKILL");
  await gone([...pids, ...launchers]);
  await Promise.all(calls);
});
