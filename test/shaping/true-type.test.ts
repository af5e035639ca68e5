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
