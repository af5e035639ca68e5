import { once } from "node:events";
import { expect, test } from "vitest";
import { rawSession } from "./raw.ts";
import { serve } from "./serve.ts";

test("/healthz says that the process lives, /readyz whether it takes calls", async () => {
  await using served = await serve();
  served.door.setReady(false);
  const status = async (path: string) => (await fetch(served.url + path)).status;
  expect(await status("/healthz")).toBe(200);
  expect(await status("/readyz")).toBe(503);
  served.door.setReady(true);
  expect(await status("/readyz?verbose")).toBe(200);
});

test("probes work over HTTP/2 and by HEAD", async () => {
  await using served = await serve();
  using session = rawSession(served.url);
  const stream = session.request({ ":path": "/readyz" }).setEncoding("utf8");
  stream.end();
  const [headers] = await once(stream, "response");
  expect(headers[":status"]).toBe(200);
  expect((await stream.toArray()).join("")).toBe("ready\n");
  const head = await fetch(`${served.url}/healthz`, { method: "HEAD" });
  expect([head.status, await head.text()]).toEqual([200, ""]);
});

test("another method is refused and another path is not found", async () => {
  await using served = await serve();
  expect((await fetch(`${served.url}/readyz`, { method: "POST", body: "x" })).status).toBe(405);
  for (const path of ["/", "/constructor", "/toolgate.v1.ToolGatewayService/Nothing"]) {
    const response = await fetch(served.url + path);
    expect([response.status, await response.text()]).toEqual([404, "not found\n"]);
  }
});
