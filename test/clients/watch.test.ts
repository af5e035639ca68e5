import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import type { WatchResponseSchema } from "../../clients/typescript/src/gen/toolgate/v1/tool_gateway_service_pb.ts";
import { createToolgateClient, type ToolgateError, type WatchEvent } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { deferred, gatewayError, startFakeGateway } from "./fake-gateway.ts";

type Response = MessageInitShape<typeof WatchResponseSchema>;

function upserted(revision: bigint, name: string): Response {
  return { revision, event: { case: "upserted", value: { name } } };
}

function synced(revision: bigint): Response {
  return { revision, event: { case: "synced", value: {} } };
}

/** Answers the n-th watch by the n-th script, or each by the one that is for its revision; the connection is lost when a script ends. */
async function watch(
  scripts: readonly (() => AsyncIterable<Response>)[] | ((afterRevision: bigint) => AsyncIterable<Response>),
  options: { readonly afterRevision?: bigint; readonly silenceMs?: number; readonly enough: number },
): Promise<{ events: string[]; asked: bigint[]; reconnects: ToolgateError[] }> {
  const asked: bigint[] = [];
  const reconnects: ToolgateError[] = [];
  await using gateway = await startFakeGateway({
    gateway: {
      async *watch({ afterRevision }): AsyncGenerator<Response> {
        const script = typeof scripts === "function" ? () => scripts(afterRevision) : scripts[asked.length];
        asked.push(afterRevision);
        if (script !== undefined) yield* script();
      },
    },
  });
  using transport = createNodeTransport({ baseUrl: gateway.url });
  const events: string[] = [];
  const changes = createToolgateClient(transport).watch({
    afterRevision: options.afterRevision,
    silenceMs: options.silenceMs,
    onReconnect: (error) => reconnects.push(error),
  });
  for await (const event of changes) {
    events.push(describe(event));
    if (events.length === options.enough) break;
  }
  return { events, asked, reconnects };
}

function describe(event: WatchEvent): string {
  if (event.type === "upserted") return `+${event.tool.name}@${event.revision}`;
  if (event.type === "removed") return `-${event.name}@${event.revision}`;
  if (event.type === "problems") return `!${event.source}:${event.problems.length}@${event.revision}`;
  return `${event.type}@${event.revision}`;
}

test("a watch tells each kind of event and passes over one it does not know", async () => {
  const { events, asked } = await watch(
    [
      async function* () {
        yield upserted(4n, "a");
        yield synced(4n);
        yield { revision: 5n, event: { case: undefined } };
        yield { revision: 6n, event: { case: "removed", value: { name: "a" } } };
        yield {
          revision: 7n,
          event: { case: "problems", value: { source: "file:x.yaml", problems: [{ message: "unknown key" }] } },
        };
      },
    ],
    { enough: 4 },
  );
  expect(events).toEqual(["+a@4", "synced@4", "-a@6", "!file:x.yaml:1@7"]);
  expect(asked).toEqual([0n]);
});

test("a lost watch goes on from the last revision that was told in full", async () => {
  const { events, asked, reconnects } = await watch(
    [
      async function* () {
        yield upserted(4n, "a");
        yield synced(4n);
        yield upserted(5n, "b");
        yield upserted(6n, "c");
        throw new ConnectError("restarting", Code.Unavailable);
      },
      async function* () {
        yield upserted(6n, "c");
        yield upserted(6n, "d");
        yield synced(6n);
      },
      async function* () {
        yield synced(6n);
      },
    ],
    { enough: 8 },
  );
  expect(events).toEqual(["+a@4", "synced@4", "+b@5", "+c@6", "+c@6", "+d@6", "synced@6", "synced@6"]);
  // Revision 6 may have had more events when the connection broke, so it is asked for again.
  expect(asked).toEqual([0n, 5n, 6n]);
  expect(reconnects[0]).toMatchObject({ reason: "RPC_FAILED", status: "UNAVAILABLE" });
  expect(reconnects[1]).toMatchObject({ reason: "GATEWAY_CONNECTION_LOST", message: "the gateway ended the watch" });
});

