import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { CallResponse } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { type Tool, ToolState } from "../../gen/toolgate/v1/tool_pb.ts";
import { createGatewayClient, type GatewayClient } from "../e2e/gateway-client.ts";
import { type GatewayProcess, startGateway } from "../e2e/gateway-process.ts";

/** By this variable a process is known as one that a server of this gateway started. */
const MARK = "TOOLGATE_SERVERS_MARK";

/** Longest wait for what a server does when it starts; a machine that is busy takes its time. */
const START_MS = 90_000;

/** How long a gateway may take to end: what its servers take, and a machine that is busy. */
const STOP_MS = 60_000;

/** How long a server that will not end may take to be ended: its input, TERM, KILL. */
const END_MS = 15_000;

/** The block `mcp` of a declaration, and further keys of it. */
export interface DeclaredServer {
  readonly mcp: Readonly<Record<string, unknown>>;
  readonly keys?: Readonly<Record<string, unknown>>;
}

/** A gateway over real servers. */
export interface ServerBed extends AsyncDisposable {
  readonly client: GatewayClient;
  readonly gateway: GatewayProcess;
  /** A server's tools, once they can be called. */
  tools(server: string): Promise<readonly Tool[]>;
  /** The revision that is spoken with a server, once it is ready. */
  protocol(server: string): Promise<string>;
  /** What the gateway says of a server's tools that are not there, once it says it. */
  problem(server: string): Promise<string>;
  call(name: string, args?: Readonly<Record<string, unknown>>): Promise<CallResponse>;
  /** Ends the gateway as an operator does; resolves with the processes that are left. */
  end(): Promise<readonly string[]>;
}

/** Starts a gateway with one declaration file for each server. */
export async function startBed(
  servers: Readonly<Record<string, DeclaredServer>>,
  env: Readonly<Record<string, string>> = {},
): Promise<ServerBed> {
  const mark = randomUUID();
  const tools = Object.entries(servers).map(([name, { mcp, keys }]): [string, string] => {
    const block = "url" in mcp ? mcp : { ...mcp, env: { ...Object(mcp["env"]), [MARK]: mark } };
    return [`${name}.yaml`, JSON.stringify({ name, type: "mcp", ...keys, mcp: block })];
  });
  const gateway = await startGateway({ tools: Object.fromEntries(tools), env });
  const client = createGatewayClient(gateway.port);
  const list = async () => client.service.list({ pageSize: 1_000 });
  return {
    client,
    gateway,
    async tools(server) {
      return until(`${server} to have tools`, async () => {
        const own = (await list()).tools.filter(({ name }) => name.startsWith(`${server}/`));
        return own.length > 0 && own.every(({ state }) => state === ToolState.READY) ? own : undefined;
      });
    },
    async protocol(server) {
      const ready = new RegExp(`"tool":"${server}","protocol":"([0-9-]+)"`);
      return until(`${server} to be ready`, async () => ready.exec(gateway.output())?.[1]);
    },
    async problem(server) {
      return until(`a problem of ${server}`, async () => {
        const { problems } = await list();
        // While it starts, that is all there is to say.
        return problems.find(({ source, message }) => source === `server:${server}` && !message.endsWith("starting"))
          ?.message;
      });
    },
    call: (name, args = {}) => client.call(name, args),
    async end() {
      client[Symbol.dispose]();
      const stopped = gateway.stop("SIGTERM");
      const late = delay(STOP_MS).then(() =>
        Promise.reject(new Error(`it did not stop:\n${gateway.output().slice(-4_000)}`)),
      );
      await Promise.race([stopped, late]);
      const endMs = Date.now() + END_MS;
      let left = await marked(mark);
      while (left.length > 0 && Date.now() < endMs) {
        await delay(100);
        left = await marked(mark);
      }
      return left;
    },
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const endMs = Date.now() + START_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== "") return found;
    if (Date.now() > endMs) throw new Error(`waited ${START_MS} ms for ${what}`);
    await delay(100);
  }
}

/** Command lines of the processes that have the mark. */
async function marked(mark: string): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const read = (file: string): Promise<string> => readFile(join("/proc", pid, file), "utf8").catch(() => "");
      const environment = await read("environ");
      return environment.includes(`${MARK}=${mark}`) ? `${pid} ${(await read("cmdline")).replaceAll("\0", " ")}` : "";
    }),
  );
  return found.filter((line) => line !== "");
}
