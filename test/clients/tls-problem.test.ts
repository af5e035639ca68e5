import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type TlsOptions } from "node:tls";
import { expect, test } from "vitest";
import { createToolgateClient } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { createAuthority, issue } from "../service/certificates.ts";

const AUTHORITY = createAuthority();

/** What a client says of a server that gets no further than the handshake. */
async function problemOf(options: TlsOptions, protocol: "grpc" | "connect", serverName?: string): Promise<unknown> {
  const server = createServer(options, (socket) => socket.destroy());
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const baseUrl = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const named = serverName === undefined ? {} : { serverName };
  using transport = createNodeTransport({ baseUrl, protocol, ca: AUTHORITY.cert, ...named });
  const problem = createToolgateClient(transport)
    .call("order")
    .catch((error: unknown) => error);
  const seen = await problem;
  server.close();
  return seen;
}

/** What the server shows, and what the client makes of it. */
const PROBLEMS = {
  "signed by nobody known": [
    issue({ issuer: createAuthority("Nobody") }),
    "CERTIFICATE_UNTRUSTED",
    /signed by an unknown authority/,
  ],
  "its own authority": [createAuthority("localhost"), "CERTIFICATE_UNTRUSTED", /vouches for itself alone/],
  expired: [
    issue({ issuer: AUTHORITY, days: -1 }),
    "CERTIFICATE_DATES",
    /its certificate has expired \(CERT_HAS_EXPIRED\)/,
  ],
  "for another name": [
    issue({ issuer: AUTHORITY, names: ["other.test"] }),
    "CERTIFICATE_NAME",
    /for another name: IP: 127/,
  ],
} as const;

for (const protocol of ["grpc", "connect"] as const) {
  test.each(Object.entries(PROBLEMS))(
    `over ${protocol} a certificate that is %s is told from a gateway that is not there`,
    async (_what, [issued, tls, words]) => {
      expect(await problemOf(issued, protocol)).toMatchObject({
        reason: "GATEWAY_UNREACHABLE",
        status: "UNAVAILABLE",
        effect: "none",
        retryable: false,
        metadata: { tls },
        message: expect.stringMatching(words),
      });
    },
  );
}

test("a server that speaks another protocol within TLS is told from a gateway that is not there", async () => {
  const options = { ...issue({ issuer: AUTHORITY }), ALPNProtocols: ["smtp"] };
  expect(await problemOf(options, "grpc")).toMatchObject({
    reason: "GATEWAY_UNREACHABLE",
    metadata: { tls: "TLS_HANDSHAKE" },
    message: expect.stringContaining("it does not speak this protocol over TLS"),
  });
});

test("a connection that breaks after the handshake may have carried the request", async () => {
  expect(await problemOf(issue({ issuer: AUTHORITY }), "grpc")).toMatchObject({
    reason: "GATEWAY_CONNECTION_LOST",
    effect: "unknown",
  });
});

test("a certificate may be for a name that the address is not", async () => {
  const issued = issue({ issuer: AUTHORITY, names: ["tools.example.test"] });
  for (const protocol of ["grpc", "connect"] as const) {
    expect(await problemOf(issued, protocol, "tools.example.test")).toMatchObject({
      reason: "GATEWAY_CONNECTION_LOST",
    });
  }
});
