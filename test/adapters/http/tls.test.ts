import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterEach, beforeEach, expect, test } from "vitest";
import { call, openTool } from "./fixture.ts";
import { CERTIFICATE, createTlsServer } from "./tls-fixture.ts";

let port: number;
let stop: () => Promise<void>;
const trusted = getCACertificates("default");

beforeEach(async () => {
  const server = createTlsServer((_request, response) => {
    response.setHeader("content-type", "application/json");
    response.end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ({ port } = server.address() as AddressInfo);
  stop = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
});

afterEach(async () => {
  setDefaultCACertificates(trusted);
  await stop();
});

test("an upstream with a certificate that is vouched for is called over TLS, by name and by address", async () => {
  setDefaultCACertificates([CERTIFICATE]);
  for (const host of ["localhost", "127.0.0.1"]) {
    await using tool = await openTool({ keys: { endpoint: `https://${host}:${port}/x` } });
    for (let i = 0; i < 3; i++) expect((await call(tool)).result?.value).toEqual({});
    expect(await tool.probe(new AbortController().signal)).toMatchObject({ ok: true });
  }
});

test("a certificate that nobody vouches for ends the call before anything is sent", async () => {
  await using tool = await openTool({ keys: { endpoint: `https://localhost:${port}/x`, method: "POST" } });
  const { error } = await call(tool);
  expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none" });
  expect(error?.message).toContain("its TLS certificate or handshake is not accepted (DEPTH_ZERO_SELF_SIGNED_CERT)");
});

test("a certificate for another name is not accepted", async () => {
  setDefaultCACertificates([CERTIFICATE]);
  await using tool = await openTool({ keys: { endpoint: `https://other.localhost:${port}/x` } });
  expect((await call(tool)).error?.message).toContain("(ERR_TLS_CERT_ALTNAME_INVALID)");
});
