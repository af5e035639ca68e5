import { type Client, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { Effect } from "../../gen/toolgate/v1/errors_pb.ts";
import { type CallStreamResponse, ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { systemClock } from "../../src/core/clock.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Principal } from "../../src/core/principal.ts";
import type { LedgerStore } from "../../src/core/store.ts";
import { createMemoryLedger } from "../../src/stores/memory-ledger.ts";
import { collect, failureOf } from "./clients.ts";
import { completed, type Run, textResult } from "./fake-registry.ts";
import { createKept, grpcClients, PATIENT, recordingLogger, type Served, serve } from "./serve.ts";

const WINDOW = { seconds: 20n, nanos: 0 };
const pay = { name: "pay", requestId: "k1" };

/** Something that waits until a test lets it go on. */
function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { passed: promise, open: () => resolve() };
}

/** A tool of which each run says that it began, waits for its gate even where it is ended, and gives its number. */
function numbered(claims: boolean) {
  const gates: ReturnType<typeof gate>[] = [];
  const signals: AbortSignal[] = [];
  const run: Run = async function* (_call, { key, signal }) {
    if (claims) await key?.claim();
    const own = gate();
    gates.push(own);
    signals.push(signal);
    await own.passed;
    if (signal.aborted && claims) throw new GatewayError("UPSTREAM_ANSWER_LOST", "lost", { effect: "unknown" });
    signal.throwIfAborted();
    yield completed(textResult(`run ${gates.indexOf(own) + 1}`));
  };
  return { run, gates, signals };
}

async function serving(run: Run, options: NonNullable<Parameters<typeof serve>[0]> = {}): Promise<Served> {
  const kept = options.kept ?? createKept();
  const served = await serve({ kept, ...options });
  onTestFinished(async () => {
    await served[Symbol.asyncDispose]();
    await kept[Symbol.asyncDispose]();
  });
  served.registry.add({ name: "pay" }, run);
  return served;
}

/** A call that began, and whose caller cancels it while its tool goes on. */
async function beingEnded({ url }: Served, { signals }: Pick<ReturnType<typeof numbered>, "signals">): Promise<void> {
  const caller = new AbortController();
  const first = grpcClients(url).tools.call({ invocation: pay }, { signal: caller.signal });
  first.catch(() => undefined);
  await expect.poll(() => signals.length, PATIENT).toBe(1);
  caller.abort();
  await expect.poll(() => signals[0]?.aborted, PATIENT).toBe(true);
}

test("a call does not end with one of its key that is being ended, but runs when nothing of that goes on [S2-72]", async () => {
  const tool = numbered(false);
  const logger = recordingLogger();
  const served = await serving(tool.run, { logger });
  const { tools } = grpcClients(served.url);
  await beingEnded(served, tool);
  const messages = [1, 2].map(() => tools.callStream({ invocation: pay })[Symbol.asyncIterator]());
  // It is under way, and can be resumed or joined, while it waits.
  for (const stream of messages) expect((await stream.next()).value?.event.case).toBe("started");
  expect(tool.gates).toHaveLength(1);
  tool.gates[0]?.open();
  await expect.poll(() => tool.gates.length, PATIENT).toBe(2);
  tool.gates[1]?.open();
  for (const stream of messages) {
    expect((await stream.next()).value?.event).toMatchObject({
      case: "completed",
      value: { result: { content: [{ part: { case: "text", value: "run 2" } }] } },
    });
  }
  await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
  expect(tool.gates).toHaveLength(2);
  const joined = logger.lines.filter(({ fields }) => fields["joined"] !== undefined);
  expect(joined.map(({ message, fields }) => [message, fields["outcome"]])).toEqual([["tool-call-end", "ok"]]);
});

test("where that one may have acted, the call is told so and not run", async () => {
  const tool = numbered(true);
  const served = await serving(tool.run);
  const { tools } = grpcClients(served.url);
  await beingEnded(served, tool);
  const next = failureOf(tools.call({ invocation: pay }));
  tool.gates[0]?.open();
  expect(await next).toMatchObject({ reason: "OUTCOME_UNKNOWN", detail: { effect: Effect.UNKNOWN } });
  expect(tool.gates).toHaveLength(1);
});

test("a call whose time is over before that has ended does not know what it did, and one of other arguments is refused", async () => {
  const tool = numbered(false);
  const served = await serving(tool.run);
  const { tools } = grpcClients(served.url);
  await beingEnded(served, tool);
  const timeout = { seconds: 0n, nanos: 50_000_000 };
  expect(await failureOf(tools.call({ invocation: { ...pay, timeout } }))).toMatchObject({
    reason: "CALL_DEADLINE_EXCEEDED",
    detail: { effect: Effect.UNKNOWN },
  });
  const other = { ...pay, arguments: { case: "argumentsJson", value: '{"amount":2}' } } as const;
  expect(await failureOf(tools.call({ invocation: other }))).toMatchObject({ reason: "REQUEST_ID_REUSED" });
  // The one that gave up has left the place to the next.
  const last = tools.call({ invocation: pay });
  tool.gates[0]?.open();
  await expect.poll(() => tool.gates.length, PATIENT).toBe(2);
  tool.gates[1]?.open();
  expect((await last).result?.content).toMatchObject([{ part: { case: "text", value: "run 2" } }]);
});

/** How requests reach the gateway: by the front that serves gRPC, and by Connect's. */
const FRONTS = {
  grpc: createGrpcTransport,
  connect: createConnectTransport,
} as const satisfies Record<string, (options: { baseUrl: string; httpVersion: "2" }) => Transport>;

/** A connection that can be cut without a word. */
function connect(front: keyof typeof FRONTS, baseUrl: string): Connection {
  const sessionManager = new Http2SessionManager(baseUrl);
  const cut = (): void => sessionManager.abort();
  onTestFinished(cut);
  const transport = FRONTS[front]({ baseUrl, httpVersion: "2", sessionManager });
  return { tools: createClient(ToolGatewayService, transport), cut };
}

interface Connection {
  readonly tools: Client<typeof ToolGatewayService>;
  readonly cut: () => void;
}

/** Begins a stream that can be resumed, and loses its connection with the first message. Returns the call's id. */
async function lostAtOnce({ tools, cut }: Connection, requestId?: string): Promise<string> {
  const invocation = { name: "pay", ...(requestId === undefined ? {} : { requestId }) };
  const stream = tools.callStream({ invocation, resumeWindow: WINDOW })[Symbol.asyncIterator]();
  const first = await stream.next();
  cut();
  await expect(stream.next()).rejects.toBeInstanceOf(ConnectError);
  return first.done !== true && first.value.event.case === "started" ? first.value.event.value.callId : "";
}

describe.each(["grpc", "connect"] as const)("over %s", (front) => {
  test("a stream that is lost as it begins goes on while its tool has said nothing", async () => {
    const tool = numbered(true);
    const served = await serving(tool.run);
    for (const [i, requestId] of [undefined, "k1"].entries()) {
      const callId = await lostAtOnce(connect(front, served.url), requestId);
      await expect.poll(() => tool.gates.length, PATIENT).toBe(i + 1);
      tool.gates[i]?.open();
      expect(await resumed(served, callId)).toBe(`run ${i + 1}`);
    }
  });

  test("so does one that is lost while the record is asked about its key", async () => {
    const tool = numbered(true);
    const asked = gate();
    const found = gate();
    const store = slowToFind(asked.open, found.passed);
    const served = await serving(tool.run, { kept: createKept({}, store) });
    const callId = await lostAtOnce(connect(front, served.url), "k1");
    await asked.passed;
    const rest = resumed(served, callId);
    found.open();
    await expect.poll(() => tool.gates.length, PATIENT).toBe(1);
    tool.gates[0]?.open();
    expect(await rest).toBe("run 1");
  });

  test("so does one that is lost while another call of its key is being ended", async () => {
    const tool = numbered(false);
    const served = await serving(tool.run);
    await beingEnded(served, tool);
    const callId = await lostAtOnce(connect(front, served.url), "k1");
    const rest = resumed(served, callId);
    tool.gates[0]?.open();
    await expect.poll(() => tool.gates.length, PATIENT).toBe(2);
    tool.gates[1]?.open();
    expect(await rest).toBe("run 2");
    expect(tool.gates).toHaveLength(2);
  });

  test("one that is lost before it is known who calls is not begun, and is when it is made again", async () => {
    const tool = numbered(true);
    const asked = gate();
    const known = gate();
    const principal: Principal = { id: "ann", roles: [] };
    const authenticate = async (): Promise<Principal> => {
      asked.open();
      await known.passed;
      return principal;
    };
    const served = await serving(tool.run, { authenticate });
    const { tools, cut } = connect(front, served.url);
    const lost = collect(tools.callStream({ invocation: pay, resumeWindow: WINDOW }));
    lost.catch(() => undefined);
    await asked.passed;
    cut();
    await expect(lost).rejects.toBeInstanceOf(ConnectError);
    known.open();
    const again = collect(connect(front, served.url).tools.callStream({ invocation: pay }));
    await expect.poll(() => tool.gates.length, PATIENT).toBe(1);
    tool.gates[0]?.open();
    expect(textOf((await again).at(-1))).toBe("run 1");
    expect(tool.gates).toHaveLength(1);
  });
});

/** The text of the result of a call that goes on, read on a new connection. */
async function resumed({ url }: Served, callId: string): Promise<string> {
  const { tools } = grpcClients(url);
  const messages = await collect(tools.callStream({ resume: { callId, afterSequence: 0n } }));
  expect(messages.map(({ sequence }) => sequence)).toEqual([1n]);
  return textOf(messages.at(-1));
}

function textOf(message: CallStreamResponse | undefined): string {
  if (message?.event.case !== "completed") return "";
  const [part] = message.event.value.result?.content ?? [];
  return part?.part.case === "text" ? part.part.value : "";
}

/** A ledger's store that says when it is asked, and waits before it answers. */
function slowToFind(asked: () => void, wait: Promise<void>): LedgerStore {
  const store = createMemoryLedger({ clock: systemClock, retentionMs: 60_000, maxEntries: 100, maxBytes: 1_000_000 });
  return {
    ...store,
    find: async (key) => {
      asked();
      await wait;
      return store.find(key);
    },
  };
}