test("a watch that is lost within its first list begins again with a reset", async () => {
  const { events, asked } = await watch(
    [
      async function* () {
        yield upserted(9n, "a");
      },
      async function* () {
        yield upserted(10n, "b");
        yield synced(10n);
      },
    ],
    { enough: 4 },
  );
  expect(events).toEqual(["+a@9", "reset@0", "+b@10", "synced@10"]);
  expect(asked).toEqual([0n, 0n]);
});

test("after a reset of the gateway's own, a cut within the new list begins again", async () => {
  const { events, asked } = await watch(
    [
      async function* () {
        yield { revision: 3n, event: { case: "reset", value: {} } };
        yield upserted(3n, "a");
      },
      async function* () {
        yield synced(4n);
      },
    ],
    { afterRevision: 900n, enough: 4 },
  );
  expect(events).toEqual(["reset@3", "+a@3", "reset@0", "synced@4"]);
  expect(asked).toEqual([900n, 0n]);
});

test("a connection that says nothing for too long is replaced", async () => {
  const { promise: never } = deferred<void>();
  const { events, asked, reconnects } = await watch(
    async function* (afterRevision) {
      if (afterRevision > 0n) yield upserted(3n, "a");
      else yield synced(2n);
      await never;
    },
    { enough: 2, silenceMs: 150 },
  );
  expect(events).toEqual(["synced@2", "+a@3"]);
  // On a busy machine a connection may be replaced that would have said something.
  expect([asked[0], asked.at(-1)]).toEqual([0n, 2n]);
  expect(reconnects[0]?.message).toBe("the gateway said nothing for 150 ms");
});

test("what the gateway refuses for good ends a watch", async () => {
  const refused = watch(
    [
      () => ({
        [Symbol.asyncIterator]: () => ({
          next: () => Promise.reject(gatewayError(Code.InvalidArgument, "REQUEST_INVALID", "at most 100 names")),
        }),
      }),
    ],
    { enough: 1 },
  );
  await expect(refused).rejects.toMatchObject({ reason: "REQUEST_INVALID" });
});

test("the signal ends a watch, also while it waits to connect again", async () => {
  using transport = createNodeTransport({ baseUrl: "http://127.0.0.1:1" });
  const controller = new AbortController();
  const changes = createToolgateClient(transport).watch({
    signal: controller.signal,
    onReconnect: () => controller.abort(),
  });
  const read = async (): Promise<void> => {
    for await (const event of changes) throw new Error(`no event was due, got ${event.type}`);
  };
  await expect(read()).rejects.toMatchObject({ reason: "CALL_CANCELLED" });
});

test("a watch goes on over another connection after the gateway's was cut", async () => {
  let connections = 0;
  await using gateway = await startFakeGateway({
    gateway: {
      async *watch(_request, context): AsyncGenerator<Response> {
        yield synced(BigInt(++connections));
        await new Promise((done) => context.signal.addEventListener("abort", done));
      },
    },
  });
  using transport = createNodeTransport({ baseUrl: gateway.url });
  const events: string[] = [];
  for await (const event of createToolgateClient(transport).watch()) {
    events.push(describe(event));
    if (events.length === 2) break;
    gateway.cut();
  }
  expect(events).toEqual(["synced@1", "synced@2"]);
});

test("return() ends a watch even while a read is pending", async () => {
  const { promise: ended, resolve } = deferred<void>();
  await using gateway = await startFakeGateway({
    gateway: {
      async *watch(_request, context): AsyncGenerator<Response> {
        yield synced(1n);
        await new Promise<void>((done) => context.signal.addEventListener("abort", () => done()));
        resolve();
      },
    },
  });
  using transport = createNodeTransport({ baseUrl: gateway.url });
  const changes = createToolgateClient(transport).watch();
  await changes.next();
  const pending = changes.next();
  pending.catch(() => undefined);
  await changes.return?.();
  await ended;
  await expect(pending).rejects.toMatchObject({ reason: "CALL_CANCELLED" });
});
