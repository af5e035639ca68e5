import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTcpProxy } from "../service/tcp-proxy.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { type RecordingUpstream, startRecordingUpstream } from "./recording-upstream.ts";
import { WIRE_CLIENT_NAMES, WIRE_CLIENTS } from "./wire-clients.ts";

/** Interval and timeout of the gateway's pings, together. */
const KEEPALIVE_MS = 2_000;
/** For a machine under load. */
const SPARE_MS = 5_000;

const running = new AsyncDisposableStack();
let upstream: RecordingUpstream;
let gateway: OpenGateway;

beforeAll(async () => {
  upstream = running.use(await startRecordingUpstream());
  const declare = (path: string, delivery: string): string =>
    `name: ${path}\ndescription: 断线测试工具 for the test of a cut cable\ntype: http\nmethod: GET\n` +
    `endpoint: http://127.0.0.1:${upstream.port}/${path}\ndelivery: ${delivery}\n`;
  const { path: folder } = running.use(await temporaryFolder());
  gateway = running.use(
    await openGateway({
      folder,
      settings: { keepalive: { interval: "1s", timeout: "1s" } },
      files: {
        "tools/hang.yaml": declare("hang", "conclusive"),
        "tools/drip.yaml": declare("drip", "incremental"),
        "tools/flood.yaml": declare("flood", "incremental").replace("/flood\n", "/flood/dense\n"),
      },
    }),
  );
});

afterAll(async () => {
  await running.disposeAsync();
});

describe.each(WIRE_CLIENT_NAMES.filter((name) => !name.includes("1.1")))("%s", (name) => {
  test.each(["hang", "drip", "flood"])(
    "a cable cut in a call of %s is noticed by pings, and its upstream connection closed [G-D02]",
    async (tool) => {
      await using proxy = await startTcpProxy(gateway.port);
      using client = WIRE_CLIENTS[name](proxy.port);
      const read = async (): Promise<void> => {
        if (tool === "hang") await client.call({ name: tool });
        else
          for await (const { event } of client.callStream({ name: tool })) if (event.case === "output") begun.resolve();
      };
      const begun = Promise.withResolvers<void>();
      const ended = read().catch(() => undefined);
      const request = await upstream.nextRequest();
      if (tool !== "hang") await begun.promise;
      const cutAt = performance.now();
      proxy.freeze();
      expect((await request.closed) - cutAt).toBeLessThan(KEEPALIVE_MS + SPARE_MS);
      await proxy[Symbol.asyncDispose]();
      await ended;
    },
  );
});
