import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Upstream } from "../../src/core/adapter.ts";
import type { CallContext, ToolCall, UpstreamEvent } from "../../src/core/call.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { silentLogger } from "../../src/core/logger.ts";
import { ANONYMOUS } from "../../src/core/principal.ts";

/** A tool of the adapter under test, and a view of what is behind it. */
export interface TestedTool {
  /** Opens its upstream; called once. The suite disposes it. */
  open(): Promise<Upstream>;
  readonly arguments: JsonObject;
  /** Calls that reached what is behind the adapter so far. */
  reached(): number;
  /** Resolves when a call has reached what is behind the adapter. */
  arrived(): Promise<void>;
  /** Resolves when nothing works for a call behind the adapter any more: every connection closed, every process gone. */
  quiet(): Promise<void>;
}

/** Everything an adapter has to show for the suite. What its parts are is up to the adapter. */
export interface AdapterBench extends AsyncDisposable {
  /** Answers at once. */
  readonly quick: TestedTool;
  /** Takes a call up and never answers; its call may have an effect. */
  readonly silent: TestedTool;
  /** Delivers output, or tells of its progress, without end. */
  readonly endless: TestedTool;
  /** Answers that it failed. */
  readonly failing: TestedTool;
  /** Nothing is behind it. */
  readonly unreachable: TestedTool;
  /** Lacks something it needs, such as a secret. */
  readonly unready: TestedTool;
}

/** Within this a stopped call has to be over behind the adapter too. Ten times the promise, for slow machines. */
const STOP_MS = 1_000;

/** The promises every adapter keeps. `start` makes a bench anew for each test. */
export function describeAdapter(name: string, start: () => Promise<AdapterBench>): void {
  describe(`the ${name} adapter`, () => {
    let bench: AdapterBench;

    beforeEach(async () => {
      bench = await start();
    });

    afterEach(() => bench[Symbol.asyncDispose]());

    describeResults(() => bench);
    describeEnds(() => bench);
    describeState(() => bench);
  });
}

function describeResults(bench: () => AdapterBench): void {
  test("a call ends with exactly one result, which comes last", async () => {
    for (const tool of [bench().quick, bench().failing]) {
      await using upstream = await tool.open();
      const events = await collect(upstream.invoke(toolCall(tool), contextFor()));
      expect(events.filter((event) => event.type === "upstream-result")).toHaveLength(1);
      expect(events.at(-1)?.type).toBe("upstream-result");
      expect(tool.reached()).toBe(1);
    }
  });

  test("a tool that says no gives a failure for the model, and no error", async () => {
    await using upstream = await bench().failing.open();
    const events = await collect(upstream.invoke(toolCall(bench().failing), contextFor()));
    const last = events.at(-1);
    expect(last?.type === "upstream-result" && last.result.failure?.message).toMatch(/\S/);
  });

  test("many calls at once each get their own result", async () => {
    await using upstream = await bench().quick.open();
    const calls = Array.from({ length: 20 }, () => collect(upstream.invoke(toolCall(bench().quick), contextFor())));
    for (const events of await Promise.all(calls)) expect(events.at(-1)?.type).toBe("upstream-result");
    expect(bench().quick.reached()).toBe(20);
  });

  test("an error is a GatewayError and names the tool", async () => {
    for (const tool of [bench().unreachable, bench().unready]) {
      await using upstream = await tool.open();
      const call = toolCall(tool);
      const error = await errorOf(upstream.invoke(call, contextFor()));
      expect(error.message).toContain(call.tool);
      expect(error.message).not.toMatch(/[\r\n]/);
      expect(error.reason).not.toBe("INTERNAL");
      expect(error.effect).toBe("none");
    }
  });

  test("a call that only validates does not reach what is behind the adapter", async () => {
    for (const tool of [bench().quick, bench().silent, bench().unreachable]) {
      await using upstream = await tool.open();
      const events = await collect(upstream.invoke({ ...toolCall(tool), validateOnly: true }, contextFor()));
      expect(events).toEqual([{ type: "upstream-result", result: { content: [], effect: "none" } }]);
      expect(tool.reached()).toBe(0);
    }
  });

  test("a call that is to be explained says what was sent, once", async () => {
    await using upstream = await bench().quick.open();
    const events = await collect(upstream.invoke(toolCall(bench().quick), contextFor({ explain: true })));
    expect(events.filter((event) => event.type === "exchange")).toHaveLength(1);
  });
}

