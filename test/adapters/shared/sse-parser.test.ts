import { expect, test } from "vitest";
import { SseParser } from "../../../src/adapters/shared/sse-parser.ts";
import { GatewayError } from "../../../src/core/errors.ts";

const limit = {
  maxLength: 20,
  exceeded: (what: string) => new GatewayError("RESULT_TOO_LARGE", `${what} too long`),
};

/** Data of the events in a text, given in pieces of so many characters. */
function parse(text: string, size = text.length, end = false): string[] {
  const parser = new SseParser({ ...limit, maxLength: 10_000 });
  const events = [];
  for (let at = 0; at < text.length; at += size) events.push(...parser.push(text.slice(at, at + size)));
  const open = end ? parser.end() : undefined;
  return [...events, ...(open === undefined ? [] : [open])].map((event) => event.data);
}

test.for([
  ["LF", "\n"],
  ["CR LF", "\r\n"],
  ["CR", "\r"],
] as const)("lines end with %s, cut anywhere [U-D10]", ([, end]) => {
  const text = ["data: a", "data: b", "", ": comment", "", "data:c", "", ""].join(end);
  for (let size = 1; size <= text.length; size++) expect(parse(text, size)).toEqual(["a\nb", "c"]);
});

test("line ends may be mixed", () => {
  expect(parse("data: a\rdata: b\r\ndata: c\n\r\n\rdata: d\n\n", 1)).toEqual(["a\nb\nc", "d"]);
});

test("an event is given at its empty line, without waiting for what may follow a CR", () => {
  const parser = new SseParser({ ...limit, maxLength: 100 });
  expect(parser.push("data: a\r\r").map((event) => event.data)).toEqual(["a"]);
  expect(parser.push("\ndata: b\r\n")).toEqual([]);
  expect(parser.push("\r\n").map((event) => event.data)).toEqual(["b"]);
});

test.for([
  ["one space after the colon is no data", "data:  a\n\n", [" a"]],
  ["a field without a colon has no value", "data\n\n", [""]],
  ["two of them make a line break", "data\ndata\n\n", ["\n"]],
  ["an empty value is data", "data:\n\n", [""]],
  ["an event without data is none", "event: x\nid: 1\n\n", []],
  ["unknown fields and comments mean nothing", "foo: 1\n:data: x\ndata: a\n: y\n\n", ["a"]],
  ["a field's name is not trimmed", " data: a\n\n", []],
  ["colons in a value are part of it", "data: a:b: c\n\n", ["a:b: c"]],
] as const)("%s", ([, text, events]) => {
  expect(parse(text)).toEqual(events);
});

test("type, id and retry belong to the event or stay, as the standard says", () => {
  const parser = new SseParser({ ...limit, maxLength: 100 });
  const events = parser.push(
    "event: a\nid: 1\nretry: 1500\ndata: x\n\ndata: y\n\nid: 2\0\nretry: 1s\ndata: z\n\nid\ndata: w\n\n",
  );
  expect(events).toEqual([
    { type: "a", data: "x", lastEventId: "1" },
    { type: "message", data: "y", lastEventId: "1" },
    { type: "message", data: "z", lastEventId: "1" },
    { type: "message", data: "w", lastEventId: "" },
  ]);
  expect(parser.retryMs).toBe(1_500);
});

test("what a whole stream leaves open is an event, where it has data", () => {
  expect(parse("data: a\n\ndata: b", 3, true)).toEqual(["a", "b"]);
  expect(parse("data: a\n\ndata: b\n", 3, true)).toEqual(["a", "b"]);
  expect(parse("data: a\n\nevent: b", 3, true)).toEqual(["a"]);
});

test("one line and one event have a limit", () => {
  expect(() => new SseParser(limit).push("data: 0123456789abcdef")).toThrow("line too long");
  expect(() => new SseParser(limit).push(`${"x".repeat(21)}\n`)).toThrow("line too long");
  const parser = new SseParser(limit);
  parser.push("data: 0123456789\n");
  parser.push("data: 012345678\n");
  expect(() => parser.push("data: 0\n")).toThrow("event too long");
});
