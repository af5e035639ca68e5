import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import { answerOf, envelope, grpcHeaders, rawSession } from "./raw.ts";
import { serve } from "./serve.ts";

/** A method of each service. */
const METHODS = [
  "toolgate.v1.ToolGatewayService/List",
  "toolgate.v1.OperatorService/Explain",
  "grpc.health.v1.Health/Check",
];

async function post(url: string, method: string, body: string): Promise<[status: number, text: string]> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${url}/${method}`, { method: "POST", headers, body });
  return [response.status, await response.text()];
}

// A service with options of its own would lose those of all.
test.each(METHODS)("%s refuses unknown fields and what is too large, by the gateway's own errors", async (method) => {
  await using served = await serve({ limits: { requestBytes: 1_000, deadlineMs: 1_000, concurrentStreams: 10 } });
  const [status, text] = await post(served.url, method, '{"nothing":1}');
  expect(status).toBe(400);
  expect(text).toContain("REQUEST_INVALID");
  const [tooLarge, why] = await post(served.url, method, JSON.stringify({ nothing: "x".repeat(2_000) }));
  expect(tooLarge).toBe(429);
  expect(why).toContain("REQUEST_TOO_LARGE");
});

test.each(["toolgate.v1.ToolGatewayService/Get", "toolgate.v1.OperatorService/Explain"])(
  "%s gives its handler's errors the gateway's form",
  async (method) => {
    await using served = await serve();
    const [status, text] = await post(served.url, method, '{"name":"nothing"}');
    expect(status).toBe(404);
    expect(text).toContain("TOOL_NOT_FOUND");
  },
);

test.each([
  ...METHODS.filter((method) => !method.includes("Health")),
  "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
])("%s asks who calls before it reads a message", async (method) => {
  await using served = await serve({
    authenticate: () => {
      throw new GatewayError("PERMISSION_DENIED", "not you");
    },
  });
  using session = rawSession(served.url);
  const stream = session.request(grpcHeaders(`/${method}`));
  // The beginning of a message that does not go on.
  stream.write(envelope(new Uint8Array(100)).subarray(0, 20));
  const { headers, trailers } = await answerOf(stream);
  expect({ ...headers, ...trailers }).toMatchObject({ "grpc-status": "7", "grpc-message": "not you" });
});
