import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Effect } from "../../gen/toolgate/v1/errors_pb.ts";
import { type GatewayProcess, startGateway } from "./gateway-process.ts";
import { type RecordingUpstream, startRecordingUpstream } from "./recording-upstream.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";
import { WIRE_CLIENT_NAMES, WIRE_CLIENTS, type WireClient, type WireClientName } from "./wire-clients.ts";

/** The promise is 100 ms, and half of all calls keep it; one may wait for a machine under load. The figures are printed. */
const ALLOWED_MS = 2_000;
const PROMISED_MS = 100;
/** How many times as long as a call that does nothing the end of one may take where the machine is busy. */
const TURNS = 10;
const MEASURED = { retry: 2, timeout: START_TIMEOUT_MS };

/** Long enough for a call to reach the upstream first, also on a machine under load. */
const DEADLINE_MS = 1_500;

const running = new AsyncDisposableStack();
let upstream: RecordingUpstream;
let gateway: GatewayProcess;
const figures: string[] = [];
const measured: number[] = [];
/** What a call that does nothing took, each time that something was measured. */
const turnsMs: number[] = [];

beforeAll(async () => {
  upstream = running.use(await startRecordingUpstream());
  const declare = (name: string, extra: string): string =>
    `name: ${name}\ndescription: 取消与期限的测试工具 for the test of cancel and deadline\ntype: http\n` +
    `endpoint: http://127.0.0.1:${upstream.port}/${name}\nmethod: GET\n${extra}`;
  const tools = {
    "hang.yaml": declare("hang", ""),
    "hang_post.yaml": declare("hang_post", "").replace("GET", "POST"),
    "drip.yaml": declare("drip", "delivery: incremental\n"),
  };
  gateway = running.use(await startGateway({ tools }));
}, START_TIMEOUT_MS);

afterAll(async () => {
  await running.disposeAsync();
  console.log(`upstream connection closed after\n${figures.join("\n")}`);
});

interface Running {
  /** Settles when the client's side of the call has ended. */
  readonly ended: Promise<unknown>;
  /** Resolves when the call has reached the upstream, and for a stream its first output has come back. */
  readonly underWay: Promise<void>;
}

/** Starts a call of `tool`; its end, whatever it is, is in `ended`. */
function start(client: WireClient, tool: string, options: { signal?: AbortSignal; timeoutMs?: number }): Running {
  if (tool !== "drip") {
    return { ended: settle(client.call({ name: tool }, options)), underWay: Promise.resolve() };
  }
  let arrived: () => void = () => undefined;
  const underWay = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const read = async (): Promise<void> => {
    for await (const message of client.callStream({ name: tool }, options)) {
      if (message.event.case === "output") arrived();
    }
  };
  return { ended: settle(read()), underWay };
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  const iterator = stream[Symbol.asyncIterator]();
  while ((await iterator.next()).done !== true);
}

async function settle(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    return error;
  }
}

async function record(what: string, sinceMs: number): Promise<number> {
  using client = WIRE_CLIENTS["grpc-js over gRPC"](gateway.port);
  const beganMs = performance.now();
  await client.call({ name: "hang", validateOnly: true });
  turnsMs.push(performance.now() - beganMs);
  figures.push(`${sinceMs.toFixed(1).padStart(7)} ms  ${what}`);
  measured.push(sinceMs);
  return sinceMs;
}

describe.each(WIRE_CLIENT_NAMES)("%s", (name: WireClientName) => {
  test.each(["hang", "hang_post", "drip"])(
    "a cancelled call of %s closes its upstream connection [G-D02]",
    MEASURED,
    async (tool) => {
      using client = WIRE_CLIENTS[name](gateway.port);
      const abort = new AbortController();
      const call = start(client, tool, { signal: abort.signal });
      const request = await upstream.nextRequest();
      await call.underWay;
      const cancelledAt = performance.now();
      abort.abort();
      expect(await record(`${name}, cancel, ${tool}`, (await request.closed) - cancelledAt)).toBeLessThan(ALLOWED_MS);
      await call.ended;
    },
  );

  test.each(["hang", "hang_post", "drip"])(
    "the deadline of a call of %s closes its upstream connection [G-D01, R-D08]",
    MEASURED,
    async (tool) => {
      using client = WIRE_CLIENTS[name](gateway.port);
      const dueAt = performance.now() + DEADLINE_MS;
      const call = start(client, tool, { timeoutMs: DEADLINE_MS });
      const request = await upstream.nextRequest();
      const late = (await request.closed) - dueAt;
      expect(await record(`${name}, deadline, ${tool}`, late)).toBeLessThan(ALLOWED_MS);
      // Not before it either: the caller was promised this time.
      expect(late).toBeGreaterThan(-100);
      expect(await call.ended).toMatchObject({ code: 4 });
    },
  );

  test.each(["hang", "drip"])(
    "a client process that is killed in a call of %s closes its upstream connection [G-D02]",
    MEASURED,
    async (tool) => {
      const child = startCaller(name, tool);
      const request = await upstream.nextRequest();
      if (tool === "drip") await once(child, "message");
      const killedAt = performance.now();
      child.kill("SIGKILL");
      expect(await record(`${name}, killed, ${tool}`, (await request.closed) - killedAt)).toBeLessThan(ALLOWED_MS);
    },
  );
});

test.each(["hang", "drip"])(
  "the limit inside the invocation ends a call of %s as the RPC deadline does",
  MEASURED,
  async (tool) => {
    using client = WIRE_CLIENTS["grpc-js over gRPC"](gateway.port);
    const startedAt = performance.now();
    const invocation = { name: tool, timeout: durationFromMs(DEADLINE_MS) };
    const ended = settle(tool === "hang" ? client.call(invocation) : drain(client.callStream(invocation)));
    const request = await upstream.nextRequest();
    expect(await record(`invocation.timeout, ${tool}`, (await request.closed) - startedAt - DEADLINE_MS)).toBeLessThan(
      ALLOWED_MS,
    );
    expect(await ended).toMatchObject({ code: 4 });
  },
);

test("after all this the gateway still answers and holds no call", async () => {
  using client = WIRE_CLIENTS["connect-node over gRPC"](gateway.port);
  const { result, stats } = await client.call({ name: "hang", validateOnly: true });
  expect(result).toBeUndefined();
  expect(stats?.effect).toBe(Effect.NONE);
});

test("the log says whose limit ended a call [G-D01]", async () => {
  await expect
    .poll(() => gateway.output(), { timeout: 10_000 })
    .toMatch(/"reason":"CALL_DEADLINE_EXCEEDED"[^\n]*"limit":"rpc"[^\n]*tool-call-end/);
  expect(gateway.output()).toMatch(/"limit":"invocation"[^\n]*tool-call-end/);
});

function startCaller(client: WireClientName, tool: string): ChildProcess {
  const child = fork(fileURLToPath(new URL("caller.ts", import.meta.url)), [client, String(gateway.port), tool]);
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
  return child;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

test("the typical call is ended at its upstream within the promised 100 ms", () => {
  expect(measured.length).toBeGreaterThan(30);
  const busyMs = median(turnsMs) * TURNS;
  expect(median(measured)).toBeLessThan(Math.max(PROMISED_MS, busyMs));
});
