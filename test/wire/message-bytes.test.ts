import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ToolSchema } from "../../gen/toolgate/v1/tool_pb.ts";
import { keepMessageBytes, messageBytes } from "../../src/wire/message-bytes.ts";

test("a message is encoded, or given as the bytes that were kept for it", () => {
  const message = create(ToolSchema, { name: "orders" });
  expect(fromBinary(ToolSchema, messageBytes(ToolSchema, message)).name).toBe("orders");
  const bytes = toBinary(ToolSchema, message);
  keepMessageBytes(message, bytes);
  expect(messageBytes(ToolSchema, message)).toBe(bytes);
  expect(Object.keys(message)).not.toContain("binary form");
});
