import { expect, test } from "vitest";
import type { ToolEvent, UpstreamEvent } from "../../src/core/call.ts";
import type { EarlyStopRules } from "../../src/core/shaper.ts";
import { parseResultRules } from "../../src/shaping/result-rules.ts";
import { resultEvent, shapeAll, source } from "./fixtures.ts";

async function* endless(pieces: readonly string[], state: { left: boolean }): AsyncGenerator<UpstreamEvent> {
  try {
    for (let i = 0; ; i++) yield { type: "upstream-delta", text: pieces[i] ?? "and on " };
  } finally {
    state.left = true;
  }
}

async function stopped(earlyStop: EarlyStopRules, pieces: readonly string[]) {
  const state = { left: false };
  const events = await shapeAll(endless(pieces, state), { rules: { earlyStop } });
  return { ...told(events), left: state.left };
}

function told(events: readonly ToolEvent[]) {
  const text = events.map((event) => (event.type === "delta" ? event.text : "")).join("");
  const last = events.at(-1);
  return { text, result: last?.type === "completed" ? last.result : undefined };
}

test.for([
  [{ match: "DONE \\d" }, ["work\nDO", "NE ", "7 more"], "work\nDONE 7", "match"],
  [{ match: "b" }, ["abc"], "ab", "match"],
  [{ maxLength: 5 }, ["订单", "订单订单"], "订单订单订", "max_length"],
  [{ maxTokens: 2 }, ["abc", "订more"], "abc订", "max_tokens"],
  [{ match: "x", maxLength: 3, maxTokens: 9 }, ["abcx"], "abc", "max_length"],
] as const)(
  "a stream that is enough by %j ends there, and its upstream is let go",
  async ([rules, pieces, text, rule]) => {
    const got = await stopped(rules, pieces);
    expect(got.text).toBe(text);
    expect(got.left).toBe(true);
    expect(got.result).toMatchObject({ earlyStop: rule, failure: undefined, truncation: undefined, content: [] });
  },
);

test("a stream that ends before that is as it is", async () => {
  const events = await shapeAll(source({ type: "upstream-delta", text: "abc" }, resultEvent({})), {
    rules: { earlyStop: { match: "x", maxLength: 10 } },
  });
  const { text, result } = told(events);
  expect(text).toBe("abc");
  expect(result?.earlyStop).toBeUndefined();
});

test("rules that could not hold are refused where they stand", () => {
  const issuesOf = (early_stop: object, delivery: "conclusive" | "incremental") =>
    parseResultRules({ early_stop: { ...early_stop } }, { delivery }).issues.map(({ pointer }) => pointer);
  expect(issuesOf({ match: "a" }, "incremental")).toEqual([]);
  expect(issuesOf({ match: "a" }, "conclusive")).toEqual(["/early_stop"]);
  for (const match of ["^a", "a$", "(?=a)", "a*"])
    expect(issuesOf({ match }, "incremental")).toEqual(["/early_stop/match"]);
});
