import { expect, test } from "vitest";
import { idempotencyFieldStep } from "../../src/pipeline/steps/idempotency-field.ts";
import { reconcileStep } from "../../src/pipeline/steps/reconcile.ts";
import { withoutKeyField } from "../../src/registry/key-field.ts";
import { declare, ORDER_STATUS, problems } from "./declaration-fixture.ts";

const STEPS = { steps: [idempotencyFieldStep, reconcileStep] };

const REFUND =
  "name: refund\ndescription: Refund one order by its number\ntype: http\nendpoint: http://127.0.0.1:7434/refunds\nmethod: POST\n";

test("E4 loads, and callers do not see the parameter that it names", () => {
  const source = "file:order_status.yaml";
  const text = `${ORDER_STATUS}idempotency_field: request_id\nreconcile: order_history\n`;
  const { tool, explained, policy } = declare(text, { ...STEPS, source });
  expect(tool.inputSchema["properties"]).not.toHaveProperty("request_id");
  expect(explained).toEqual(
    expect.arrayContaining([
      { key: "idempotency_field", value: "request_id", origin: "file:order_status.yaml:23" },
      { key: "reconcile", value: "order_history", origin: "file:order_status.yaml:24" },
    ]),
  );
  expect(policy.effectClass).toBe("read");
});

test("a tool that may change something has the effect class `keyed` with it", () => {
  const classes = ["", "hints: { idempotent: true }\n", "hints: { read_only: true }\n"].map(
    (more) => declare(`${REFUND}${more}idempotency_field: request_id\n`, STEPS).policy.effectClass,
  );
  expect(classes).toEqual(["keyed", "keyed", "read"]);
});

test("a declared parameter leaves the callers' schema, required or not, and is a text for the adapter", () => {
  const schema = {
    type: "object",
    properties: { order: { type: "string" }, key: { type: "string", description: "The key" } },
    required: ["key", "order"],
    additionalProperties: false,
  };
  const { callers, adapter, issues } = withoutKeyField(schema, "key");
  expect(callers).toEqual({ ...schema, properties: { order: { type: "string" } }, required: ["order"] });
  expect(adapter).toEqual({
    ...schema,
    properties: { order: { type: "string" }, key: { type: "string" } },
    required: ["order", "key"],
  });
  expect(issues).toEqual([]);
  expect(withoutKeyField({ type: "object", properties: {}, required: ["key"] }, "key").callers).not.toHaveProperty(
    "required",
  );
});

test("a schema without such a key is left as it is", () => {
  const schema = { type: "object" };
  expect(withoutKeyField(schema, undefined)).toEqual({ callers: schema, adapter: schema, issues: [] });
});

test("a parameter that could refuse a key is refused, with the mend", () => {
  const declared = (param: string): string[] =>
    problems(`${REFUND}params: [{ name: key, ${param} }]\nidempotency_field: key\n`, STEPS);
  expect(declared("type: string, required: true, description: The key")).toEqual([]);
  expect(declared("type: integer")).toEqual([
    '7:1 `idempotency_field`: parameter `key` takes the key of a call, which is any text: expected `type: string` there, got text "integer"',
  ]);
  expect(declared("type: string, format: uuid")).toEqual([
    "7:1 `idempotency_field`: parameter `key` takes the key of a call, which is any text: remove `format` there",
  ]);
});

test("with a body template the parameter has to stand somewhere", () => {
  const body = "params: [{ name: order, type: string }]\nbody: { order: $order }\nidempotency_field: key\n";
  expect(problems(`${REFUND}${body}`, STEPS)[0]).toMatch(/`key`/);
  expect(problems(`${REFUND}${body}headers: { Idempotency-Key: "{key}" }\n`, STEPS)).toEqual([]);
});
