import { expect, test } from "vitest";
import { closedJson } from "../../src/shaping/closed-json.ts";

test("the beginning of a JSON text ends after its last whole entry, wherever it was cut", () => {
  const whole = {
    data: [
      { id: 1, name: 'a "b", [c' },
      { id: 2, tags: ["x", "y\\"] },
    ],
    total: 2,
  };
  const text = JSON.stringify(whole);
  for (let length = 0; length <= text.length; length++) {
    const closed = closedJson(text.slice(0, length));
    if (closed !== undefined) expect(() => JSON.parse(closed) as unknown).not.toThrow();
  }
  expect(closedJson(text)).toBe(`${text.slice(0, text.lastIndexOf(","))}}`);
  expect(closedJson('{"a":1')).toBeUndefined();
});
