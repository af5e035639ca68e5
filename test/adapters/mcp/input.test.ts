import { expect, test } from "vitest";
import { continuedParams, inputReply, inputRequest, neededInput } from "../../../src/adapters/mcp/input.ts";
import { ParkedCalls } from "../../../src/adapters/mcp/parked-calls.ts";
import { callResult } from "../../../src/adapters/mcp/result.ts";
import { createFakeClock } from "../../core/fake-clock.ts";

const FORM = { message: "Which size?", requestedSchema: { type: "object" } };

test("what a server asks is read by its kind, and what is nothing to ask a caller is left alone", () => {
  expect(inputRequest("elicitation/create", FORM)).toEqual({
    kind: "form",
    message: "Which size?",
    schema: { type: "object" },
    params: FORM,
  });
  const url = { mode: "url", message: "Log in", url: "https://example.com", elicitationId: "e1" };
  expect(inputRequest("elicitation/create", url)).toEqual({
    kind: "url",
    message: "Log in",
    url: "https://example.com",
    params: url,
  });
  expect(inputRequest("sampling/createMessage", { systemPrompt: "Be brief" })).toMatchObject({
    kind: "sampling",
    message: "Be brief",
  });
  expect(inputRequest("roots/list", undefined)).toEqual({ kind: "roots", message: "", params: {} });
  expect(inputRequest("ping", {})).toBeUndefined();
});

test.each([
  ["form", { action: "accept", content: { n: 1 } }, { result: { action: "accept", content: { n: 1 } } }],
  ["form", { action: "cancel" }, { result: { action: "cancel" } }],
  ["url", { action: "accept", content: {} }, { result: { action: "accept" } }],
  ["url", { action: "decline" }, { result: { action: "decline" } }],
  ["sampling", { action: "accept", content: { role: "assistant" } }, { result: { role: "assistant" } }],
  ["sampling", { action: "decline" }, { error: { code: -1 } }],
  [
    "roots",
    { action: "accept", content: { roots: [{ uri: "file:///a" }] } },
    { result: { roots: [{ uri: "file:///a" }] } },
  ],
] as const)("an answer to %s is what the protocol has for it: %j", (kind, answer, reply) => {
  expect(inputReply(kind, answer)).toMatchObject(reply);
});

test("a question of the stateless era is answered with its own state, which need not be there", () => {
  const raw = { resultType: "input_required", inputRequests: { a: { method: "elicitation/create", params: FORM } } };
  const needed = neededInput({ ...raw, requestState: '{"x":1}' });
  const answers = new Map([["a", { action: "accept", content: { n: 1 } } as const]]);
  expect(continuedParams({ state: needed?.state ?? "", answers })).toEqual({
    inputResponses: { a: { action: "accept", content: { n: 1 } } },
    requestState: '{"x":1}',
  });
  const later = neededInput({ resultType: "input_required", requestState: "s" });
  expect(later?.requests.size).toBe(0);
  expect(continuedParams({ state: later?.state ?? "", answers: new Map() })).toEqual({ requestState: "s" });
  expect(neededInput(raw)?.state).not.toContain("requestState");
});

test.each([
  { inputRequests: { a: { method: "tools/delete" } } },
  { inputRequests: { a: 5 } },
  { inputRequests: [] },
  { inputRequests: {}, requestState: 5 },
])("a question that cannot be read is a failure that keeps what came: %j", (question) => {
  const raw = { resultType: "input_required", ...question };
  const result = callResult(raw, { tool: "ask", readOnly: false });
  expect(result).toMatchObject({ value: raw, failure: { reason: "UPSTREAM_BAD_RESPONSE" } });
  expect(result.needsInput).toBeUndefined();
});

test("calls that wait have a bound in number and in time", async () => {
  const clock = createFakeClock();
  const ended: string[] = [];
  const parked = new ParkedCalls(clock);
  const call = { abandon: (reason: string) => void ended.push(reason) };
  const first = parked.keep(call);
  expect(first.expiresInMs).toBe(600_000);
  for (let i = 1; i < 32; i++) parked.keep(call);
  expect(parked.hasRoom).toBe(false);
  expect(parked.take(first.state)).toBe(call);
  expect([parked.take(first.state), parked.hasRoom]).toEqual([undefined, true]);
  await clock.advance(600_000);
  expect(ended).toEqual(Array.from({ length: 31 }, () => "nobody answered in time"));
  parked.keep(call);
  parked.abandon("closed");
  expect([ended.at(-1), parked.hasRoom]).toEqual(["closed", true]);
});
