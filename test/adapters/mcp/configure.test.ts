import { expect, test } from "vitest";
import { startFakeHttp } from "./fake-http.ts";
import { call, openServer, problemsOf, textOf } from "./fixture.ts";

test("a server is a program or a remote one, and has the keys of its kind alone", () => {
  expect(
    problemsOf({ mcp: { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem"], cwd: "/tmp" } }),
  ).toEqual([]);
  expect(problemsOf({ mcp: { command: "npx" }, keys: { cwd: "/tmp" } })).toEqual([]);
  expect(
    problemsOf({ mcp: { url: "https://mcp.example.com/github", headers: { Authorization: "Bearer ${TOKEN}" } } }),
  ).toEqual([]);
  expect(problemsOf({ mcp: {} })).toEqual([
    "/mcp has neither `command` nor `url`: a server is a program of this machine or a remote one; give one of them",
  ]);
  expect(problemsOf({ mcp: { command: "npx", headers: {} } })).toEqual([
    "/mcp/headers is for a server with `url`; remove it",
  ]);
  expect(problemsOf({ mcp: { url: "https://mcp.example.com/", transport: "stdio" } })).toEqual([
    "/mcp/transport `stdio` does not go with `url`; streamable_http and sse do",
  ]);
  expect(problemsOf({ mcp: { command: "npx", cwd: "/tmp" }, keys: { cwd: "/" } })).toEqual([
    "/mcp/cwd stands at the top of the declaration too",
  ]);
});

test("a secret never stands in arguments, which other users can read [K-D02]", () => {
  expect(problemsOf({ mcp: { command: "npx", args: ["--token=${TOKEN}"] } })).toEqual([
    "/mcp/args/0 variables are not filled in here: other users can read arguments; put the value into `env`",
  ]);
});

test("a server registered over the wire reaches public addresses alone", () => {
  const mend = "declare it in a file, or set `registration.private_addresses` in gateway.yaml";
  expect(problemsOf({ mcp: { url: "http://10.0.0.7/mcp" }, reach: "none" })).toEqual([
    `/mcp/url \`10.0.0.7\` is no public address, and a server registered over the wire may not be there; ${mend}`,
  ]);
  expect(problemsOf({ mcp: { url: "http://localhost:3000/mcp" }, reach: "loopback" })).toEqual([]);
  expect(problemsOf({ mcp: { url: "https://example.com/mcp", allow_private: true }, reach: "loopback" })).toEqual([
    `/mcp/allow_private is not for servers registered over the wire; ${mend}`,
  ]);
});

test("a variable that is not set makes the server unavailable by its name, nothing is sent, and once set it works [T-D07]", async () => {
  await using fake = await startFakeHttp();
  const environment: Record<string, string | undefined> = {};
  const mcp = { url: fake.url, headers: { Authorization: "Bearer ${MISSING_TOKEN}" } };
  await using server = await openServer({ mcp, environment });
  expect(server.upstream.availability()).toMatchObject({
    state: "unavailable",
    reason: "secret MISSING_TOKEN is not set",
  });
  expect((await call(server, "quick")).error).toMatchObject({ reason: "SECRET_MISSING", effect: "none" });
  environment["MISSING_TOKEN"] = "";
  expect(server.upstream.availability().reason).toContain("MISSING_TOKEN");
  expect(fake.requests).toEqual([]);
  environment["MISSING_TOKEN"] = "ghp-0123456789";
  expect(textOf(await call(server, "quick"))).toBe("ok");
  expect(fake.requests.map(({ headers }) => headers.authorization)).not.toContain("Bearer ${MISSING_TOKEN}");
});
