import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { startGateway } from "./gateway-process.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";
import { WIRE_CLIENT_NAMES, WIRE_CLIENTS, type WireClientName } from "./wire-clients.ts";

const READERS = 20;
const MESSAGES = 30;
/** A few MB each. */
const MAX_GROWN_BYTES = READERS * 4 * 2 ** 20;

/** 1 GB of numbered lines, made as they are read. */
function* numbered(): Generator<string> {
  for (let number = 0; number < 10_000_000; number += 100) {
    yield Array.from({ length: 100 }, (_, i) => `${String(number + i).padStart(98, ".")}\n`).join("");
  }
}

/** Reads ten messages a second and then leaves. Resolves with how many lines came; throws where a number is missing. */
async function readNumbers(name: WireClientName, port: number): Promise<number> {
  using client = WIRE_CLIENTS[name](port);
  let rest = "";
  let next = 0;
  let messages = 0;
  for await (const { sequence, event } of client.callStream({ name: "numbered" })) {
    expect(Number(sequence)).toBe(messages++);
    if (event.case === "output") {
      const lines = (rest + String(event.value.delta.value)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines)
        if (Number(line.replace(/^\.+/, "")) !== next++) throw new Error(`${line} instead of ${next - 1}`);
    }
    if (messages === MESSAGES) break;
    await delay(100);
  }
  return next;
}

test.skipIf(process.platform !== "linux")(
  "twenty readers of ten messages a second miss no number of a gigabyte, and cost a few MB each [G-D08]",
  { timeout: START_TIMEOUT_MS },
  async () => {
    const upstream = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/plain; charset=utf-8" });
      Readable.from(numbered()).pipe(response);
    });
    upstream.listen(0, "127.0.0.1");
    await once(upstream, "listening");
    const { port } = upstream.address() as AddressInfo;
    await using gateway = await startGateway({
      tools: {
        "numbered.yaml":
          "name: numbered\ndescription: 背压测试工具 numbers lines of a gigabyte\ntype: http\nmethod: GET\n" +
          `endpoint: http://127.0.0.1:${port}/\ndelivery: incremental\n`,
      },
    });
    const names = Array.from(
      { length: READERS },
      (_, i) => WIRE_CLIENT_NAMES[i % WIRE_CLIENT_NAMES.length] ?? "grpc-js over gRPC",
    );
    const resident = (): number => Number(readFileSync(`/proc/${gateway.pid}/statm`, "utf8").split(" ")[1]) * 4096;
    // The first calls load code.
    await Promise.all(WIRE_CLIENT_NAMES.map((name) => readNumbers(name, gateway.port)));
    const before = resident();
    let peak = before;
    const sampler = setInterval(() => {
      peak = Math.max(peak, resident());
    }, 50);
    const lines = await Promise.all(names.map((name) => readNumbers(name, gateway.port)));
    clearInterval(sampler);
    for (const count of lines) expect(count).toBeGreaterThan(100);
    expect(peak - before).toBeLessThan(MAX_GROWN_BYTES);
    upstream.closeAllConnections();
    upstream.close();
  },
);
