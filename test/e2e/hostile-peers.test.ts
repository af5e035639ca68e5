import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CallRequestSchema } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import {
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  GOAWAY,
  grpcFields,
  grpcRequest,
  HEADERS,
  literal,
  PING,
  preface,
  RST_STREAM,
  SETTINGS,
  streamRequest,
  uint,
} from "../service/frames.ts";
import {
  answerOf,
  CALL,
  CALL_STREAM,
  envelope,
  grpcHeaders,
  LIST,
  type RawSocket,
  rawSession,
  rawSocket,
} from "../service/raw.ts";
import { type AttackedDoor, type DoorState, startAttackedDoor } from "./attacked-door.ts";
import { createGatewayClient } from "./gateway-client.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";

const MIB = 2 ** 20;
const PATIENT = { timeout: 150_000, interval: 50 };
/** The windows of every stream of the peer are shut: the server can send no byte of a body. */
const NO_WINDOW = [4, 0] as const;

let door: AttackedDoor;

beforeAll(async () => {
  door = await startAttackedDoor({
    sniffMs: 1_000,
    headersMs: 1_000,
    answerMs: 2_000,
    unreadAnswerBytes: 16 * MIB,
    streamResetBurst: 200,
    streamResetRate: 20,
  });
  // What is loaded and compiled at the first calls is no growth.
  using client = createGatewayClient(door.port);
  for (let i = 0; i < 200; i++) await client.call("echo");
}, START_TIMEOUT_MS);

afterAll(async () => {
  await door[Symbol.asyncDispose]();
});

/** What an attack cost. */
interface Attack {
  /** Most resident memory during it, less what there was before. */
  readonly peakBytes: number;
  /** State of the door at its height. */
  readonly state: DoorState;
}

/**
 * Attacks the door while somebody else makes calls on a connection of their own: these are all answered, one of them
 * wholly at the height of the attack; the process lives, and has no more memory in use after the attack than before.
 */
async function attack(run: (hold: DisposableStack) => Promise<void>): Promise<Attack> {
  using client = createGatewayClient(door.port);
  await client.call("echo");
  const before = await door.state();
  const residentBefore = door.residentBytes();
  let peak = residentBefore;
  const over = new AbortController();
  const watch = (async () => {
    while (!over.signal.aborted) {
      peak = Math.max(peak, door.residentBytes());
      await delay(10);
    }
  })();
  const witness = (async () => {
    while (!over.signal.aborted) {
      await client.call("echo");
      await delay(5);
    }
  })();
  let state: DoorState;
  try {
    using hold = new DisposableStack();
    await Promise.race([run(hold), witness]);
    await client.call("echo");
    state = await door.state();
  } finally {
    over.abort();
  }
  await Promise.all([watch, witness]);
  expect(door.alive()).toBe(true);
  await expect.poll(async () => (await door.state()).leases, PATIENT).toBe(0);
  const left = async (): Promise<number> => (await door.state()).usedBytes - before.usedBytes;
  await expect.poll(left, PATIENT).toBeLessThan(4 * MIB);
  return { peakBytes: peak - residentBefore, state };
}

/** Sockets that have said this. */
async function sockets(hold: DisposableStack, count: number, said: Uint8Array | string): Promise<RawSocket[]> {
  const opened = Array.from({ length: count }, async () => {
    const raw = hold.use(await rawSocket(door.port));
    if (said.length > 0) raw.socket.write(said);
    return raw;
  });
  return Promise.all(opened);
}

/** Writes again and again until the peer closed, or so many bytes were taken. */
async function pour(raw: RawSocket, bytes: Uint8Array, limitBytes: number): Promise<void> {
  let left = limitBytes;
  while (left > 0 && !raw.socket.closed) {
    left -= bytes.length;
    if (!raw.socket.write(bytes))
      await Promise.race([new Promise((resolve) => raw.socket.once("drain", resolve)), raw.closed]);
  }
}

function callRequest(name: string): Uint8Array {
  return toBinary(CallRequestSchema, create(CallRequestSchema, { invocation: { name } }));
}

const ODD_HOSTS = ["a b[", "localhost:99999", "", "[::", "x%zz", "a@b:c@d"];

