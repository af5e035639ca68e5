import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AUTHORITY, certificateFolder, trustAuthority } from "./certificate-folder.ts";
import { issue } from "./certificates.ts";
import { CLIENTS } from "./clients.ts";
import { completed, textResult } from "./fake-registry.ts";
import { fastClock } from "./fast-clock.ts";
import { rawSession } from "./raw.ts";
import { KEEPALIVE, PATIENT, recordingLogger, serve } from "./serve.ts";
import { serialOf } from "./tls-raw.ts";

/** Looks every 50 ms, complains after 250. Limits of calls and connections are what they are by a slow clock. */
const FAST = {
  clock: fastClock(20),
  limits: { requestBytes: 1_000_000, deadlineMs: 1_200_000, concurrentStreams: 100 },
  connection: { sniffMs: 100_000, requestMs: 1_200_000, answerMs: 1_200_000, resetGraceMs: 40_000 },
  keepalive: { ...KEEPALIVE, intervalMs: 600_000, timeoutMs: 200_000 },
} as const;

let trust: Disposable;

beforeAll(() => {
  trust = trustAuthority();
});

afterAll(() => trust[Symbol.dispose]());

test.each(["grpc-js", "connect-node gRPC", "connect-node Connect over HTTP/1.1"])(
  "new handshakes of %s get the new certificate while a stream goes on over the old connection",
  async (name) => {
    await using place = await certificateFolder();
    await using served = await serve({ ...FAST, tls: place.files });
    const go = Promise.withResolvers<void>();
    served.registry.add({ name: "tail" }, async function* () {
      yield { type: "delta", index: 0, text: "before " };
      await go.promise;
      yield { type: "delta", index: 0, text: "after" };
      yield completed({ ...textResult(""), content: [] });
    });
    const old = await serialOf(served.port);
    using client = CLIENTS[name]?.(served.url) ?? expect.unreachable();
    const texts: string[] = [];
    for await (const { event } of client.stream({ invocation: { name: "tail" } })) {
      if (event.case !== "output") continue;
      texts.push(String(event.value.delta.value));
      if (texts.length > 1) continue;
      await place.replace(issue({ issuer: AUTHORITY }));
      await expect.poll(() => serialOf(served.port), PATIENT).not.toBe(old);
      go.resolve();
    }
    expect(texts.join("")).toBe("before after");
    expect((await client.call({ name: "echo" })).result?.structuredJson).toBe("{}");
  },
);

const BUSY = { timeout: 180_000 };

test(
  "no call fails while certificates are exchanged under load, on connections that stay and on new ones",
  BUSY,
  async () => {
    await using place = await certificateFolder();
    const logger = recordingLogger();
    await using served = await serve({ ...FAST, tls: place.files, logger });
    const over = new AbortController();
    let calls = 0;
    async function stays(name: string): Promise<void> {
      using client = CLIENTS[name]?.(served.url) ?? expect.unreachable();
      for (; !over.signal.aborted; calls++) await client.call({ name: "echo" });
    }
    async function comesAnew(): Promise<void> {
      for (; !over.signal.aborted; calls++) {
        using session = rawSession(served.url);
        const stream = session.request({ ":path": "/healthz" }).resume();
        stream.end();
        const [headers] = await once(stream, "response");
        expect(headers[":status"]).toBe(200);
        await once(stream, "close");
      }
    }
    const load = Promise.all([...Object.keys(CLIENTS).map(stays), comesAnew(), comesAnew()]);
    const serials = new Set([await serialOf(served.port)]);
    for (let i = 0; i < 3; i++) {
      const before = await serialOf(served.port);
      await place.replace(issue({ issuer: AUTHORITY }));
      // Among calls that leave no processor time unused.
      await expect.poll(() => serialOf(served.port), { timeout: 150_000 }).not.toBe(before);
      serials.add(await serialOf(served.port));
    }
    over.abort();
    await load;
    expect(serials.size).toBe(4);
    expect(calls).toBeGreaterThan(50);
    expect(logger.lines.filter(({ message }) => message === "tls-certificate-loaded")).toHaveLength(4);
  },
);

test("a certificate without its key changes nothing for callers, until the key comes", async () => {
  await using place = await certificateFolder();
  const logger = recordingLogger();
  await using served = await serve({ ...FAST, tls: place.files, logger });
  const old = await serialOf(served.port);
  const next = issue({ issuer: AUTHORITY });
  await writeFile(place.files.certFile, next.cert);
  const rejected = (): number => logger.lines.filter(({ message }) => message === "tls-certificate-rejected").length;
  await expect.poll(rejected, PATIENT).toBe(1);
  expect(await serialOf(served.port)).toBe(old);
  await writeFile(place.files.keyFile, next.key);
  await expect.poll(() => serialOf(served.port), PATIENT).not.toBe(old);
});
