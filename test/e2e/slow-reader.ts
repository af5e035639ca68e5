import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { startGateway } from "./gateway-process.ts";
import { type FloodText, startRecordingUpstream } from "./recording-upstream.ts";
import { WIRE_CLIENT_NAMES, WIRE_CLIENTS, type WireClientName } from "./wire-clients.ts";

/** One of each way to send a stream; gRPC-Web sends it as Connect does. */
export const SLOW_READERS = WIRE_CLIENT_NAMES.filter((name) => !name.includes("gRPC-Web"));

const READER_BYTES_PER_SECOND = 10_000;
const SAMPLE_MS = 200;
const WARM_UP_ROUNDS = 4;

/** What a slow reader cost. */
export interface SlowReaderFigures {
  /** Most resident memory of the gateway during the read, less what it had before. */
  readonly grownBytes: number;
  readonly readers: readonly {
    readonly client: WireClientName;
    readonly readBytes: number;
    /** What the upstream wrote to its socket. */
    readonly upstreamBytes: number;
  }[];
}

/**
 * An upstream offers 1 GB to each client, which takes 10 KB/s for `durationMs`, all at the same time. Prints the
 * figures. Resolves once every upstream connection is closed.
 */
export async function readSlowly(
  clients: readonly WireClientName[],
  durationMs: number,
  text: FloodText,
): Promise<SlowReaderFigures> {
  await using upstream = await startRecordingUpstream();
  await using gateway = await startGateway({
    tools: {
      "flood.yaml":
        "name: flood\ndescription: 背压测试工具 offers one gigabyte of text\ntype: http\nmethod: GET\n" +
        `endpoint: http://127.0.0.1:${upstream.port}/flood/${text}\ndelivery: incremental\n`,
    },
  });
  // The first calls load code, fill caches and let the young generation of the heap grow to its full size, which is not
  // what grows with the data.
  for (let round = 0; round < WARM_UP_ROUNDS; round++) {
    await Promise.all(clients.map((client) => readFor(client, gateway.port, 1_500)));
    const first = await Promise.all(clients.map(() => upstream.nextRequest()));
    await Promise.all(first.map((request) => request.closed));
  }

  const before = residentBytes(gateway.pid);
  let peak = before;
  const sampler = setInterval(() => {
    peak = Math.max(peak, residentBytes(gateway.pid));
  }, SAMPLE_MS);
  const reading = clients.map(async (client) => {
    const readBytes = await readFor(client, gateway.port, durationMs);
    return { client, readBytes };
  });
  const requests = await Promise.all(clients.map(() => upstream.nextRequest()));
  const read = await Promise.all(reading);
  clearInterval(sampler);
  await Promise.all(requests.map((request) => request.closed));
  const readers = read.map((entry, i) => ({ ...entry, upstreamBytes: requests[i]?.bytesWritten() ?? 0 }));
  console.log(
    `${durationMs / 1000} s at 10 KB/s of ${text} text: RSS ${mib(before)} + ${mib(peak - before)} MiB\n` +
      readers
        .map((r) => `read ${mib(r.readBytes)}, upstream wrote ${mib(r.upstreamBytes)} MiB  ${r.client}`)
        .join("\n"),
  );
  return { grownBytes: peak - before, readers };
}

/** Reads a stream at 10 KB/s and leaves `durationMs` after its first output. Resolves with the bytes it got. */
async function readFor(name: WireClientName, port: number, durationMs: number): Promise<number> {
  using client = WIRE_CLIENTS[name](port);
  const abort = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let bytes = 0;
  try {
    for await (const { event } of client.callStream({ name: "flood" }, { signal: abort.signal })) {
      if (event.case !== "output" || event.value.delta.case !== "text") continue;
      timer ??= setTimeout(() => abort.abort(), durationMs);
      const size = Buffer.byteLength(event.value.delta.value);
      bytes += size;
      await delay((size / READER_BYTES_PER_SECOND) * 1000, undefined, { signal: abort.signal });
    }
    throw new Error("the stream ended by itself");
  } catch (error) {
    if (!abort.signal.aborted) throw error;
    return bytes;
  } finally {
    clearTimeout(timer);
  }
}

function residentBytes(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]);
  return pages * 4096;
}

function mib(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
