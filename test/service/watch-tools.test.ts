import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { WatchRequestSchema, type WatchResponse } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { failureOf } from "./clients.ts";
import { READY, toolDefinition } from "./fake-registry.ts";
import { envelope, grpcHeaders, rawSession } from "./raw.ts";
import { grpcClients, KEEPALIVE, PATIENT, type Served, serve } from "./serve.ts";

type WatchRequest = Parameters<ReturnType<typeof grpcClients>["tools"]["watch"]>[0];

/** A watch whose messages are read one by one, as words. */
async function watching(served: Served, request: WatchRequest = {}) {
  const controller = new AbortController();
  const { signal } = controller;
  const messages = grpcClients(served.url).tools.watch(request, { signal })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    const { value, done } = await messages.next();
    return done === true ? "end" : `${words(value)}@${value.revision}`;
  };
  const take = async (count: number): Promise<string[]> => {
    const taken: string[] = [];
    while (taken.length < count) taken.push(await next());
    return taken;
  };
  return { next, take, [Symbol.dispose]: () => controller.abort() };
}

function words({ event }: WatchResponse): string {
  if (event.case === "upserted" || event.case === "removed") return `${event.case} ${event.value.name}`;
  if (event.case === "problems") return `problems ${event.value.source} ${event.value.problems.length}`;
  return String(event.case);
}

test("a watch from nothing gives the present tools, says that it is synced, and then gives changes", async () => {
  await using served = await serve();
  using watch = await watching(served);
  expect(await watch.take(2)).toEqual(["upserted echo@101", "synced@101"]);
  served.registry.add({ name: "new" });
  served.registry.remove("echo");
  expect(await watch.take(2)).toEqual(["upserted new@102", "removed echo@103"]);
});

test("a watch from a revision gives changes only, and from an unknown one begins anew", async () => {
  await using served = await serve();
  using later = await watching(served, { afterRevision: 101n });
  expect(await later.next()).toBe("synced@101");
  using unknown = await watching(served, { afterRevision: 18_446_744_073_709_551_615n });
  expect(await unknown.take(3)).toEqual(["reset@101", "upserted echo@101", "synced@101"]);
});

test("a tool that stops matching the filter is removed, and one that never matched is never told", async () => {
  await using served = await serve();
  using watch = await watching(served, { filter: { names: ["e*"] } });
  expect(await watch.take(2)).toEqual(["upserted echo@101", "synced@101"]);
  served.registry.add({ name: "other" });
  served.registry.remove("other");
  served.registry.setAvailability("echo", { state: "disabled", reason: "" });
  served.registry.setAvailability("echo", { state: "disabled", reason: "still" });
  served.registry.setAvailability("echo", READY);
  expect(await watch.take(2)).toEqual(["removed echo@104", "upserted echo@106"]);
});

test("a watcher that came with a state of its own is told of every tool that does not match", async () => {
  await using served = await serve();
  using watch = await watching(served, { afterRevision: 101n, filter: { names: ["e*"] } });
  expect(await watch.next()).toBe("synced@101");
  served.registry.add({ name: "other" });
  expect(await watch.next()).toBe("removed other@102");
});

test("after a reset what does not match is not told again", async () => {
  await using served = await serve();
  using watch = await watching(served, { afterRevision: 101n, filter: { names: ["e*"] } });
  expect(await watch.next()).toBe("synced@101");
  served.registry.announce({ type: "reset", revision: 110 });
  const view = { definition: toolDefinition({ name: "other" }), availability: READY };
  served.registry.announce({ type: "upserted", revision: 110, view });
  served.registry.announce({ type: "synced", revision: 110 });
  expect(await watch.take(2)).toEqual(["reset@110", "synced@110"]);
});

test("problems of a source are passed on", async () => {
  await using served = await serve();
  using watch = await watching(served);
  await watch.take(2);
  const problem = { source: "file:a.yaml", line: 1, column: 1, message: "bad", lastGoodServing: false, note: false };
  served.registry.announce({ type: "problems", revision: 102, source: "file:a.yaml", problems: [problem] });
  served.registry.announce({ type: "problems", revision: 103, source: "file:a.yaml", problems: [] });
  expect(await watch.take(2)).toEqual(["problems file:a.yaml 1@102", "problems file:a.yaml 0@103"]);
});

