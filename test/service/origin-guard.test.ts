import { once } from "node:events";
import { expect, test } from "vitest";
import { rawSession } from "./raw.ts";
import { serve } from "./serve.ts";

const LIST = "/toolgate.v1.ToolGatewayService/List";
const APP = "https://app.example.com";

async function list(url: string, origin: string | undefined): Promise<Response> {
  const headers = { "content-type": "application/json", ...(origin === undefined ? {} : { origin }) };
  return fetch(url + LIST, { method: "POST", headers, body: "{}" });
}

test("a page of an origin that is not listed cannot call, whatever host it reached the gateway by", async () => {
  await using served = await serve({ allowedOrigins: [APP] });
  for (const origin of ["https://evil.example", "null", `${APP}.evil.example`, "http://app.example.com"]) {
    const response = await list(served.url, origin);
    expect([origin, response.status]).toEqual([origin, 403]);
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
    expect(await response.text()).toContain("cors.allowed_origins");
  }
  using session = rawSession(served.url);
  const stream = session.request({ ":method": "POST", ":path": LIST, origin: "https://evil.example" }).resume();
  stream.end("{}");
  const [headers] = await once(stream, "response");
  expect(headers[":status"]).toBe(403);
});

test("without a list no page can call, and what is no browser still can", async () => {
  await using served = await serve();
  expect((await list(served.url, APP)).status).toBe(403);
  expect((await list(served.url, undefined)).status).toBe(200);
});

test("a page of a listed origin may call and read the answer with its error details", async () => {
  await using served = await serve({ allowedOrigins: ["http://localhost:5173", APP] });
  const response = await list(served.url, APP);
  expect(response.status).toBe(200);
  expect(response.headers.get("access-control-allow-origin")).toBe(APP);
  expect(response.headers.get("vary")).toMatch(/origin/i);
  expect(response.headers.get("access-control-expose-headers")).toMatch(/grpc-status-details-bin/i);
});

test("a preflight is answered with what the protocols need, and reaches no handler", async () => {
  await using served = await serve({ allowedOrigins: [APP] });
  const response = await fetch(served.url + LIST, {
    method: "OPTIONS",
    headers: { origin: APP, "access-control-request-method": "POST", "access-control-request-headers": "content-type" },
  });
  expect(response.status).toBe(204);
  expect(response.headers.get("access-control-allow-methods")).toContain("POST");
  for (const name of ["content-type", "connect-protocol-version", "connect-timeout-ms", "authorization"]) {
    expect(response.headers.get("access-control-allow-headers")?.toLowerCase()).toContain(name);
  }
});
