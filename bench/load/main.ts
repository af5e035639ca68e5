import { cpuMicros } from "../cpu.ts";
import { type LoadPlan, type LoadReply, type LoadResult, percentile } from "../measure.ts";
import { decodeEvent, decodeResponse } from "../wire.ts";
import type { LoadClient } from "./client.ts";
import { createConnectHttp1Client, createDirectClient } from "./http1-client.ts";
import { createHttp2Client, HTTP2_DIALECTS } from "./http2-client.ts";

// The load generator: a process of its own that takes one plan at a time over its IPC channel.
process.on("message", (plan: LoadPlan) => {
  void run(plan).then(
    (result) => reply({ ok: true, result }),
    (error: unknown) =>
      reply({ ok: false, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.on("disconnect", () => process.exit(0));

function reply(answer: LoadReply): void {
  process.send?.(answer);
}

async function run(plan: LoadPlan): Promise<LoadResult> {
  await using client = await createClient(plan);
  if (plan.kind === "unary") return await measureUnary(client, plan);
  return plan.kind === "first-delta" ? await measureFirstDelta(client, plan) : await measureStream(client, plan);
}

async function createClient(plan: LoadPlan): Promise<LoadClient> {
  const { port, target: tool, validateOnly, inFlight } = plan;
  if (plan.client === "direct") return createDirectClient({ port, path: plan.target, inFlight });
  if (plan.client === "connect-h1") return createConnectHttp1Client({ port, tool, validateOnly, inFlight });
  return createHttp2Client(HTTP2_DIALECTS[plan.client], { port, tool, validateOnly, inFlight });
}

function encodingOf(plan: LoadPlan): "proto" | "json" {
  return plan.client === "grpc" ? "proto" : "json";
}

async function measureUnary(client: LoadClient, plan: LoadPlan): Promise<LoadResult> {
  const first = await client.call();
  if (plan.client !== "direct") refuseWrongAnswer(first, plan);
  const repeat = async (untilMs: number, took: number[]): Promise<void> => {
    const worker = async (): Promise<void> => {
      while (performance.now() < untilMs) {
        const start = performance.now();
        await client.call();
        took.push(performance.now() - start);
      }
    };
    await Promise.all(Array.from({ length: plan.inFlight }, worker));
  };
  await repeat(performance.now() + plan.warmUpMs, []);
  const took: number[] = [];
  const meter = startMeter(plan);
  await repeat(performance.now() + plan.measureMs, took);
  return meter(took.length, 0, took);
}

/** A fast wrong answer must not pass for a good figure. */
function refuseWrongAnswer(bytes: Uint8Array, plan: LoadPlan): void {
  const response = decodeResponse(bytes, encodingOf(plan));
  if (response.result?.failure !== undefined) throw new Error(`the tool failed: ${response.result.failure.message}`);
  if (response.callId === "") throw new Error("the answer has no call id");
}

async function measureFirstDelta(client: LoadClient, plan: LoadPlan): Promise<LoadResult> {
  const encoding = encodingOf(plan);
  const once = async (): Promise<number> => {
    const start = performance.now();
    let first: number | undefined;
    await client.stream((bytes) => {
      const isDelta = plan.client === "direct" || decodeEvent(bytes, encoding).event.case === "output";
      if (isDelta) first ??= performance.now() - start;
    }, new AbortController().signal);
    if (first === undefined) throw new Error("the stream had no output");
    return first;
  };
  const warmUntil = performance.now() + plan.warmUpMs;
  while (performance.now() < warmUntil) await once();
  const took: number[] = [];
  const meter = startMeter(plan);
  const until = performance.now() + plan.measureMs;
  while (performance.now() < until) took.push(await once());
  return meter(took.length, 0, took);
}

async function measureStream(client: LoadClient, plan: LoadPlan): Promise<LoadResult> {
  const stop = new AbortController();
  let messages = 0;
  let bytes = 0;
  const onMessage = (message: Uint8Array): void => {
    messages++;
    bytes += message.length;
  };
  const streams = Array.from({ length: plan.inFlight }, async () => {
    await client.stream(onMessage, stop.signal);
    if (!stop.signal.aborted) throw new Error("the stream ended by itself");
  });
  const ended = Promise.all(streams);
  await Promise.race([ended, timer(plan.warmUpMs)]);
  messages = 0;
  bytes = 0;
  const meter = startMeter(plan);
  await Promise.race([ended, timer(plan.measureMs)]);
  const result = meter(messages, bytes, []);
  stop.abort();
  await ended;
  return result;
}

function timer(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}

/** Starts time and CPU time; the function it gives ends both. */
function startMeter(plan: LoadPlan): (count: number, bytes: number, took: readonly number[]) => LoadResult {
  const pid = plan.pid ?? process.pid;
  const cpuBefore = cpuMicros(pid);
  const start = performance.now();
  return (count, bytes, took) => {
    const seconds = (performance.now() - start) / 1000;
    const cpuAfter = cpuMicros(pid);
    const known = cpuBefore !== undefined && cpuAfter !== undefined && count > 0;
    return {
      count,
      bytes,
      seconds,
      p50: percentile(took, 0.5),
      p99: percentile(took, 0.99),
      cpuMicros: known ? (cpuAfter - cpuBefore) / count : undefined,
    };
  };
}
