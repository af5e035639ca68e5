import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { type Frame, FrameReader, numberPayload, writeFrame } from "../../../src/adapters/shared/launcher/frames.ts";

test("messages are put together from bytes in any pieces", () => {
  const link = new PassThrough();
  writeFrame(link, "start", 1, Buffer.from("{}"));
  writeFrame(link, "input-end", 4_294_967_295, Buffer.alloc(0));
  writeFrame(link, "output", 2, Buffer.alloc(300, 7));
  writeFrame(link, "credit", 3, numberPayload(65_536));
  const bytes = link.read() as Buffer;
  for (const size of [1, 2, 8, 9, 10, 100, bytes.length]) {
    const reader = new FrameReader();
    const frames: Frame[] = [];
    for (let from = 0; from < bytes.length; from += size)
      frames.push(...reader.push(bytes.subarray(from, from + size)));
    expect(frames.map(({ kind, id, payload }) => [kind, id, payload.length])).toEqual([
      ["start", 1, 2],
      ["input-end", 4_294_967_295, 0],
      ["output", 2, 300],
      ["credit", 3, 4],
    ]);
    expect(frames[3]?.payload.readUInt32BE()).toBe(65_536);
  }
});

test("what is no message ends the link", () => {
  const reader = new FrameReader();
  expect(() => reader.push(Buffer.from("HTTP/1.1 400 Bad Request"))).not.toThrow();
  expect(() => new FrameReader().push(Buffer.from([0, 0, 0, 5, 99, 0, 0, 0, 1]))).toThrow("carries something else");
});
