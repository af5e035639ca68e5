import { expect, test } from "vitest";
import { createGrpcAdapter } from "../../../src/adapters/grpc/index.ts";
import { configure, FOLDER, problemsOf, type ToolOptions } from "./fixture.ts";

const address = "http://127.0.0.1:50051";

test.for([
  [{ address: "127.0.0.1:50051" }, "/grpc/address is no address of a gRPC server; write `http://HOST:PORT`"],
  [{ address: "grpc://a:1" }, "/grpc/address is no address of a gRPC server"],
  [{ address: "http://u:p@a:1" }, "/grpc/address holds a name or password"],
  [{ address: "http://a:1/path" }, "/grpc/address has more than host and port"],
  [{ address: "http://{host}:1" }, "/grpc/address is fixed text"],
  [{ address: "unix:relative" }, "/grpc/address names no socket"],
  [{ address: "unix:/a", allow_private: true }, "/grpc/allow_private has no effect on a Unix socket"],
  [{ address, tls: { ca: "ca.pem" } }, "/grpc/tls has no effect on an `http:` address"],
  [{ address: "https://a:1", tls: { cert: "a.pem" } }, "/grpc/tls `cert` and `key` belong together"],
  [{ address, method: "GetOrder" }, "/grpc/method names no method"],
  [{ address, method: "shop.v1.OrderService.GetOrder" }, "/grpc/method names no method"],
  [{ address, reflection: true, descriptor: "a.binpb" }, "/grpc has both `descriptor` and `reflection`"],
  [{ address, descriptor: "a\0" }, "/grpc/descriptor holds a NUL"],
  [{ address, request: { id: "$missing" } }, "/grpc/request/id `$missing` names no parameter"],
  [{ address, request: {} }, "/grpc/request parameter `order_id` stands nowhere in the message"],
  [{ address, metadata: { "grpc-timeout": "1S" } }, "/grpc/metadata/grpc-timeout is set by the gateway"],
  [
    { address, metadata: { traceparent: "x" } },
    "/grpc/metadata/traceparent header `traceparent` is set by the gateway",
  ],
  [{ address, metadata: { "x y": "1" } }, "/grpc/metadata/x y `x y` is no header name"],
  [{ address, metadata: { "x-a": "1", "X-A": "2" } }, "/grpc/metadata/X-A is set twice"],
  [{ address, metadata: { "x-a": "${" } }, "/grpc/metadata/x-a `${` without the name of a variable"],
  [{ address, egress: { allow: ["http://a"] } }, "/grpc/egress/allow/0 is no place"],
] as const)("a declaration is refused with where and why: %j", ([grpc, words]) => {
  expect(problemsOf({ grpc }).join("\n")).toContain(words);
});

test.for([
  [{ address: "http://10.0.0.1:1" }, "all", true],
  [{ address: "http://10.0.0.1:1" }, "loopback", false],
  [{ address }, "loopback", true],
  [{ address }, "none", false],
  [{ address: "https://orders.example.test" }, "none", true],
  [{ address: "https://orders.example.test", allow_private: true }, "none", false],
  [{ address: "unix:/run/a.sock" }, "all", true],
  [{ address: "unix:/run/a.sock" }, "loopback", false],
  [{ address: "https://orders.example.test", descriptor: "../a.binpb" }, "none", false],
  [{ address: "https://orders.example.test", descriptor: "/a.binpb" }, "none", false],
  [{ address: "https://orders.example.test", tls: { ca: "/etc/ca.pem" } }, "none", false],
  [{ address: "https://orders.example.test", descriptor: "/a.binpb" }, "all", true],
] as const)("who registers over the wire opens no door to the inside: %j, %s", ([grpc, reach, ok]) => {
  expect(problemsOf({ grpc, reach }).length === 0).toBe(ok);
});

test("what is reached, which secrets it takes and whether it changes something is known of it", () => {
  const grpc = { address, metadata: { authorization: "Bearer ${TOKEN}", "x-key": { secret_ref: "KEY" } } };
  expect(configure({ grpc })).toMatchObject({
    ok: true,
    upstream: address,
    readOnly: false,
    secretRefs: ["TOKEN", "KEY"],
  });
  expect(configure({ grpc, hints: { readOnly: true } })).toMatchObject({ readOnly: true });
});

test("it explains itself without a value of its metadata", () => {
  const options: ToolOptions = {
    grpc: {
      address: "https://orders.example.test",
      request: { order_id: "$order_id" },
      metadata: { authorization: "Bearer ${TOKEN}", "x-key": { secret_ref: "KEY" }, "x-plain": "literal" },
      tls: { ca: "ca.pem" },
    },
  };
  const configured = configure(options);
  if (!configured.ok) throw new Error("refused");
  const adapter = createGrpcAdapter({ environment: {}, folder: FOLDER });
  const explained = adapter.explain(configured.config as never).map(({ key, value }) => `${key}: ${value}`);
  expect(explained).toEqual([
    "grpc.method: shop.v1.OrderService/GetOrder",
    "grpc.descriptor: orders.binpb",
    "grpc.address: https://orders.example.test",
    'grpc.request: {"order_id":"$order_id"}',
    "grpc.metadata.authorization: TOKEN",
    "grpc.metadata.x-key: KEY",
    "grpc.metadata.x-plain: ***",
    "grpc.tls.ca: ca.pem",
  ]);
});