test("30 s without anything to tell, it says that it is synced up to what was left out", async () => {
  const clock = createFakeClock();
  await using served = await serve({ clock });
  using watch = await watching(served, { filter: { names: ["e*"] } });
  await watch.take(2);
  served.registry.add({ name: "other" });
  const next = watch.next();
  // The change has to be seen before time passes.
  await expect.poll(() => clock.nextInMs, PATIENT).toBeLessThanOrEqual(30_000);
  await new Promise((resolve) => setTimeout(resolve, 20));
  // It is looked every second whether the watcher is still who it was.
  const said: string[] = [];
  void next.then((event) => said.push(event));
  for (let second = 0; second < 40 && said.length === 0; second++) {
    await clock.advance(1_000);
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (second < 28) expect(said).toEqual([]);
  }
  await next;
  expect(said).toEqual(["synced@102"]);
});

test("a watcher that leaves frees its watch", async () => {
  await using served = await serve();
  {
    using watch = await watching(served);
    await watch.take(2);
    expect(served.registry.watches).toBe(1);
  }
  await expect.poll(() => served.registry.watches, PATIENT).toBe(0);
});

test("a filter that is refused ends the watch with the field", async () => {
  await using served = await serve();
  const work = (async () => {
    for await (const _ of grpcClients(served.url).tools.watch({ filter: { names: [""] } })) return expect.unreachable();
  })();
  expect(await failureOf(work)).toMatchObject({ reason: "REQUEST_INVALID", fields: ["filter.names"] });
});

/** A watcher over HTTP/2 whose stream has the smallest window there is, with many large tools to be told of. */
async function pausedWatch(served: Served, session: ClientHttp2Session): Promise<ClientHttp2Stream> {
  for (let i = 0; i < 300; i++) served.registry.add({ name: `tool_${i}`, description: "x".repeat(20_000) });
  const stream = session.request(grpcHeaders("/toolgate.v1.ToolGatewayService/Watch"));
  stream.on("error", () => undefined);
  stream.end(envelope(toBinary(WatchRequestSchema, create(WatchRequestSchema))));
  await once(stream, "response");
  return stream;
}

test("a reader that answers pings and reads nothing is cut off after five minutes, and everything is freed", async () => {
  const clock = createFakeClock();
  await using served = await serve({ clock, keepalive: { ...KEEPALIVE, intervalMs: 3_600_000, timeoutMs: 10_000 } });
  using session = rawSession(served.url);
  const stream = await pausedWatch(served, session);
  await expect.poll(() => served.registry.watches, PATIENT).toBe(1);
  // What fits into buffers has to be written before time passes.
  await new Promise((resolve) => setTimeout(resolve, 300));
  await clock.advance(299_000);
  expect(served.registry.watches).toBe(1);
  // Where the machine was so busy that something was written meanwhile, its time began anew.
  const left = async (): Promise<number> => {
    await clock.advance(4_000);
    return served.registry.watches;
  };
  await expect.poll(left, PATIENT).toBe(0);
  await new Promise<void>((resolve) => stream.once("close", resolve).resume());
  // gRPC clients know it as RESOURCE_EXHAUSTED.
  expect(stream.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
});

test("a reader that takes a little every few minutes is left alone", async () => {
  const clock = createFakeClock();
  await using served = await serve({ clock, keepalive: { ...KEEPALIVE, intervalMs: 3_600_000, timeoutMs: 10_000 } });
  using session = rawSession(served.url);
  const stream = await pausedWatch(served, session);
  const pieces = stream[Symbol.asyncIterator]();
  let bytes = 0;
  for (let i = 0; i < 6; i++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    await clock.advance(280_000);
    // As much as frees some of the window.
    for (const end = bytes + 200_000; bytes < end; ) {
      const { value, done } = await pieces.next();
      if (done === true) throw new Error("cut off");
      bytes += (value as Buffer).length;
    }
  }
  expect(bytes).toBeGreaterThan(1_000_000);
  expect(stream.destroyed).toBe(false);
  expect(served.registry.watches).toBe(1);
});
