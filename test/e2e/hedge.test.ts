import { expect, test } from "vitest";
import { sendJson, startOneTool } from "./one-tool.ts";

test("where the first attempt stalls a second one answers, and the upstream sees the first one closed", async () => {
  const closed = Promise.withResolvers<void>();
  await using setting = await startOneTool({ hedge: { after: "100ms" } }, (request, response, nth) => {
    if (nth > 1) sendJson(response, 200, { nth });
    else request.socket.on("close", () => closed.resolve());
  });
  const startedAt = performance.now();
  const { result, stats } = await setting.gateway.client.call("one");
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  expect(result?.structuredJson).toBe('{"nth":2}');
  expect(stats?.attempts).toBe(2);
  await closed.promise;
});

test("an upstream with a slow tail has it cut off, at few more requests", async () => {
  await using setting = await startOneTool({ hedge: { after: "500ms" } }, (_request, response, nth) => {
    setTimeout(() => sendJson(response, 200, {}), nth % 20 === 7 ? 15_000 : 1);
  });
  const took: number[] = [];
  for (let i = 0; i < 60; i++) {
    const startedAt = performance.now();
    await setting.gateway.client.call("one");
    took.push(performance.now() - startedAt);
  }
  expect(Math.max(...took)).toBeLessThan(7_500);
  // The share that takes long; a few more on a machine under load.
  expect(setting.requests.length).toBeGreaterThan(60);
  expect(setting.requests.length).toBeLessThanOrEqual(60 + 10);
});
