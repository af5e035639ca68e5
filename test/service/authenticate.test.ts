import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import type { Peer } from "../../src/service/authenticate.ts";
import { CLIENTS, collect, failureOf } from "./clients.ts";
import { completed } from "./fake-registry.ts";
import { grpcClients, serve } from "./serve.ts";

test("who calls is told from headers and connection, and the tool sees it", async () => {
  const peers: Peer[] = [];
  await using served = await serve({
    authenticate: async (headers, peer) => {
      peers.push(peer);
      return { id: headers.get("authorization") ?? "", roles: [] };
    },
  });
  const seen: string[] = [];
  served.registry.add({ name: "who" }, async function* (_call, { principal }) {
    seen.push(principal.id);
    yield completed();
  });
  await grpcClients(served.url).tools.call({ invocation: { name: "who" } }, { headers: { authorization: "ann" } });
  expect(seen).toEqual(["ann"]);
  expect(peers).toEqual([{ address: "127.0.0.1", port: expect.any(Number), encrypted: false }]);
});

test.each(Object.keys(CLIENTS))("%s sees why it was refused, before its message is looked at", async (name) => {
  await using served = await serve({
    authenticate: () => {
      throw new GatewayError("PERMISSION_DENIED", "not you");
    },
  });
  using client = CLIENTS[name]?.(served.url) ?? expect.unreachable();
  for (const work of [() => client.call({ name: "" }), () => collect(client.stream({}))]) {
    expect(await failureOf(work())).toMatchObject({
      code: Code.PermissionDenied,
      reason: "PERMISSION_DENIED",
      message: "not you",
    });
  }
});

test("a fault in authentication refuses the call and tells nothing", async () => {
  await using served = await serve({
    authenticate: () => {
      throw new TypeError("key file at /etc/keys");
    },
  });
  const failure = await failureOf(grpcClients(served.url).tools.list({}));
  expect(failure).toMatchObject({ code: Code.Internal, reason: "INTERNAL", message: "internal error" });
});