test("requests with a Host or an :authority that is none are answered or refused one by one", async () => {
  await attack(async (hold) => {
    for (const host of ODD_HOSTS) {
      const request = `POST ${LIST} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`;
      const raws = await sockets(hold, 20, request);
      await Promise.all(raws.map((raw) => raw.received(/^HTTP\/1\.1 (200|400)/)));
      using session = rawSession(door.url);
      const stream = session.request({ ":method": "POST", ":path": LIST, ":authority": host });
      stream.end("{}");
      await answerOf(stream);
    }
  });
});

test("sockets that say nothing, or their headers too slowly, are cut", async () => {
  await attack(async (hold) => {
    const said = ["", "P", "PRI * HTTP/2.0\r\n", `POST ${LIST} HTTP/1.1\r\nHost: x\r\nX-Slow: `];
    const raws = (await Promise.all(said.map((text) => sockets(hold, 100, text)))).flat();
    await Promise.all(raws.map((raw) => raw.closed));
  });
});

test("requests that follow a GOAWAY, on 300 connections, do no harm", async () => {
  await attack(async (hold) => {
    const fields = Buffer.from([0x82, 0x86, 0x84]);
    const open = frame(HEADERS, END_HEADERS, 1, fields);
    const more = Array.from({ length: 20 }, (_, i) => frame(HEADERS, END_HEADERS | END_STREAM, 3 + 2 * i, fields));
    for (const code of [0, 2]) {
      const goaway = frame(GOAWAY, 0, 0, Buffer.concat([uint(4, 0), uint(4, code)]));
      for (const first of [[], [open]]) {
        for (let i = 0; i < 75; i++) {
          const [raw] = await sockets(hold, 1, Buffer.concat([preface(), ...first, goaway, ...more]));
          await raw?.received(/^/);
        }
      }
    }
  });
});

test("a flood of resets ends its connection long before it is over", async () => {
  const before = await door.state();
  const { state } = await attack(async (hold) => {
    const [raw] = await sockets(hold, 1, preface());
    if (raw === undefined) return;
    const message = streamRequest("wait");
    const resets = Array.from({ length: 10_000 }, (_, i) =>
      Buffer.concat([grpcRequest(CALL_STREAM, 1 + 2 * i, message), frame(RST_STREAM, 0, 1 + 2 * i, uint(4, 8))]),
    );
    raw.socket.write(Buffer.concat(resets));
    await raw.closed;
  });
  expect(state.begun - before.begun).toBeLessThan(2_000);
});

test.each([
  ["of 16 KB", 16_384],
  ["without a byte", 0],
])("a header block that goes on in frames %s without an end ends its connection", async (_what, size) => {
  const { peakBytes } = await attack(async (hold) => {
    const begin = frame(HEADERS, END_STREAM, 1, grpcFields(CALL));
    const [raw] = await sockets(hold, 1, Buffer.concat([preface(), begin]));
    if (raw === undefined) return;
    const field = literal("x-more", "y".repeat(100));
    const payload = Buffer.concat(Array.from({ length: Math.floor(size / field.length) }, () => field));
    await pour(raw, Buffer.concat(Array.from({ length: 20 }, () => frame(CONTINUATION, 0, 1, payload))), 64 * MIB);
    await raw.closed;
  });
  expect(peakBytes).toBeLessThan(32 * MIB);
});

test("header fields that refer to one large field ten thousand times are refused", async () => {
  const { peakBytes } = await attack(async (hold) => {
    const value = Buffer.alloc(4_000, "v");
    // A literal with indexing, of a length over 127. Source: RFC 7541, 5.1 and 6.2.1.
    const large = Buffer.concat([Buffer.from([0x40, 1, 0x78, 127, 0xa1, 0x1e]), value]);
    // Index 62: the newest field of the dynamic table.
    const block = Buffer.concat([grpcFields(CALL), large, Buffer.alloc(10_000, 0x80 | 62)]);
    for (let i = 0; i < 20; i++) {
      await sockets(hold, 1, Buffer.concat([preface(), frame(HEADERS, END_HEADERS | END_STREAM, 1, block)]));
    }
  });
  expect(peakBytes).toBeLessThan(32 * MIB);
});

