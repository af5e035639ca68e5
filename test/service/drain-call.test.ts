import { expect, test } from "vitest";
import type { ToolResult } from "../../src/core/call.ts";
import type { CallEvent } from "../../src/service/call-record.ts";
import { drainCall } from "../../src/service/drain-call.ts";
import { textResult } from "./fake-registry.ts";

const NOTHING: ToolResult = { ...textResult(""), content: [] };

/** What a call with these deltas and this result gives. */
async function drained(
  deltas: readonly (readonly [part: number, text: string])[],
  result: ToolResult = NOTHING,
): Promise<ToolResult | undefined> {
  const events = (async function* (): AsyncGenerator<CallEvent> {
    yield { type: "started", callId: "c", deadlineMs: 0, resumeWindowMs: undefined };
    for (const [index, text] of deltas) yield { type: "delta", index, text };
    const stats = { startTimeMs: 0, queuedMs: 0, totalMs: 0, attempts: 1, effect: "none", replayed: false } as const;
    yield {
      type: "completed",
      tool: { name: "t", contractDigest: "d", kind: "http" },
      result,
      stats,
      exchanges: undefined,
    };
  })();
  const { callId, end } = await drainCall(events);
  expect(callId).toBe("c");
  return end.result;
}

function texts(result: ToolResult | undefined): string[] {
  return (result?.content ?? []).map((part) => (part.type === "text" ? part.text : part.type));
}

test("streamed text stands in the result, part by part, among what was not streamed", async () => {
  expect(
    texts(
      await drained([
        [0, "a"],
        [0, "b"],
      ]),
    ),
  ).toEqual(["ab"]);
  expect(
    texts(
      await drained([
        [1, "x"],
        [0, "a"],
        [1, "y"],
      ]),
    ),
  ).toEqual(["a", "xy"]);
  expect(
    texts(
      await drained([[1, "mid"]], { ...NOTHING, content: [...textResult("0").content, ...textResult("2").content] }),
    ),
  ).toEqual(["0", "mid", "2"]);
});

test("a call that streamed nothing keeps its result as it is", async () => {
  const result = { ...NOTHING, structuredJson: "{}" };
  expect(await drained([], result)).toBe(result);
});

test("an endless stream is held to 700,000 characters, with a mark, and the result says so [G-D04]", async () => {
  const pieces = Array.from({ length: 30 }, () => [0, "😀".repeat(50_000)] as const);
  const result = await drained([...pieces, [1, "dropped"]]);
  expect(texts(result)).toEqual([`${"😀".repeat(700_000)}\n[cut: first 700000 of 1500007 characters]`]);
  expect(result?.truncation).toEqual({ originalLength: 1_500_007, mode: "head" });
});

test("text of exactly the limit is whole", async () => {
  const result = await drained([
    [0, "a".repeat(699_999)],
    [1, "😀"],
  ]);
  expect(texts(result)[1]).toBe("😀");
  expect(result?.truncation).toBeUndefined();
});
