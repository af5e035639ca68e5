import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readEgress } from "../../../src/core/egress.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { startFakeHttp } from "./fake-http.ts";
import { call, openServer, type ServerOptions, testFolder, textOf } from "./fixture.ts";

/** The block `mcp` of a program that notes where it runs, and with which variables, before it serves. */
function noting(fake: JsonObject, more: JsonObject): JsonObject {
  const words = [fake["command"], ...(Array.isArray(fake["args"]) ? fake["args"] : [])];
  return {
    ...fake,
    ...more,
    command: "/bin/sh",
    args: ["-c", 'echo "$PWD|$OWN|$KEPT|$OTHER" > "$0"; exec "$@"', "seen", ...words.map(String)],
  };
}

test("`mcp.cwd` is where the program runs, and `mcp.env` and `mcp.inherit_env` what it gets besides", async () => {
  await using folder = await testFolder();
  const mcp = noting(folder.fake(), {
    cwd: folder.path,
    env: { OWN: "as declared" },
    inherit_env: ["KEPT", "NOT_SET"],
  });
  const environment = { KEPT: "of the gateway", OTHER: "not for it" };
  await using server = await openServer({ mcp, environment });
  await server.ready();
  const [where, ...variables] = (await readFile(join(folder.path, "seen"), "utf8")).trim().split("|");
  expect(where).toBe(folder.path);
  expect(variables).toEqual(["as declared", "of the gateway", ""]);
});

test("`mcp.transport` spares the question how a remote server is spoken to, and is kept to", async () => {
  await using older = await startFakeHttp({ older: true });
  await using told = await openServer({ mcp: { url: older.url, transport: "sse" } });
  await told.ready();
  expect(textOf(await call(told, "quick"))).toBe("ok");
  await using wrong = await openServer({ mcp: { url: older.url, transport: "streamable_http" } });
  await wrong.until(() => wrong.upstream.availability().reason.startsWith("failed"));
  expect(wrong.names()).toEqual([]);
});

test("`mcp.egress` and `egress` of gateway.yaml say where servers and token addresses may be [X-D01]", async () => {
  await using fake = await startFakeHttp();
  const { url } = fake;
  const reasonWith = async (options: Omit<ServerOptions, "mcp"> & { readonly own?: JsonObject }): Promise<string> => {
    const mcp = { url, ...(options.own === undefined ? {} : { egress: options.own }) };
    await using server = await openServer({ mcp, ...options });
    await server.until(() => server.upstream.availability().reason !== "starting");
    return server.upstream.availability().reason;
  };
  expect(await reasonWith({ own: { allow: ["127.0.0.0/8"] } })).toBe("");
  expect(await reasonWith({ own: { allow: ["example.com"] } })).toContain("`egress.allow` of the declaration");
  const egress = readEgress({ deny: ["127.0.0.1"] }, () => undefined);
  expect(await reasonWith(egress === undefined ? {} : { egress })).toContain("`egress.deny` of gateway.yaml");
  const client = { token_url: "http://tokens.example.com/", client_id: "a", secret_ref: "CLIENT_SECRET" };
  const lookup: ServerOptions["lookup"] = (_name, _options, found) =>
    found(null, [{ address: "169.254.169.254", family: 4 }]);
  const mcp = { url, protocol: "legacy", allow_private: true, auth: { client_credentials: client } };
  await using tokens = await openServer({ mcp, lookup, environment: { CLIENT_SECRET: "s3cr3t" } });
  await tokens.until(() => tokens.upstream.availability().reason.startsWith("failed"));
  expect(tokens.upstream.availability().reason).toContain("169.254.169.254");
});

test("`mcp.allow_private` lets a name lead to an address that is not public", async () => {
  await using fake = await startFakeHttp();
  const url = fake.url.replace("127.0.0.1", "tools.example.com");
  const lookup: ServerOptions["lookup"] = (_name, _options, found) =>
    found(null, [{ address: "127.0.0.1", family: 4 }]);
  await using refused = await openServer({ mcp: { url }, lookup });
  await refused.until(() => refused.upstream.availability().reason.startsWith("failed"));
  expect(refused.upstream.availability().reason).toContain("127.0.0.1");
  await using allowed = await openServer({ mcp: { url, allow_private: true }, lookup });
  await allowed.ready();
  expect(textOf(await call(allowed, "quick"))).toBe("ok");
});
