import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { startEchoUpstream } from "../e2e/echo-upstream.ts";
import { createGatewayClient } from "../e2e/gateway-client.ts";
import { startGateway } from "../e2e/gateway-process.ts";
import { type RawSocket, rawSocket } from "../service/raw.ts";
import type { Dice } from "./dice.ts";
import { makeHttp1 } from "./http1-bytes.ts";
import { makeHttp2 } from "./http2-bytes.ts";
import { type FuzzTarget, holds, Outcomes } from "./target.ts";

/** Connections that are open at the same time. */
export interface SocketInput {
  readonly connections: readonly {
    /** Bytes as Latin-1, each piece written by itself. */
    readonly writes: readonly string[];
    /** How the peer leaves: in order, or in the middle of things. */
    readonly leaves: "end" | "reset" | "destroy";
  }[];
}

const MIB = 2 ** 20;

/** Inputs between two calls of the well-behaved client. */
const WITNESS_EVERY = 20;

/** How long an answer is waited for, in milliseconds; many a peer would wait for ever. */
const ANSWER_MS = 60;

/** Further time after its first bytes. */
const REST_MS = 5;

/** Time for a call of the well-behaved client on a machine that is busy, in milliseconds. */
const WITNESS_MS = 20_000;

/** Resident memory that may be added: code that is compiled, heap that is not yet collected. */
const MAX_GROWTH_BYTES = 200 * MIB;

/** Throws bytes at the port of a gateway in a process of its own, beside a client that behaves well. */
export async function openSocket(): Promise<FuzzTarget<SocketInput>> {
  const upstream = await startEchoUpstream();
  let victim = await startVictim(upstream.port);
  const outcomes = new Outcomes();
  let inputs = 0;
  return {
    outcomes,
    // What the gateway says of an input may come after the next one.
    shrinks: false,
    make: makeInput,
    async check(input) {
      if (!victim.alive()) {
        // The input before ended it.
        await victim[Symbol.asyncDispose]();
        victim = await startVictim(upstream.port);
      }
      await Promise.all(input.connections.map((connection) => attack(victim.port, connection, outcomes)));
      victim.look();
      if (++inputs % WITNESS_EVERY === 0) outcomes.most("slowest-witness-ms", await victim.witness());
    },
    settle: () => victim.settle(outcomes),
    residentBytes: () => victim.residentBytes(),
    async [Symbol.asyncDispose]() {
      await victim[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

function makeInput(dice: Dice): SocketInput {
  return {
    connections: dice.some(1, 8, () => ({
      writes: dice.oneIn(2) ? makeHttp1(dice) : makeHttp2(dice),
      leaves: dice.pick(["end", "reset", "destroy"]),
    })),
  };
}

async function attack(port: number, connection: SocketInput["connections"][number], outcomes: Outcomes): Promise<void> {
  using raw = await rawSocket(port);
  for (const piece of connection.writes) {
    raw.socket.write(piece, "latin1");
    await nextTurn();
  }
  if (connection.leaves === "end") raw.socket.end();
  await Promise.race([raw.closed, answered(raw).then(() => delay(REST_MS)), delay(ANSWER_MS)]);
  if (connection.leaves === "reset") raw.socket.resetAndDestroy();
  const text = raw.text();
  outcomes.count(
    text === ""
      ? "unanswered"
      : text.startsWith("HTTP/1.1 2")
        ? "http1-ok"
        : text.startsWith("HTTP/1.1 ")
          ? "http1-refused"
          : "http2",
  );
  if (!text.startsWith("HTTP/")) return;
  holds(/^HTTP\/1\.1 [1-5]\d\d /.test(text), "an answer begins with a status", text.slice(0, 100));
  holds(!text.includes('"code":"internal"'), "what a peer sends is no fault of the gateway", text.slice(0, 1_000));
}

function answered({ socket }: RawSocket): Promise<void> {
  return new Promise((resolve) => socket.once("data", () => resolve()));
}

/** A gateway under attack. */
interface Victim extends AsyncDisposable {
  readonly port: number;
  alive(): boolean;
  residentBytes(): number;
  /** @throws Finding where the process is gone or wrote of a fault. */
  look(): void;
  /** A call of the client that behaves well. Resolves with the milliseconds it took. */
  witness(): Promise<number>;
  /** Waits until everything is freed. */
  settle(outcomes: Outcomes): Promise<void>;
}

async function startVictim(upstreamPort: number): Promise<Victim> {
  const tool = `name: echo\ndescription: Answers with what it was asked\ntype: http\nmethod: GET\nendpoint: http://127.0.0.1:${upstreamPort}/echo\ninput_schema: { type: object }\n`;
  const gateway = await startGateway({ tools: { "echo.yaml": tool } });
  const client = createGatewayClient(gateway.port);
  // What is loaded and compiled at the first calls is no growth.
  for (let i = 0; i < 100; i++) await client.call("echo");
  const before = { bytes: residentBytes(gateway.pid), sockets: openSockets(gateway.pid) };
  const alive = (): boolean => isAlive(gateway.pid);
  let looked = 0;
  const look = (): void => {
    const output = gateway.output();
    const news = output.slice(looked);
    looked = output.lastIndexOf("\n") + 1;
    checkLog(news);
    holds(alive(), "the process survives", output.slice(-2_000));
  };
  const witness = async (): Promise<number> => {
    const startMs = performance.now();
    const call = client.call("echo").then(
      () => "answered",
      (error: unknown) => `failed: ${String(error)}`,
    );
    const outcome = await Promise.race([call, delay(WITNESS_MS, "nothing")]);
    look();
    holds(outcome === "answered", "a client that behaves well is served", { outcome });
    return performance.now() - startMs;
  };
  return {
    port: gateway.port,
    alive,
    look,
    residentBytes: () => residentBytes(gateway.pid),
    witness,
    async settle(outcomes) {
      await witness();
      let left = openSockets(gateway.pid) - before.sockets;
      for (let i = 0; i < 300 && left > 2; i++) {
        await delay(100);
        left = openSockets(gateway.pid) - before.sockets;
      }
      const growth = residentBytes(gateway.pid) - before.bytes;
      outcomes.most("growth-MiB", growth / MIB);
      outcomes.most("sockets-left", left);
      holds(left <= 2, "sockets of peers that left are closed", { left });
      holds(growth < MAX_GROWTH_BYTES, "memory comes back", { growth });
      look();
    },
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

function checkLog(lines: string): void {
  const fault = /^.*"level":"error".*$|^.*(?:unhandled|uncaught).*$/im.exec(lines)?.[0];
  holds(fault === undefined, "nothing a peer sends is an error in the log", fault);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false;
    throw error;
  }
}

function residentBytes(pid: number): number {
  if (process.platform !== "linux" || !isAlive(pid)) return 0;
  return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096;
}

/** 0 where the system does not tell. */
function openSockets(pid: number): number {
  if (process.platform !== "linux") return 0;
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((fd) => linkOf(`${folder}/${fd}`).startsWith("socket:")).length;
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch (error) {
    // Closed since the folder was read.
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}
