import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createToolgateClient } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { AUTHORITY, type CertificateFolder, certificateFolder } from "../service/certificate-folder.ts";
import { issue } from "../service/certificates.ts";
import { serialOf } from "../service/tls-raw.ts";
import { type Ended, toolgate } from "./cli-process.ts";
import { type GatewayProcess, startGateway } from "./gateway-process.ts";
import { REPOSITORY, START_TIMEOUT_MS } from "./spawned.ts";

const CALL = "toolgate.v1.ToolGatewayService/Call";
const INVOCATION = JSON.stringify({ invocation: { name: "order" } });

/** For tests that start several processes. */
const PATIENT = { timeout: START_TIMEOUT_MS };

const running = new AsyncDisposableStack();
let certificates: CertificateFolder;
let gateway: GatewayProcess;
let plaintext: GatewayProcess;
let url: string;
let ca: string;

interface Upstream extends AsyncDisposable {
  readonly port: number;
}

/** Answers an order, and a line now and then until its reader leaves. */
async function startUpstream(): Promise<Upstream> {
  const server = createServer((request, response) => {
    if (request.url === "/order") response.setHeader("content-type", "application/json").end('{"order":"SO1"}');
    else {
      response.setHeader("content-type", "text/event-stream");
      const timer = setInterval(() => response.write("data: tick\n\n"), 20);
      response.once("close", () => clearInterval(timer));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function tools({ port }: Upstream): Readonly<Record<string, string>> {
  const endpoint = `http://127.0.0.1:${port}`;
  const common = { description: "通过加密连接调用 called over TLS", type: "http" };
  return {
    "order.yaml": JSON.stringify({ ...common, name: "order", endpoint: `${endpoint}/order` }),
    "ticks.yaml": JSON.stringify({
      ...common,
      name: "ticks",
      delivery: "incremental",
      endpoint: `${endpoint}/ticks`,
    }),
  };
}

beforeAll(async () => {
  certificates = running.use(await certificateFolder());
  const upstream = running.use(await startUpstream());
  const { certFile, keyFile } = certificates.files;
  const config = `tls: ${JSON.stringify({ cert: certFile, key: keyFile })}\n`;
  gateway = running.use(await startGateway({ tools: tools(upstream), config }));
  plaintext = running.use(await startGateway({ tools: {} }));
  url = `https://127.0.0.1:${gateway.port}`;
  ca = join(certificates.folder, "ca.crt");
  await writeFile(ca, AUTHORITY.cert);
}, START_TIMEOUT_MS);

afterAll(() => running.disposeAsync());

/** Runs a program to its end. */
async function run(
  command: string,
  args: readonly string[],
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = spawn(command, [...args], { cwd: REPOSITORY, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await ended;
  return { code: Number(code), stdout, stderr };
}

async function has(command: string): Promise<boolean> {
  return run(command, ["--version"]).then(
    ({ code }) => code === 0,
    () => false,
  );
}

test("the gateway says that it is reached over https", () => {
  expect(gateway.output()).toContain(`"url":"${url}"`);
});

test.each(["grpc", "connect", "grpcweb"])("buf curl calls over TLS by reflection (%s)", PATIENT, async (protocol) => {
  const flags = ["curl", "--cacert", ca, "--protocol", protocol, "-d", INVOCATION];
  const { code, stdout, stderr } = await run("node_modules/.bin/buf", [...flags, `${url}/${CALL}`]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("SO1");
});

test("curl calls with JSON over HTTP/2, over HTTP/1.1 and without ALPN", PATIENT, async ({ skip }) => {
  if (!(await has("curl"))) skip();
  for (const [flag, version] of [
    ["--http2", "2"],
    ["--http1.1", "1.1"],
    ["--no-alpn", "1.1"],
  ] as const) {
    const flags = ["-sS", flag, "--cacert", ca, "-H", "content-type: application/json", "-d", INVOCATION];
    const { stdout, stderr } = await run("curl", [...flags, "-w", "\nHTTP/%{http_version}", `${url}/${CALL}`]);
    expect(stderr).toBe("");
    expect(stdout).toContain("SO1");
    expect(stdout).toMatch(new RegExp(`HTTP/${version}$`));
  }
});

test("curl is told that it has to speak TLS", PATIENT, async ({ skip }) => {
  if (!(await has("curl"))) skip();
  const { stdout } = await run("curl", ["-sS", url.replace("https:", "http:")]);
  expect(stdout).toBe("this port speaks TLS: use https\n");
});

test.each(["grpc", "connect"] as const)("the TypeScript client calls over TLS (%s)", async (protocol) => {
  using transport = createNodeTransport({ baseUrl: url, protocol, ca: AUTHORITY.cert });
  const outcome = await createToolgateClient(transport).call("order");
  expect(outcome.structured()).toEqual({ order: "SO1" });
  using named = createNodeTransport({ baseUrl: url, protocol, ca: AUTHORITY.cert, serverName: "localhost" });
  expect((await createToolgateClient(named).call("order")).failure).toBeUndefined();
});

/** What is wrong, with what address and options, in the words of the client and the command line's mend. */
const MISTAKES = [
  {
    what: "an unknown authority",
    options: {},
    tls: "CERTIFICATE_UNTRUSTED",
    words: "its certificate is signed by an unknown authority (UNABLE_TO_VERIFY_LEAF_SIGNATURE)",
    mend: "Name the certificate of whoever signed it with --ca FILE or TOOLGATE_CA.",
  },
  {
    what: "a certificate for another name",
    options: { ca: AUTHORITY.cert, serverName: "gateway.test" },
    tls: "CERTIFICATE_NAME",
    words: "its certificate is for another name: Host: gateway.test. is not in the cert's altnames: DNS:localhost",
    mend: "Use an address the certificate names, or say its name with --tls-server-name.",
  },
  {
    what: "plaintext spoken to a port of TLS",
    to: () => url.replace("https:", "http:"),
    options: {},
    tls: "TLS_EXPECTED",
    words: "it speaks TLS there, and this was plaintext: use https",
    mend: "Write https:// before the address.",
  },
  {
    what: "TLS spoken to a port of plaintext",
    to: () => `https://127.0.0.1:${plaintext.port}`,
    options: {},
    tls: "PLAINTEXT_EXPECTED",
    words: "it does not speak TLS there (ERR_SSL_WRONG_VERSION_NUMBER)",
    mend: "Leave https:// out, or give the gateway a certificate (`tls` in gateway.yaml).",
  },
] as const;

test.each(MISTAKES)("$what is one sentence and a mend", PATIENT, async ({ options, tls, words, mend, ...mistake }) => {
  const baseUrl = "to" in mistake ? mistake.to() : url;
  using transport = createNodeTransport({ baseUrl, ...options });
  const text_ = `the gateway cannot be reached: ${words}`;
  await expect(createToolgateClient(transport).call("order")).rejects.toMatchObject({
    reason: "GATEWAY_UNREACHABLE",
    effect: "none",
    retryable: false,
    message: expect.stringContaining(text_),
    metadata: { tls },
  });
  const flags = [
    ...("ca" in options ? ["--ca", ca] : []),
    ...("serverName" in options ? ["--tls-server-name", options.serverName] : []),
  ];
  const { code, stderr } = await toolgate(["tool", "list", "--address", baseUrl, ...flags]);
  expect(code).toBe(4);
  expect(stderr.split("\n")).toEqual([expect.stringContaining(text_), `mend: ${mend}`, ""]);
});

test("the command line calls over TLS, with the authority from a flag or the environment", PATIENT, async () => {
  const ways: readonly Promise<Ended>[] = [
    toolgate(["tool", "call", "order", "--address", url, "--ca", ca]),
    toolgate(["tool", "call", "order"], { env: { TOOLGATE_ADDRESS: url, TOOLGATE_CA: ca } }),
    toolgate(["tool", "call", "order", "--address", url, "--ca", ca, "--tls-server-name", "localhost"]),
  ];
  for (const { code, stdout } of await Promise.all(ways)) {
    expect(code).toBe(0);
    expect(stdout).toContain("SO1");
  }
  const missing = await toolgate(["tool", "list", "--address", url, "--ca", "nothing.crt"]);
  expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining("--ca: cannot read nothing.crt") });
  const useless = await toolgate(["tool", "list", "--address", url, "--ca", "package.json"]);
  expect(useless).toMatchObject({ code: 2, stderr: expect.stringContaining("holds no certificate in PEM form") });
});

test("a renewed certificate is served within seconds; streams and calls go on", PATIENT, async () => {
  using transport = createNodeTransport({ baseUrl: url, ca: AUTHORITY.cert });
  const client = createToolgateClient(transport);
  const stream = client.callStream("ticks");
  const before = await serialOf(gateway.port);
  await certificates.replace(issue({ issuer: AUTHORITY }));
  let calls = 0;
  for await (const event of stream) {
    if (event.type !== "output") continue;
    expect((await client.call("order")).failure).toBeUndefined();
    calls++;
    if ((await serialOf(gateway.port)) !== before) break;
  }
  expect(calls).toBeGreaterThan(0);
  using anew = createNodeTransport({ baseUrl: url, ca: AUTHORITY.cert });
  expect((await createToolgateClient(anew).call("order")).failure).toBeUndefined();
});

test("a gateway without its key does not start, and says why", PATIENT, async () => {
  const file = join(certificates.folder, "gateway.yaml");
  await writeFile(file, "listen: 127.0.0.1:0\ntls: { cert: tls.crt, key: nothing.key }\n");
  const { code, stderr } = await toolgate(["serve", "--config", file]);
  expect(code).toBe(1);
  expect(stderr).toBe(
    `error: \`tls.key\` ${certificates.folder}/nothing.key is not there: write the file, or correct the path in gateway.yaml\n`,
  );
});
