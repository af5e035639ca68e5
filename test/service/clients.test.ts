import { Code, encodeBinaryHeader } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import { CLIENTS, collect, failureOf } from "./clients.ts";
import { completed, deaf, textResult, waiting } from "./fake-registry.ts";
import { PATIENT, recordingLogger, serve } from "./serve.ts";

const violations = [{ field: "/city", description: "is missing", reason: "MISSING" }];

describe.each(Object.entries(CLIENTS))("%s", (_name, open) => {
  test("calls a tool and gets its result, in any language", async () => {
    await using served = await serve();
    using client = open(served.url);
    const arguments_ = { case: "argumentsJson", value: '{"城市":"柏林"}' } as const;
    const response = await client.call({ name: "echo", arguments: arguments_ });
    expect(response.result?.structuredJson).toBe('{"城市":"柏林"}');
    expect(response.callId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  });

  test("reads a stream from `started` to `completed`", async () => {
    await using served = await serve();
    served.registry.add({ name: "tail", delivery: "incremental" }, async function* () {
      yield { type: "progress", current: 1, total: 2, message: "half" };
      yield { type: "delta", index: 0, text: "一" };
      yield { type: "delta", index: 0, text: "二" };
      yield completed({ ...textResult(""), content: [] });
    });
    using client = open(served.url);
    const messages = await collect(client.stream({ invocation: { name: "tail" } }));
    expect(messages.map(({ event }) => event.case)).toEqual(["started", "progress", "output", "output", "completed"]);
    expect(messages.map(({ sequence }) => sequence)).toEqual([0n, 1n, 2n, 3n, 4n]);
  });

  test("sees the reason, the fields and the whole text of an error, unary and in a stream [G-D06]", async () => {
    await using served = await serve();
    served.registry.add({ name: "strict" }, async function* () {
      yield { type: "log", level: "info", message: "before" };
      throw new GatewayError("ARGUMENTS_INVALID", "订单失败\nline2 é 😀 %41 a:b/c, d; e", {
        violations,
        metadata: { tool: "strict" },
      });
    });
    using client = open(served.url);
    const unary = () => client.call({ name: "strict" });
    const stream = () => collect(client.stream({ invocation: { name: "strict" } }));
    for (const work of [unary, stream]) {
      const failure = await failureOf(work());
      expect(failure.code).toBe(Code.InvalidArgument);
      expect(failure.message).toBe("订单失败\nline2 é 😀 %41 a:b/c, d; e");
      expect(failure).toMatchObject({ reason: "ARGUMENTS_INVALID", metadata: { tool: "strict" }, fields: ["/city"] });
      expect(failure.detail?.callId).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  test("ends at its deadline although the tool ignores it, and the gateway frees the call [G-D01]", async () => {
    await using served = await serve();
    served.registry.add({ name: "deaf" }, deaf);
    using client = open(served.url);
    const failure = await failureOf(client.call({ name: "deaf" }, { timeoutMs: 150 }));
    expect(failure.code).toBe(Code.DeadlineExceeded);
    await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
  });

  test("a stream ends at its RPC deadline although the tool ignores it [G-D01]", async () => {
    await using served = await serve();
    served.registry.add({ name: "deaf" }, deaf);
    using client = open(served.url);
    const failure = await failureOf(collect(client.stream({ invocation: { name: "deaf" } }, { timeoutMs: 150 })));
    expect(failure.code).toBe(Code.DeadlineExceeded);
    await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
  });

  test("sends text and binary metadata, with a call and with a stream", async () => {
    const seen: (string | null)[][] = [];
    await using served = await serve({
      authenticate: async (headers) => {
        seen.push(["x-tenant", "x-trace-bin"].map((name) => headers.get(name)));
        return { id: "", roles: [] };
      },
    });
    using client = open(served.url);
    const headers = { "x-tenant": "blue, green", "x-trace-bin": encodeBinaryHeader(new Uint8Array([0, 255, 128])) };
    await client.call({ name: "echo" }, { headers });
    await collect(client.stream({ invocation: { name: "echo" } }, { headers }));
    expect(seen).toEqual([
      ["blue, green", "AP+A"],
      ["blue, green", "AP+A"],
    ]);
  });

  test("sees an error text of 20 KB cut to a kilobyte on the border of a character [G-D06]", async () => {
    await using served = await serve();
    served.registry.add({ name: "chatty" }, async function* () {
      yield { type: "log", level: "info", message: "before" };
      throw new GatewayError("ARGUMENTS_INVALID", "订单失败\nline2 é 😀 %41 ".repeat(600));
    });
    using client = open(served.url);
    const unary = () => client.call({ name: "chatty" });
    const stream = () => collect(client.stream({ invocation: { name: "chatty" } }));
    for (const work of [unary, stream]) {
      const { code, message, detail } = await failureOf(work());
      expect(code).toBe(Code.InvalidArgument);
      expect(message).toMatch(/^订单失败\nline2 é 😀 %41 订单[^\ufffd]*…$/u);
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1024);
      expect(Buffer.byteLength(message)).toBeGreaterThan(1015);
      expect(detail?.callId).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  test.each(["unary", "stream"])("cancels: the tool's signal aborts within 100 ms (%s)", async (kind) => {
    await using served = await serve();
    const started = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<{ reason: unknown; atMs: number }>();
    served.registry.add(
      { name: "wait" },
      waiting((reason) => aborted.resolve({ reason, atMs: performance.now() }), started.resolve),
    );
    using client = open(served.url);
    const controller = new AbortController();
    const { signal } = controller;
    const work =
      kind === "unary"
        ? client.call({ name: "wait" }, { signal })
        : collect(client.stream({ invocation: { name: "wait" } }, { signal }));
    const failure = failureOf(work);
    await started.promise;
    const cancelledMs = performance.now();
    controller.abort();
    expect((await failure).code).toBe(Code.Canceled);
    const { reason, atMs } = await aborted.promise;
    expect(reason).toMatchObject({ reason: "CALL_CANCELLED" });
    // Generous for a busy machine; some milliseconds as a rule.
    expect(atMs - cancelledMs).toBeLessThan(10_000);
    await expect.poll(() => served.registry.leases, PATIENT).toBe(0);
  });

  test("a reader that leaves a stream ends the call, which is nothing to warn of", async () => {
    const logger = recordingLogger();
    await using served = await serve({ logger });
    const aborted = Promise.withResolvers<unknown>();
    served.registry.add({ name: "wait" }, waiting(aborted.resolve));
    using client = open(served.url);
    for await (const { event } of client.stream({ invocation: { name: "wait" } })) {
      expect(event.case).toBe("started");
      break;
    }
    expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
    await served.door.stop();
    expect(logger.lines).toEqual([]);
  });
});
