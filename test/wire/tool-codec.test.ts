import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { expect, test } from "vitest";
import { Delivery, ToolKind, ToolSchema, ToolState } from "../../gen/toolgate/v1/tool_pb.ts";
import { createToolCodec } from "../../src/wire/tool-codec.ts";
import { READY, toolDefinition } from "../service/fake-registry.ts";

const definition = toolDefinition({
  name: "order_status",
  title: "Order status",
  description: "查询订单状态",
  kind: "http",
  inputSchema: { type: "object", properties: { id: { const: 9007199254740993n } } },
  outputSchema: { type: "object" },
  hints: { readOnly: true, destructive: false },
  labels: { team: "shop" },
  delivery: "incremental",
  toolsets: ["shop"],
  defaultTimeoutMs: 1500,
  leaseExpireTimeMs: 1_700_000_010_000,
});

test("a tool is carried word for word [S2-26]", () => {
  const message = createToolCodec((schema) => ({ ...schema, description: "for providers" })).message(
    { definition, availability: { state: "unavailable", reason: "no key" } },
    "declared",
  );
  expect(message).toMatchObject({
    name: "order_status",
    title: "Order status",
    description: "查询订单状态",
    inputSchemaJson: '{"type":"object","properties":{"id":{"const":9007199254740993}}}',
    outputSchemaJson: '{"type":"object"}',
    kind: ToolKind.HTTP,
    state: ToolState.UNAVAILABLE,
    stateReason: "no key",
    labels: { team: "shop" },
    source: "file:order_status.yaml",
    etag: "etag-order_status",
    alias: "order_status",
    contractDigest: "digest-order_status",
    toolsets: ["shop"],
    delivery: Delivery.INCREMENTAL,
    createTime: { seconds: 1_700_000_000n, nanos: 0 },
    updateTime: { seconds: 1_700_000_000n, nanos: 500_000_000 },
    defaultTimeout: { seconds: 1n, nanos: 500_000_000 },
    leaseExpireTime: { seconds: 1_700_000_010n },
  });
});

test("a hint that is unknown is absent, one that is false is not", () => {
  const { hints } = createToolCodec((schema) => ({ ...schema, description: "for providers" })).message(
    { definition, availability: READY },
    "declared",
  );
  expect(hints).toMatchObject({ readOnly: true, destructive: false });
  expect(hints?.idempotent).toBeUndefined();
});

test("schemas can be left out, and an output schema that is not declared is absent", () => {
  const codec = createToolCodec((schema) => ({ ...schema, description: "for providers" }));
  const bare = codec.message({ definition, availability: READY }, "omitted");
  expect(bare.inputSchemaJson).toBe("");
  expect(bare.outputSchemaJson).toBeUndefined();
  const without = toolDefinition({ name: "x" });
  expect(codec.message({ definition: without, availability: READY }, "declared").outputSchemaJson).toBeUndefined();
});

test("a message is made once for a definition and an availability", () => {
  const codec = createToolCodec((schema) => ({ ...schema, description: "for providers" }));
  const first = codec.message({ definition, availability: READY }, "declared");
  expect(codec.message({ definition, availability: { ...READY } }, "declared")).toBe(first);
  const down = codec.message({ definition, availability: { state: "degraded", reason: "slow" } }, "declared");
  expect(down).not.toBe(first);
  expect(down.state).toBe(ToolState.DEGRADED);
});

test.each(["declared", "provider", "omitted"] as const)(
  "the bytes are those of the message with its length before them (schemas: %s)",
  (schemas) => {
    const codec = createToolCodec((schema) => ({ ...schema, description: "for providers" }));
    const view = { definition, availability: READY };
    const bytes = codec.delimited(view, schemas);
    expect(codec.delimited(view, schemas)).toBe(bytes);
    const inner = new BinaryReader(bytes).bytes();
    expect(inner).toEqual(toBinary(ToolSchema, codec.message(view, schemas)));
    expect(fromBinary(ToolSchema, inner).name).toBe("order_status");
  },
);
