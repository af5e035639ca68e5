import { expect, test } from "vitest";
import { startFakeHttp } from "./fake-http.ts";
import { call, openServer, testFolder } from "./fixture.ts";

const QUICKLY = { restart: { first: "50ms", max: "200ms" } };

test("failures and errors name the tool as its callers know it, by the server's name where nothing else is said", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: { ...folder.fake(), ...QUICKLY } });
  await server.ready();
  const servedAs = { name: "shop/renamed", readOnly: false };
  for (const tool of ["failing", "rpc_error"]) {
    expect((await call(server, tool)).result?.failure?.message).toMatch(new RegExp(`^fake/${tool}: `));
    expect((await call(server, tool, {}, { servedAs })).result?.failure?.message).toMatch(/^shop\/renamed: /);
  }
  const { error } = await call(server, "crash", {}, { servedAs });
  expect(error).toMatchObject({ metadata: { tool: "shop/renamed" }, effect: "unknown" });
  expect(error?.message).toMatch(/^shop\/renamed: the server exited with code 3/);
  await using absent = await openServer({ mcp: { command: "no-such-server-of-mcp", restart: { attempts: 1 } } });
  await absent.until(() => absent.upstream.availability().reason.startsWith("failed"));
  const refused = await call(absent, "quick", {}, { servedAs });
  expect(refused.error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", metadata: { tool: "shop/renamed" } });
  expect(refused.error?.message).toMatch(/^shop\/renamed: the tool was not called, its server failed: /);
});

test("a lost or refused call of a tool that only reads has no effect", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: { ...folder.fake(), ...QUICKLY } });
  await server.ready();
  const servedAs = { name: "fake/crash", readOnly: true };
  const { error } = await call(server, "crash", {}, { servedAs });
  expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none", retryable: true });
  expect((await call(server, "failing", {}, { servedAs })).result?.effect).toBe("none");

  await using fake = await startFakeHttp({ lost: { status: 500, body: "" } });
  await using remote = await openServer({ mcp: { url: fake.url, protocol: "legacy" } });
  await remote.ready();
  fake.forget();
  const { result } = await call(remote, "quick", {}, { servedAs: { name: "shop/look", readOnly: true } });
  expect(result).toMatchObject({ effect: "none", failure: { message: "shop/look: the server answered HTTP 500" } });
});
