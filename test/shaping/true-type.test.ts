import { expect, test } from "vitest";
import type { ContentPart, ToolEvent } from "../../src/core/call.ts";
import type { KeepResult } from "../../src/core/results.ts";
import { createResultShaper } from "../../src/shaping/result-shaper.ts";
import { withTrueTypes } from "../../src/shaping/true-type.ts";
import { makeCall, makeRules, redactor, resultEvent, source } from "./fixtures.ts";

const PNG = Buffer.from("\x89PNG\r\n\x1a\n and so on", "latin1");
const WAV = Buffer.from("RIFF\x10\x20\0\0WAVEfmt ", "latin1");

function blob(mimeType: string, data: Uint8Array): ContentPart {
  return { type: "blob", mimeType, data };
}

test("bytes have the media type that they show, and a notice where another one was declared", () => {
  const typed = (mimeType: string, data: Uint8Array) => {
    const { content, notices } = withTrueTypes({ content: [blob(mimeType, data)], effect: "none" });
    return [content[0]?.type === "blob" ? content[0].mimeType : "", notices?.map(({ reason }) => reason) ?? []];
  };
  expect(typed("image/png", PNG)).toEqual(["image/png", []]);
  expect(typed("image/jpeg", PNG)).toEqual(["image/png", ["MEDIA_TYPE_MISMATCH"]]);
  expect(typed("application/octet-stream", PNG)).toEqual(["image/png", []]);
  expect(typed("audio/x-wav", WAV)).toEqual(["audio/x-wav", []]);
  expect(typed("image/gif", WAV)).toEqual(["audio/wav", ["MEDIA_TYPE_MISMATCH"]]);
  expect(typed("application/x-own", Buffer.from("own"))).toEqual(["application/x-own", []]);
});

/** Frames of MP3, each with this header and as long as it says. */
function mp3(header: readonly number[], size: number, frames: number): Buffer {
  return Buffer.concat(Array.from({ length: frames }, () => Buffer.concat([Buffer.from(header)], size)));
}

test("MP3 is known without a tag, by two frames in a row, and nothing else is taken for it", () => {
  // 128 kbit/s at 44,100 Hz; the same with padding; MPEG 2 with 64 kbit/s at 22,050 Hz; MPEG 2.5 with 32 kbit/s at 8,000 Hz.
  const sizes = [
    [[0xff, 0xfb, 0x90, 0], 417],
    [[0xff, 0xfb, 0x92, 0], 418],
    [[0xff, 0xf3, 0x80, 0], 208],
    [[0xff, 0xe3, 0x48, 0], 288],
  ] as const;
  const typeOf = (data: Uint8Array): unknown => withTrueTypes({ content: [blob("", data)], effect: "none" }).content[0];
  for (const [header, size] of sizes) {
    expect(typeOf(mp3(header, size, 2))).toMatchObject({ mimeType: "audio/mpeg" });
    expect(typeOf(mp3(header, size, 1))).toMatchObject({ mimeType: "" });
    expect(typeOf(mp3(header, size + 1, 2))).toMatchObject({ mimeType: "" });
  }
  // Other layers, reserved values, a free bit rate, UTF-16 and JPEG.
  for (const header of [
    [0xff, 0xfd, 0x90, 0],
    [0xff, 0xf9, 0x90, 0],
    [0xff, 0xeb, 0x90, 0],
    [0xff, 0xfb, 0xf0, 0],
    [0xff, 0xfb, 0x9c, 0],
    [0xff, 0xfb, 0x00, 0],
    [0xff, 0xfe, 0x61, 0],
  ]) {
    expect(typeOf(mp3(header, 417, 3))).toMatchObject({ mimeType: "" });
  }
});

test("of binary parts that are too large together the largest become links to what is kept, the others stay", async () => {
  const kept: number[] = [];
  const keep: KeepResult = (mediaType, content) => {
    kept.push(content.length);
    const facts = { id: "i", principal: "p", tool: "t", mediaType, bytes: 1, complete: true };
    const done = Promise.resolve({ ok: true as const, kept: { ...facts, createTimeMs: 0, expireTimeMs: 1 } });
    return { handle: `result://${kept.length}`, done };
  };
  const content = [
    blob("image/png", PNG),
    blob("x/large", Buffer.alloc(4_000_000)),
    blob("x/mid", Buffer.alloc(2_000_000)),
  ];
  const shape = async (own: KeepResult | undefined): Promise<ToolEvent | undefined> => {
    const shaper = createResultShaper({ tool: "t", rules: makeRules(), redactor });
    let last: ToolEvent | undefined;
    for await (const event of shaper.shape(source(resultEvent({ content })), makeCall(), { keep: own })) last = event;
    return last;
  };
  expect(await shape(keep)).toMatchObject({
    result: {
      failure: undefined,
      content: [
        { type: "blob", mimeType: "image/png" },
        { type: "link", uri: "result://1", mimeType: "x/large", sizeBytes: 4_000_000 },
        { type: "blob", mimeType: "x/mid" },
      ],
    },
  });
  expect(kept).toEqual([4_000_000]);
  expect(await shape(undefined)).toMatchObject({ result: { failure: { reason: "RESULT_TOO_LONG" } } });
});
