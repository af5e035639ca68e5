import { expect, test } from "vitest";
import type { Upstream, UpstreamTool } from "../../src/core/adapter.ts";
import { showHidden } from "../../src/core/hidden-text.ts";
import { screenOffered } from "../../src/registry/screened-offer.ts";
import { ScreenedUpstream } from "../../src/registry/screened-upstream.ts";

const screen = (text: string): string => text.replaceAll("hunter22", "***");

function tool(changes: Partial<UpstreamTool>): UpstreamTool {
  return { name: "a", title: "", description: "", inputSchema: {}, outputSchema: undefined, hints: {}, ...changes };
}

function screenAll(tools: readonly UpstreamTool[], by: typeof screen) {
  const screened = tools.map((each) => screenOffered(each, by));
  return { tools: screened.flatMap((each) => each.tool ?? []), notes: screened.flatMap((each) => each.note ?? []) };
}

test("what a server says for readers is screened, and a note says so [K-D01]", () => {
  const schema = {
    type: "object",
    properties: { q: { type: "string", description: "as hunter22", title: "hunter22" } },
  };
  const { tools, notes } = screenAll(
    [tool({ title: "hunter22", description: "x hunter22", inputSchema: schema, outputSchema: schema })],
    screen,
  );
  const clean = { type: "object", properties: { q: { type: "string", description: "as ***", title: "***" } } };
  expect(tools).toEqual([tool({ title: "***", description: "x ***", inputSchema: clean, outputSchema: clean })]);
  expect(notes).toEqual([{ tool: "a", message: expect.stringContaining("stand as ***") }]);
});

test("a tool whose call would not be what is shown is left out, and the others stay as they are", () => {
  const fine = tool({ name: "fine" });
  const odd = [
    tool({ name: "x-hunter22" }),
    tool({ name: "key", inputSchema: { properties: { hunter22: {} } } }),
    tool({ name: "value", inputSchema: { properties: { a: { enum: ["b", "hunter22"] } } } }),
    tool({ name: "out", outputSchema: { const: "hunter22" } }),
  ];
  const { tools, notes } = screenAll([...odd, fine], screen);
  expect(tools).toEqual([fine]);
  expect(tools[0]).toBe(fine);
  expect(notes.map((note) => note.tool)).toEqual(["x-***", "key", "value", "out"]);
});

test("a name with characters that are not seen is left to who says why", () => {
  const named = tool({ name: "a\u202eb" });
  expect(screenAll([named], showHidden).tools).toEqual([named]);
  const { tools, notes } = screenAll([tool({ description: "Create\u{e0041}\u202e" })], showHidden);
  expect(tools[0]?.description).toBe("Create<U+E0041><U+202E>");
  expect(notes[0]?.message).toContain("<U+…>");
});

test("what is no text where one is due is left to who checks it", () => {
  const odd = { ...tool({}), title: 7, description: null, inputSchema: "x" } as unknown as UpstreamTool;
  expect(screenAll([odd], screen).tools).toEqual([odd]);
});

test("an upstream says neither why it is down nor what a probe found with a secret in it", async () => {
  const offer = { tools: [tool({ description: "hunter22" })], notes: [] };
  const down = { state: "unavailable", reason: "no hunter22", mend: "see hunter22" } as const;
  const inner: Upstream = {
    availability: () => down,
    offer: () => offer,
    invoke: () => {
      throw new Error("not called");
    },
    probe: async () => ({ ok: false, message: "hunter22", mend: "hunter22" }),
    [Symbol.asyncDispose]: async () => undefined,
  };
  await using upstream = new ScreenedUpstream(inner, screen);
  expect(upstream.availability()).toEqual({ state: "unavailable", reason: "no ***", mend: "see ***" });
  expect(upstream.availability()).toBe(upstream.availability());
  expect(upstream.offer()).toBe(offer);
  expect(await upstream.probe(AbortSignal.timeout(1_000))).toEqual({ ok: false, message: "***", mend: "***" });
});