test.each([
  ["PING", frame(PING, 0, 0, Buffer.alloc(8))],
  ["SETTINGS", frame(SETTINGS, 0, 0)],
  ["empty DATA", frame(DATA, 0, 1)],
])("a flood of %s frames from a peer that reads nothing ends its connection", async (_what, bytes) => {
  const { peakBytes } = await attack(async (hold) => {
    const [raw] = await sockets(hold, 1, "");
    if (raw === undefined) return;
    raw.socket.pause();
    const stream = frame(HEADERS, END_HEADERS, 1, grpcFields(CALL));
    raw.socket.write(Buffer.concat([preface(), stream]));
    await pour(raw, Buffer.concat(Array.from({ length: 1_000 }, () => bytes)), 256 * MIB);
    raw.socket.resume();
    await raw.closed;
  });
  expect(peakBytes).toBeLessThan(48 * MIB);
});

test("bodies of 64 MB are refused over both HTTP versions, and not kept [G-D05]", async () => {
  const { peakBytes } = await attack(async (hold) => {
    const piece = Buffer.alloc(MIB, 32);
    const overHttp1 = async (): Promise<void> => {
      const headers = { "content-type": "application/json", "content-length": 64 * MIB };
      const request = httpRequest(`${door.url}${CALL}`, { method: "POST", headers });
      hold.defer(() => void request.destroy());
      // The gateway may cut the connection while the rest is still on its way.
      request.on("error", () => undefined);
      const answered = once(request, "response");
      void (async () => {
        for (let i = 0; i < 64 && !request.destroyed; i++)
          await new Promise((resolve) => request.write(piece, resolve));
      })();
      const [{ statusCode }] = await answered;
      expect(statusCode).toBe(429);
    };
    const overHttp2 = async (): Promise<void> => {
      const session = hold.use(rawSession(door.url));
      const stream = session.request(grpcHeaders(CALL));
      const answer = answerOf(stream);
      stream.write(Buffer.concat([Buffer.from([0]), uint(4, 64 * MIB)]));
      for (let i = 0; i < 64 && !stream.destroyed; i++) {
        await Promise.race([new Promise((resolve) => stream.write(piece, resolve)), answer]);
      }
      const { headers, trailers } = await answer;
      expect({ ...headers, ...trailers }["grpc-status"]).toBe("8");
    };
    await Promise.all([overHttp1(), overHttp1(), overHttp2(), overHttp2()]);
  });
  expect(peakBytes).toBeLessThan(64 * MIB);
});

test("gzip bombs are refused by what they would become, before they become it", async () => {
  const bomb = gzipSync(Buffer.alloc(256 * MIB), { level: 1 });
  const { peakBytes } = await attack(async (hold) => {
    const answers = Array.from({ length: 4 }, async () => {
      const session = hold.use(rawSession(door.url));
      const stream = session.request(grpcHeaders(CALL, { "grpc-encoding": "gzip" }));
      stream.end(envelope(bomb, 1));
      const { trailers, headers } = await answerOf(stream);
      expect({ ...headers, ...trailers }["grpc-status"]).toBe("8");
    });
    await Promise.all(answers);
  });
  expect(peakBytes).toBeLessThan(64 * MIB);
});

test("streams whose windows are shut hold one message each, and are freed when their peer leaves [G-D08]", async () => {
  const { peakBytes } = await attack(async (hold) => {
    const [raw] = await sockets(hold, 1, preface(NO_WINDOW));
    const message = streamRequest("flood");
    for (let i = 0; i < 200; i++) raw?.socket.write(grpcRequest(CALL_STREAM, 1 + 2 * i, message));
    await expect.poll(async () => (await door.state()).leases, PATIENT).toBeGreaterThanOrEqual(200);
  });
  expect(peakBytes).toBeLessThan(150 * MIB);
});

test("answers that their caller does not take are given up, and never more than so many are kept", async () => {
  const { peakBytes } = await attack(async (hold) => {
    const [raw] = await sockets(hold, 1, preface(NO_WINDOW));
    // 700 KB each, and three times that in memory: 420 MB and more in all.
    for (let i = 0; i < 200; i++) raw?.socket.write(grpcRequest(CALL, 1 + 2 * i, callRequest("big")));
    await expect.poll(async () => (await door.state()).leases, PATIENT).toBe(0);
  });
  // Without the bound it is 450 MiB and more; with it some 130, most of it garbage that was not collected yet.
  expect(peakBytes).toBeLessThan(300 * MIB);
});
