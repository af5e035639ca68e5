import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { GatewayError } from "../../../src/core/errors.ts";
import { startFakeHttp } from "./fake-http.ts";
import { allGone, call, invoke, openServer, testFolder, textOf } from "./fixture.ts";

/** What keeps a process alive, counted by kind. */
function resources(): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

test("a thousand calls, many of them cut short, leave nothing behind [R-D07]", async () => {
  await using folder = await testFolder();
  await using fake = await startFakeHttp();
  const before = resources();
  const program = await openServer({ mcp: folder.fake() });
  const remote = await openServer({ mcp: { url: fake.url, protocol: "legacy" } });
  await Promise.all([program.ready(), remote.ready()]);
  const kept = new AbortController();
  for (let round = 0; round < 50; round++) {
    const calls = [program, remote].flatMap((server) => [
      ...Array.from({ length: 6 }, async (_, i) =>
        expect(textOf(await call(server, "whoami", { token: `t${i}` }, kept))).toBe(`t${i}`),
      ),
      ...Array.from({ length: 2 }, async () => {
        const controller = new AbortController();
        const ended = call(server, "silent", {}, { signal: controller.signal });
        setTimeout(
          () => controller.abort(new GatewayError("CALL_CANCELLED", "stopped by the test")),
          Math.random() * 10,
        );
        expect((await ended).error?.reason).toBe("CALL_CANCELLED");
      }),
      ...Array.from({ length: 2 }, async () => {
        for await (const event of invoke(server, "endless")) if (event.type === "progress") break;
      }),
    ]);
    await Promise.all(calls);
  }
  expect(textOf(await call(program, "quick"))).toBe("ok");
  expect(folder.pids()).toHaveLength(1);
  expect(getEventListeners(kept.signal, "abort")).toEqual([]);
  await Promise.all([program[Symbol.asyncDispose](), remote[Symbol.asyncDispose]()]);
  await allGone(folder.pids());
  fake.cutAll();
  await expect.poll(() => resources()["PipeWrap"] ?? 0).toBeLessThanOrEqual(before["PipeWrap"] ?? 0);
  await expect.poll(() => resources()["TCPSocketWrap"] ?? 0).toBeLessThanOrEqual(before["TCPSocketWrap"] ?? 0);
  await expect.poll(() => resources()["ProcessWrap"] ?? 0).toBeLessThanOrEqual(before["ProcessWrap"] ?? 0);
  await expect.poll(() => resources()["Timeout"] ?? 0).toBeLessThanOrEqual((before["Timeout"] ?? 0) + 2);
});
