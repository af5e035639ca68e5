import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { failureOf } from "./clients.ts";
import { grpcClients, serve } from "./serve.ts";

function yaml(value: string) {
  return { case: "declarationYaml", value } as const;
}

/** A caller without a role, where the header says so. */
function roleFrom(headers: { get(name: string): string | null }) {
  return { id: headers.get("x-user") ?? "op", roles: headers.get("x-role") === "none" ? [] : ["operator"] };
}

test("a registration gives the tools it made, the revision and what was noticed", async () => {
  await using served = await serve();
  const { tools } = grpcClients(served.url);
  const response = await tools.register({
    declaration: yaml("name: fresh"),
    mustNotExist: true,
    lease: { seconds: 5n, nanos: 0 },
  });
  expect(response).toMatchObject({
    tools: [{ name: "fresh", source: "api" }],
    revision: 102n,
    warnings: ["short description"],
  });
  expect(served.registry.registered).toEqual([
    { text: "name: fresh", format: "yaml", validateOnly: false, etag: undefined, mustNotExist: true, leaseMs: 5000 },
  ]);
});

test("a refused declaration comes with its places", async () => {
  await using served = await serve();
  const failure = await failureOf(grpcClients(served.url).tools.register({ declaration: yaml("broken") }));
  expect(failure).toMatchObject({ code: Code.InvalidArgument, reason: "DECLARATION_INVALID", fields: ["/name"] });
});

test("the same request with the same id gets the same answer and registers once", async () => {
  await using served = await serve();
  const { tools } = grpcClients(served.url);
  const request = { declaration: yaml("name: fresh"), requestId: "r-1" };
  const [first, second] = await Promise.all([tools.register(request), tools.register(request)]);
  expect(second).toEqual(first);
  expect(await tools.register(request)).toEqual(first);
  expect(served.registry.registered).toHaveLength(1);
});

test("another request with the same id is refused, unless it is another caller's", async () => {
  await using served = await serve({ authenticate: roleFrom });
  const { tools } = grpcClients(served.url);
  await tools.register({ declaration: yaml("name: fresh"), requestId: "r-1" });
  const other = { declaration: yaml("name: other"), requestId: "r-1" };
  expect(await failureOf(tools.register(other))).toMatchObject({
    code: Code.InvalidArgument,
    reason: "REQUEST_ID_REUSED",
  });
  await tools.register(other, { headers: { "x-user": "bob" } });
  expect(served.registry.registered).toHaveLength(2);
});

test("a registration with an id goes on when its caller leaves, and the second attempt finds it", async () => {
  await using served = await serve();
  const go = Promise.withResolvers<void>();
  served.registry.holdRegistrations(go.promise);
  const { tools } = grpcClients(served.url);
  const request = { declaration: yaml("name: fresh"), requestId: "r-1" };
  expect((await failureOf(tools.register(request, { timeoutMs: 100 }))).code).toBe(Code.DeadlineExceeded);
  go.resolve();
  expect((await tools.register(request)).tools).toHaveLength(1);
  expect(served.registry.registered).toHaveLength(1);
});

test.each(["with space", "ü", "x".repeat(65)])("the id %j is refused", async (requestId) => {
  await using served = await serve();
  const failure = await failureOf(grpcClients(served.url).tools.register({ declaration: yaml("name: x"), requestId }));
  expect(failure).toMatchObject({ reason: "REQUEST_INVALID", fields: ["request_id"] });
});

test("removing gives the revision after it, and a tool that is not there is named unless that is fine", async () => {
  await using served = await serve();
  const { tools } = grpcClients(served.url);
  expect(await tools.unregister({ name: "echo" })).toMatchObject({ revision: 102n });
  expect((await failureOf(tools.unregister({ name: "echo" }))).reason).toBe("TOOL_NOT_FOUND");
  expect(await tools.unregister({ name: "echo", allowMissing: true })).toMatchObject({ revision: 102n });
  expect(await failureOf(tools.unregister({}))).toMatchObject({ reason: "REQUEST_INVALID", fields: ["name"] });
});

test("who lacks the operator's role may neither register, unregister, explain nor examine", async () => {
  await using served = await serve({ authenticate: roleFrom });
  const { tools, operator } = grpcClients(served.url);
  const headers = { "x-role": "none" };
  for (const work of [
    () => tools.register({ declaration: yaml("name: x") }, { headers }),
    () => tools.unregister({ name: "echo" }, { headers }),
    () => operator.explain({ name: "echo" }, { headers }),
    () => operator.diagnose({}, { headers }),
  ]) {
    const failure = await failureOf(work());
    expect(failure).toMatchObject({
      code: Code.PermissionDenied,
      reason: "PERMISSION_DENIED",
      metadata: { role: "operator" },
    });
  }
  expect((await tools.call({ invocation: { name: "echo" } }, { headers })).result).toBeDefined();
});
