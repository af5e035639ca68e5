import { once } from "node:events";
import { type ClientHttp2Stream, createServer, type ServerHttp2Stream } from "node:http2";
import { setImmediate as turn } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { GrpcAnswer } from "../../../src/service/grpc/answer.ts";
import { frameOf } from "../../../src/service/grpc/frame.ts";
import { UnreadAnswers } from "../../../src/service/unread-answers.ts";
import { answerOf, rawSession } from "../raw.ts";

interface Answering extends AsyncDisposable {
  readonly answer: GrpcAnswer;
  /** The gateway's end, and the caller's. */
  readonly stream: ServerHttp2Stream;
  readonly caller: ClientHttp2Stream;
  readonly reset: () => void;
}

/** An answer on a stream of a real connection. */
async function answering(limitBytes = 1_000_000): Promise<Answering> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  const session = rawSession(`http://127.0.0.1:${port}`);
  const caller = session.request({ ":method": "POST" }, { endStream: true });
  const [stream]: ServerHttp2Stream[] = await once(server, "stream");
  if (stream === undefined) expect.unreachable();
  const reset = vi.fn<() => void>(() => stream.close(11));
  const answer = new GrpcAnswer(stream, {
    headers: { ":status": 200 },
    connection: session,
    unread: new UnreadAnswers(limitBytes),
    reset,
  });
  stream.on("error", () => undefined).once("close", () => answer.close());
  return {
    answer,
    stream,
    caller,
    reset,
    [Symbol.asyncDispose]: async () => {
      session.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

const message = frameOf(Buffer.from("hello"));

test("messages of one turn go out in one write, the next ones in another, in order", async () => {
  await using at = await answering();
  const got = answerOf(at.caller);
  const write = vi.spyOn(at.stream, "write");
  for (let n = 0; n < 100; n++) expect(at.answer.write(frameOf(Buffer.from([n])))).toBeUndefined();
  await turn();
  void at.answer.write(message);
  await turn();
  at.answer.end({ "grpc-status": "0" });
  const { body, trailers } = await got;
  expect(body).toEqual(Buffer.concat([...Array(100).keys()].map((n) => frameOf(Buffer.from([n]))).concat(message)));
  expect(trailers).toMatchObject({ "grpc-status": "0" });
  expect(write).toHaveBeenCalledTimes(2);
});

test("a message of the turn in which an answer ends goes out before the trailers", async () => {
  await using at = await answering();
  const got = answerOf(at.caller);
  void at.answer.write(message);
  at.answer.end({ "grpc-status": "0" }, message);
  expect((await got).body).toEqual(Buffer.concat([message, message]));
});

test("a caller that takes nothing holds the writer up with little waiting, and its leaving sets the writer free", async () => {
  await using at = await answering();
  at.caller.on("error", () => undefined);
  const frame = frameOf(Buffer.alloc(1_000));
  let room: Promise<void> | undefined;
  for (let n = 0; n < 10_000 && room === undefined; n++) {
    room = at.answer.write(frame);
    if (n % 10 === 0) await turn();
  }
  expect(room).toBeDefined();
  expect(at.stream.writableLength).toBeLessThan(at.stream.writableHighWaterMark + 20_000);
  at.caller.close(8);
  await room;
  expect(at.stream.destroyed).toBe(true);
  expect(at.answer.write(frame)).toBeUndefined();
  at.answer.end({ "grpc-status": "0" });
  expect(at.answer.ended).toBe(false);
});

test("the writer goes on when the caller has taken what was there", async () => {
  await using at = await answering();
  const room = at.answer.write(frameOf(Buffer.alloc(500_000)));
  expect(room).toBeDefined();
  const got = answerOf(at.caller);
  await room;
  at.answer.end({ "grpc-status": "0" });
  expect((await got).body).toHaveLength(500_005);
});

test("an answer is given up where its connection has too much that was not taken", async () => {
  await using at = await answering(100_000);
  at.caller.on("error", () => undefined);
  at.answer.end({ "grpc-status": "0" }, frameOf(Buffer.alloc(500_000)));
  expect(at.reset).toHaveBeenCalledTimes(1);
  await new Promise((resolve) => at.caller.once("close", resolve));
  expect(at.caller.rstCode).toBe(11);
});