function describeEnds(bench: () => AdapterBench): void {
  test.for(["CALL_CANCELLED", "CALL_DEADLINE_EXCEEDED"] as const)(
    "%s of a call that waits ends it at once and stops the work behind it",
    async (reason) => {
      await using upstream = await bench().silent.open();
      const controller = new AbortController();
      const arrived = bench().silent.arrived();
      const ended = errorOf(upstream.invoke(toolCall(bench().silent), contextFor({ signal: controller.signal })));
      await arrived;
      const quiet = within(STOP_MS, bench().silent.quiet());
      controller.abort(new GatewayError(reason, "stopped by the test"));
      expect(await ended).toMatchObject({ reason, effect: "unknown" });
      await quiet;
    },
  );

  test("a cancel in the middle of output stops the work behind it", async () => {
    await using upstream = await bench().endless.open();
    const controller = new AbortController();
    const reason = new GatewayError("CALL_CANCELLED", "stopped by the test");
    let pieces = 0;
    const read = async (): Promise<void> => {
      for await (const event of upstream.invoke(toolCall(bench().endless), contextFor({ signal: controller.signal }))) {
        if (isOutput(event)) pieces += 1;
        if (pieces === 3) controller.abort(reason);
      }
    };
    await expect(read()).rejects.toMatchObject({ reason: "CALL_CANCELLED" });
    await within(STOP_MS, bench().endless.quiet());
  });

  test("a reader that leaves stops the work behind it", async () => {
    await using upstream = await bench().endless.open();
    for await (const event of upstream.invoke(toolCall(bench().endless), contextFor())) {
      if (isOutput(event)) break;
    }
    await expect(within(STOP_MS, bench().endless.quiet())).resolves.toBeUndefined();
  });

  test("a reader that leaves while it waits stops the work behind it", async () => {
    await using upstream = await bench().silent.open();
    const arrived = bench().silent.arrived();
    const events = upstream.invoke(toolCall(bench().silent), contextFor())[Symbol.asyncIterator]();
    const next = events.next().catch((error: unknown) => error);
    await arrived;
    await within(STOP_MS, Promise.all([events.return?.(), bench().silent.quiet()]));
    expect(await next).toBeInstanceOf(GatewayError);
  });

  test("a signal that is over before the call reaches nobody", async () => {
    await using upstream = await bench().quick.open();
    const signal = AbortSignal.abort(new GatewayError("CALL_CANCELLED", "stopped by the test"));
    const error = await errorOf(upstream.invoke(toolCall(bench().quick), contextFor({ signal })));
    expect(error).toMatchObject({ reason: "CALL_CANCELLED", effect: "none" });
    expect(bench().quick.reached()).toBe(0);
  });

  test("disposing cancels what runs, frees everything, and does no harm twice", async () => {
    const upstream = await bench().silent.open();
    const arrived = bench().silent.arrived();
    const ended = errorOf(upstream.invoke(toolCall(bench().silent), contextFor()));
    await arrived;
    const quiet = within(STOP_MS, bench().silent.quiet());
    await Promise.all([upstream[Symbol.asyncDispose](), upstream[Symbol.asyncDispose]()]);
    await upstream[Symbol.asyncDispose]();
    expect((await ended).effect).toBe("unknown");
    await quiet;
    expect(await errorOf(upstream.invoke(toolCall(bench().silent), contextFor()))).toBeInstanceOf(GatewayError);
  });

  test("disposing frees what is kept for later calls", async () => {
    const upstream = await bench().quick.open();
    await collect(upstream.invoke(toolCall(bench().quick), contextFor()));
    await upstream[Symbol.asyncDispose]();
    await expect(within(STOP_MS, bench().quick.quiet())).resolves.toBeUndefined();
  });
}

function describeState(bench: () => AdapterBench): void {
  test("it is ready where nothing is missing, and says what is missing where it is not", async () => {
    await using ready = await bench().quick.open();
    expect(ready.availability()).toEqual({ state: "ready", reason: "" });
    await using unready = await bench().unready.open();
    const { state, reason } = unready.availability();
    expect(state).toBe("unavailable");
    expect(reason).toMatch(/^\S.*\S$/);
  });

  test("opening does not wait for what can be reached later", async () => {
    const opening = within(STOP_MS, bench().unreachable.open());
    await expect(opening).resolves.toHaveProperty("invoke");
    await (await opening)[Symbol.asyncDispose]();
  });

  test("a probe tells whether there is something behind it, without a call", async () => {
    const { signal } = new AbortController();
    await using good = await bench().quick.open();
    expect(await good.probe(signal)).toMatchObject({ ok: true, mend: "" });
    expect(bench().quick.reached()).toBe(0);
    await using bad = await bench().unreachable.open();
    const report = await bad.probe(signal);
    expect(report.ok).toBe(false);
    expect(report.mend).not.toBe("");
    expect(report.message).not.toMatch(/[\r\n]/);
  });

  test("a probe ends with its signal", async () => {
    await using upstream = await bench().quick.open();
    const reason = new GatewayError("CALL_CANCELLED", "stopped by the test");
    await expect(upstream.probe(AbortSignal.abort(reason))).rejects.toBe(reason);
  });
}

function isOutput({ type }: UpstreamEvent): boolean {
  return type === "upstream-delta" || type === "progress";
}

function toolCall(tool: TestedTool): ToolCall {
  return { tool: "tested_tool", arguments: tool.arguments, validateOnly: false, maxLength: undefined };
}

function contextFor(options: Partial<Pick<CallContext, "signal" | "explain">> = {}): CallContext {
  return {
    callId: "0190f3a0-0000-7000-8000-000000000000",
    principal: ANONYMOUS,
    signal: options.signal ?? new AbortController().signal,
    deadlineMs: Number.MAX_SAFE_INTEGER,
    attempt: 1,
    explain: options.explain ?? false,
    sessionId: undefined,
    turnId: undefined,
    taskId: undefined,
    toolCallId: undefined,
    traceparent: undefined,
    logger: silentLogger,
  };
}

async function collect(events: AsyncIterable<UpstreamEvent>): Promise<UpstreamEvent[]> {
  const all: UpstreamEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

async function errorOf(events: AsyncIterable<UpstreamEvent>): Promise<GatewayError> {
  const outcome = await collect(events).catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(GatewayError);
  return outcome as GatewayError;
}

async function within<T>(limitMs: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${limitMs} ms`)), limitMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
