import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Client, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { expect, onTestFinished, test } from "vitest";
import { createToolgateClient } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { Health } from "../../gen/health/v1/health_pb.ts";
import { OperatorService } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { systemClock } from "../../src/core/clock.ts";
import { changeApiKeys } from "../../src/identity/api-key-file.ts";
import { runInProcess } from "../cli/test-host.ts";
import { addKey, ISSUER, tokenMaker } from "../identity/fixtures.ts";
import { AUTHORITY } from "../service/certificate-folder.ts";
import { issue } from "../service/certificates.ts";
import { CLIENTS, collect, failureOf } from "../service/clients.ts";
import { startEchoUpstream } from "./echo-upstream.ts";
import { type OpenGateway, type OpenGatewayOptions, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { reasonOf } from "./gateway-client.ts";

type Headers = Readonly<Record<string, string>>;

function tool(name: string, keys: Readonly<Record<string, unknown>> = {}): string {
  const standard = { name, description: "用于检查身份 shows who calls a tool", type: "http" };
  return JSON.stringify({ ...standard, endpoint: "http://127.0.0.1:1/", ...keys });
}

interface Guarded extends OpenGateway {
  readonly keyFile: string;
  /** Headers of callers by name of their key. */
  readonly headers: Readonly<Record<string, Headers>>;
}

/** A gateway that takes API keys, each with its name as its role. */
async function guarded(names: readonly string[], options: Partial<OpenGatewayOptions> = {}): Promise<Guarded> {
  const folder = await temporaryFolder();
  const keyFile = join(folder.path, "state", "api-keys.json");
  const headers: Record<string, Headers> = {};
  for (const name of names) {
    const { key } = await addKey(keyFile, name, [name], { clock: systemClock });
    headers[name] = { authorization: `Bearer ${key}` };
  }
  const settings = { identity: { api_keys: true }, ...options.settings };
  const gateway = await openGateway({ ...options, folder: folder.path, settings });
  onTestFinished(async () => {
    await gateway[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });
  return { ...gateway, keyFile, headers };
}

function as(headers: Headers | undefined): Interceptor {
  return (next) => (request) => {
    for (const [name, value] of Object.entries(headers ?? {})) request.header.set(name, value);
    return next(request);
  };
}

function clientAs(url: string, headers: Headers | undefined): Client<typeof ToolGatewayService> {
  return createClient(ToolGatewayService, createGrpcTransport({ baseUrl: url, interceptors: [as(headers)] }));
}

test.each(Object.keys(CLIENTS))(
  "%s is let in with a key, and without one or with a wrong one it is told so [S2-53]",
  async (name) => {
    const { url, headers } = await guarded(["ci"], {
      files: { "tools/one.yaml": tool("one", { allowed_subjects: ["key:ci"] }) },
    });
    using client = CLIENTS[name]?.(url) ?? expect.unreachable();
    const invocation = { name: "one", validateOnly: true };
    await client.call(invocation, { headers: headers["ci"] ?? {} });
    expect((await collect(client.stream({ invocation }, { headers: headers["ci"] ?? {} }))).length).toBeGreaterThan(0);
    const wrong = { authorization: `${headers["ci"]?.["authorization"]?.slice(0, -2)}AA` };
    for (const [given, reason] of [
      [{}, "CREDENTIAL_MISSING"],
      [wrong, "CREDENTIAL_INVALID"],
    ] as const) {
      for (const work of [
        () => client.call(invocation, { headers: given }),
        () => collect(client.stream({ invocation }, { headers: given })),
      ]) {
        expect(await failureOf(work())).toMatchObject({ code: 16, reason });
      }
    }
  },
);

test("probes need no credential, and everything else does", async () => {
  const { url } = await guarded([]);
  const transports: readonly Transport[] = [
    createGrpcTransport({ baseUrl: url }),
    createConnectTransport({ baseUrl: url, httpVersion: "1.1" }),
    createGrpcWebTransport({ baseUrl: url, httpVersion: "1.1" }),
  ];
  for (const transport of transports) {
    expect((await createClient(Health, transport).check({})).status).toBe(1);
    expect(await createClient(OperatorService, transport).diagnose({}).catch(reasonOf)).toBe("CREDENTIAL_MISSING");
  }
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  const reflection = createClient(ServerReflection, createGrpcTransport({ baseUrl: url }));
  const asked = (async () => {
    for await (const answer of reflection.serverReflectionInfo((async function* () {})())) return answer;
    return undefined;
  })();
  expect(await asked.catch(reasonOf)).toBe("CREDENTIAL_MISSING");
});

test("a caller without the operator's role administers nothing", async () => {
  const { url, headers } = await guarded(["reader"], { files: { "tools/one.yaml": tool("one") } });
  const reader = clientAs(url, headers["reader"]);
  const transport = createGrpcTransport({ baseUrl: url, interceptors: [as(headers["reader"])] });
  const operator = createClient(OperatorService, transport);
  const declaration = { case: "declarationJson", value: tool("mine") } as const;
  const works = [
    reader.register({ declaration }),
    reader.unregister({ name: "one" }),
    operator.explain({ name: "one" }),
    operator.diagnose({}),
  ];
  const outcomes = await Promise.all(works.map((work) => work.then(() => "OK", reasonOf)));
  expect(outcomes).toEqual(Array(4).fill("PERMISSION_DENIED"));
  expect((await reader.list({})).problems).toEqual([]);
});

test("what one caller holds is of no use to another: keys of calls, pages, resumed streams, registrations", async () => {
  await using upstream = await startEchoUpstream();
  const endpoint = `http://127.0.0.1:${upstream.port}`;
  const { url, headers } = await guarded(["ann", "bob"], {
    files: {
      "tools/a.yaml": tool("a", { endpoint: `${endpoint}/echo/a`, method: "POST" }),
      "tools/b.yaml": tool("b"),
      "tools/silent.yaml": tool("silent", { endpoint: `${endpoint}/silent` }),
    },
  });
  const [ann, bob] = ["ann", "bob"].map((name) => clientAs(url, headers[name]));
  if (ann === undefined || bob === undefined) return expect.unreachable();
  const invocation = { name: "a", requestId: "same" };
  expect((await ann.call({ invocation })).stats?.replayed).toBe(false);
  expect((await ann.call({ invocation })).stats?.replayed).toBe(true);
  expect((await bob.call({ invocation })).stats?.replayed).toBe(false);
  const { nextPageToken } = await ann.list({ pageSize: 1 });
  expect((await ann.list({ pageSize: 1, pageToken: nextPageToken })).tools.map(({ name }) => name)).toEqual(["b"]);
  expect(await bob.list({ pageSize: 1, pageToken: nextPageToken }).catch(reasonOf)).toBe("PAGE_TOKEN_INVALID");
  const stream = ann.callStream({ invocation: { name: "silent" }, resumeWindow: { seconds: 9n, nanos: 0 } });
  const messages = stream[Symbol.asyncIterator]();
  const { event } = (await messages.next()).value ?? {};
  const callId = event?.case === "started" ? event.value.callId : "";
  expect(callId).not.toBe("");
  const resumed = async (client: typeof ann, id: string): Promise<unknown> => {
    for await (const message of client.callStream({ resume: { callId: id, afterSequence: 0n } })) return message;
    return undefined;
  };
  const told = await Promise.all(
    [callId, "0197a000-0000-7000-8000-000000000001"].map((id) => resumed(bob, id).catch((error: unknown) => error)),
  );
  const words = told.map((error) =>
    error instanceof ConnectError ? error.rawMessage.replace(/`[0-9a-f-]{36}`/, "ID") : error,
  );
  expect(words[0]).toBe(words[1]);
  expect(reasonOf(told[0])).toBe("CALL_NOT_FOUND");
  await messages.return?.();
});

test("a key that is revoked ends the watch it began, and one with other roles has it begin anew", {
  timeout: 180_000,
}, async () => {
  const gateway = await guarded(["ann", "operator"], {
    files: { "tools/one.yaml": tool("one", { allowed_roles: ["ann"] }) },
  });
  const ann = clientAs(gateway.url, gateway.headers["ann"]);
  const watched = async (until: (seen: readonly string[]) => boolean): Promise<unknown> => {
    const seen: string[] = [];
    try {
      for await (const { event } of ann.watch({})) {
        seen.push(event.case === "upserted" ? `+${event.value.name}` : String(event.case));
        if (until(seen)) return seen;
      }
    } catch (error) {
      return reasonOf(error);
    }
    return seen;
  };
  expect(await watched((seen) => seen.includes("synced"))).toEqual(["+one", "synced"]);
  // Nothing else happens that would have the watch say something.
  const changed = watched(() => false);
  await changeApiKeys(gateway.keyFile, (keys) =>
    keys.map((key) => (key.name === "ann" ? { ...key, roles: ["other"] } : key)),
  );
  expect(await changed).toBe("CALLER_CHANGED");
  const revoked = watched(() => false);
  await changeApiKeys(gateway.keyFile, (keys) =>
    keys.map((key) => (key.name === "ann" ? { ...key, revokeTimeMs: 1 } : key)),
  );
  expect(await revoked).toBe("CREDENTIAL_INVALID");
});

test("over TLS a certificate says who calls, by either HTTP version, beside keys and tokens", async () => {
  const maker = await tokenMaker();
  const server = issue({ issuer: AUTHORITY });
  const caller = issue({ issuer: AUTHORITY, names: ["spiffe://example.org/agent"] });
  const stranger = issue({ names: ["spiffe://example.org/agent"] });
  const gateway = await guarded(["ci"], {
    files: {
      "tls.crt": server.cert,
      "tls.key": server.key,
      "ca.crt": AUTHORITY.cert,
      "jwks.json": maker.jwks,
      "tools/cert.yaml": tool("cert", { allowed_subjects: ["cert:spiffe://example.org/*"] }),
      "tools/key.yaml": tool("key", { allowed_roles: ["ci"] }),
      "tools/jwt.yaml": tool("jwt", { allowed_subjects: ["jwt:alice"] }),
    },
    settings: {
      tls: { cert: "tls.crt", key: "tls.key", client_ca: "ca.crt" },
      identity: {
        api_keys: true,
        mtls: [{ uri: "spiffe://example.org/*", roles: ["agent"] }],
        jwt: [{ issuer: ISSUER.issuer, audiences: ["toolgate"], jwks_file: "jwks.json", algorithms: ["ES256"] }],
      },
    },
  });
  const baseUrl = gateway.url.replace("http:", "https:");
  const seenBy = async (shown: object, headers: Headers = {}): Promise<readonly unknown[]> => {
    const nodeOptions = { ca: AUTHORITY.cert, ...shown };
    const transports = [
      createGrpcTransport({ baseUrl, nodeOptions }),
      createConnectTransport({ baseUrl, httpVersion: "1.1", nodeOptions }),
    ];
    return Promise.all(
      transports.map((transport) =>
        createClient(ToolGatewayService, transport)
          .list({}, { headers })
          .then(({ tools }) => tools.map(({ name }) => name).join(), reasonOf),
      ),
    );
  };
  expect(await seenBy({ cert: caller.cert, key: caller.key })).toEqual(["cert", "cert"]);
  expect(await seenBy({}, gateway.headers["ci"])).toEqual(["key", "key"]);
  expect(await seenBy({}, { authorization: `Bearer ${await maker.sign({})}` })).toEqual(["jwt", "jwt"]);
  expect(await seenBy({ cert: caller.cert, key: caller.key }, gateway.headers["ci"])).toEqual(["key", "key"]);
  expect(await seenBy({ cert: stranger.cert, key: stranger.key })).toEqual([
    "CREDENTIAL_INVALID",
    "CREDENTIAL_INVALID",
  ]);
  expect(await seenBy({})).toEqual(["CREDENTIAL_MISSING", "CREDENTIAL_MISSING"]);
});

test("identity is taken over while the gateway runs", async () => {
  const gateway = await guarded(["ci"]);
  const list = (): Promise<unknown> => gateway.client.service.list({}).then(() => "OK", reasonOf);
  expect(await list()).toBe("CREDENTIAL_MISSING");
  const changed = await gateway.reconfigure({ identity: { api_keys: true, anonymous_roles: [] } });
  expect(changed).toEqual({ applied: ["identity.anonymous_roles"], needRestart: [] });
  expect(await list()).toBe("OK");
});

test("the command line and the TypeScript client show a key, from a file, the environment or a function", async () => {
  const { url, headers, folder } = await guarded(["operator"], { files: { "tools/one.yaml": tool("one") } });
  const key = headers["operator"]?.["authorization"]?.slice("Bearer ".length) ?? "";
  await writeFile(join(folder, "key"), `${key}\n`);
  const address = url.slice("http://".length);
  const list = (more: readonly string[], env: NodeJS.ProcessEnv = {}) =>
    runInProcess(["tool", "list", "--address", address, ...more], { env });
  expect(await list(["--api-key", join(folder, "key")])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("one"),
  });
  expect(await list([], { TOOLGATE_API_KEY: key })).toMatchObject({ code: 0 });
  expect(await list([])).toMatchObject({ code: 7, stderr: expect.stringContaining("--api-key") });
  expect(await list([], { TOOLGATE_API_KEY: `${key}x` })).toMatchObject({ code: 7 });
  for (const protocol of ["grpc", "connect"] as const) {
    let asked = 0;
    const bearer = async (): Promise<string> => {
      asked += 1;
      return key;
    };
    using transport = createNodeTransport({ baseUrl: url, protocol, bearer });
    const client = createToolgateClient(transport);
    expect(await collect(client.list())).toHaveLength(1);
    expect(await collect(client.list())).toHaveLength(1);
    expect(asked).toBe(2);
  }
});

test("two callers with an equal request_id are two calls, to the gateway and to the upstream [S2-72]", async () => {
  await using upstream = await startEchoUpstream();
  const endpoint = `http://127.0.0.1:${upstream.port}/echo/pay`;
  const pay = tool("pay", { endpoint, method: "POST", idempotency_field: "request_id" });
  const { url, headers } = await guarded(["ci", "shop"], { files: { "tools/pay.yaml": pay } });
  const keys: string[] = [];
  for (const name of ["ci", "shop", "ci"]) {
    const { stats } = await clientAs(url, headers[name]).call({ invocation: { name: "pay", requestId: "k1" } });
    const { request_id: key } = JSON.parse(upstream.last("pay")?.body ?? "{}") as { request_id: string };
    expect(stats?.replayed).toBe(keys.length === 2);
    keys.push(key);
  }
  const [ci, shop, last] = keys;
  expect(ci).toMatch(/^k1-[0-9a-f]{16}$/);
  expect(shop).not.toBe(ci);
  // The third was answered from the record: the upstream heard nothing more.
  expect(last).toBe(shop);
});
