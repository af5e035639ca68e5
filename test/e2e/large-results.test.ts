import { readFile, writeFile } from "node:fs/promises";
import { expect, onTestFinished, test } from "vitest";
import { createToolgateClient, type ToolgateClient } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { type GatewayProcess, startGateway } from "./gateway-process.ts";
import { type LargeUpstream, startLargeUpstream } from "./large-upstream.ts";

const MIB = 1_048_576;

/** The size of the answer; a run on demand may have a larger one. */
const BYTES = Number(process.env.LARGE_RESULT_BYTES ?? 300_000_000);

/** For a machine that has others to run. */
const PATIENT = { timeout: 180_000 + BYTES / 2_000 };

interface Started {
  readonly gateway: GatewayProcess;
  readonly upstream: LargeUpstream;
  readonly client: ToolgateClient;
}

async function start(config: string): Promise<Started> {
  const upstream = await startLargeUpstream();
  const tool = `name: large
description: "用于检查很大的结果 gives far more than anybody can read"
type: http
endpoint: "http://127.0.0.1:${upstream.port}/json/${BYTES}"
timeout: { total: 1h }
result: { max_length: 4000, truncation: summary }
`;
  const gateway = await startGateway({ tools: { "large.yaml": tool }, config });
  onTestFinished(async () => {
    await gateway[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });
  const transport = createNodeTransport({ baseUrl: `http://127.0.0.1:${gateway.port}` });
  const client = createToolgateClient(transport, { timeoutMs: Number.POSITIVE_INFINITY });
  for (let i = 0; i < 3; i++) for await (const _tool of client.list()) continue;
  return { gateway, upstream, client };
}

/** The most memory that the gateway had while something ran, beyond what it had before, in MiB. */
async function growth(pid: number, run: () => Promise<unknown>): Promise<number> {
  const memory = async (name: string): Promise<number> => {
    const status = await readFile(`/proc/${pid}/status`, "utf8");
    return Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]) / 1_024;
  };
  // Begins the peak anew. Source: proc_pid_clear_refs(5).
  await writeFile(`/proc/${pid}/clear_refs`, "5");
  const before = await memory("VmRSS");
  await run();
  return (await memory("VmHWM")) - before;
}

test.skipIf(process.platform !== "linux")(
  "an answer that is far too large goes to the store and not into memory, and its beginning is summed up",
  PATIENT,
  async () => {
    const { gateway, upstream, client } = await start(
      "results: { keep: true, principal_bytes: 4GiB, max_bytes: 4GiB }\n",
    );
    let handle = "";
    const grown = await growth(gateway.pid, async () => {
      const { result } = await client.call("large");
      handle = result?.truncation?.handle ?? "";
      const text = result?.content.map(({ part }) => (part.case === "text" ? part.value : "")).join("") ?? "";
      expect(text.length).toBeLessThanOrEqual(4_000);
      expect(text).toContain("$.data");
      expect(text).toMatch(/\[summary of the first \d+ characters of \d+ bytes of JSON.*; whole: result:/);
    });
    process.stderr.write(`${BYTES} bytes kept: ${grown.toFixed(1)} MiB more\n`);
    expect(grown).toBeLessThan(64);
    expect(upstream.sent.ends).toEqual(["whole"]);
    const last = await client.readResult(handle, { query: { bytes: { offset: upstream.sent.bytes - 100 } } });
    expect(Buffer.from(last.data ?? []).toString()).toContain('"}]}');
    expect(last).toMatchObject({ complete: true, sizeBytes: BigInt(upstream.sent.bytes + 11) });
  },
);

test.skipIf(process.platform !== "linux")(
  "of an answer larger than the quota the beginning is kept, and the upstream is let go",
  PATIENT,
  async () => {
    const { gateway, upstream, client } = await start("results: { keep: true, principal_bytes: 40MiB }\n");
    const grown = await growth(gateway.pid, async () => {
      const { result } = await client.call("large");
      expect(result?.notices).toMatchObject([{ reason: "RESULT_KEPT_IN_PART" }]);
      const page = await client.readResult(result?.truncation?.handle ?? "", {
        query: { lines: {} },
        maxLength: 1_000,
      });
      expect(page).toMatchObject({ complete: false, sizeBytes: BigInt(40 * MIB) });
    });
    expect(grown).toBeLessThan(64);
    await expect.poll(() => upstream.sent.ends).toEqual(["left"]);
    expect(upstream.sent.bytes).toBeLessThan(60 * MIB);
  },
);

test.skipIf(process.platform !== "linux")(
  "without a store no more than `limits.response_bytes` and a little is read, and the upstream is let go",
  PATIENT,
  async () => {
    const { gateway, upstream, client } = await start("");
    const grown = await growth(gateway.pid, async () => {
      await expect(client.call("large")).rejects.toMatchObject({ reason: "RESULT_TOO_LARGE" });
    });
    expect(grown).toBeLessThan(64);
    await expect.poll(() => upstream.sent.ends).toEqual(["left"]);
    expect(upstream.sent.bytes).toBeLessThan(32 * MIB);
  },
);
