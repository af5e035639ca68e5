import { expect, test } from "vitest";
import { EarlyStop } from "../../gen/toolgate/v1/call_pb.ts";
import { type Answer, startContentServers } from "./content-servers.ts";
import { openGateway, temporaryFolder } from "./effects-gateway.ts";
import { retryUntil, textOf } from "./gateway-client.ts";
import { startRecordingUpstream } from "./recording-upstream.ts";

const incremental = { description: "gives more than anybody wants", delivery: "incremental" };

function alive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("a stream that is enough closes the upstream's connection, and ends a program with its children [S2-71]", {
  timeout: 180_000,
}, async () => {
  await using upstream = await startRecordingUpstream();
  await using folder = await temporaryFolder();
  const http = { ...incremental, type: "http", endpoint: `http://127.0.0.1:${upstream.port}/flood/sparse` };
  const script = {
    ...incremental,
    type: "script",
    command: "/bin/sh",
    args: ["-c", "sleep 600 & echo $! $$ DONE; while :; do echo more; sleep 0.01; done"],
  };
  await using gateway = await openGateway({
    folder: folder.path,
    files: {
      "tools/http.json": JSON.stringify({
        ...http,
        name: "http",
        result: { format: "text", early_stop: { match: "-+" } },
      }),
      "tools/script.json": JSON.stringify({
        ...script,
        name: "script",
        result: { format: "text", early_stop: { match: "DONE" } },
      }),
    },
  });
  const flooded = await gateway.client.call("http");
  expect(flooded.result?.earlyStop).toBe(EarlyStop.MATCH);
  expect(textOf(flooded)).toMatch(/^云+-+$/);
  const request = await upstream.nextRequest();
  await request.closed;
  expect(request.bytesWritten()).toBeLessThan(100_000_000);

  const ended = await gateway.client.call("script");
  expect(ended.result).toMatchObject({ earlyStop: EarlyStop.MATCH });
  expect(ended.result?.failure).toBeUndefined();
  const pids = textOf(ended).split(" ").slice(0, 2).map(Number);
  expect(pids).toHaveLength(2);
  await expect.poll(() => pids.filter(alive), { timeout: 20_000 }).toEqual([]);
});

test("a conclusive tool gives no text before its end, whatever its upstream sends in pieces [S2-70, S2-71]", {
  timeout: 180_000,
}, async () => {
  await using folder = await temporaryFolder();
  const keys = { description: "prints in pieces", type: "script", command: "/bin/sh" };
  await using gateway = await openGateway({
    folder: folder.path,
    files: {
      "tools/whole.json": JSON.stringify({ ...keys, name: "whole", args: ["-c", "echo one; sleep 0.2; echo two"] }),
    },
  });
  const cases: string[] = [];
  for await (const { event } of gateway.client.service.callStream({ invocation: { name: "whole" } })) {
    cases.push(
      event.case === "completed"
        ? `completed ${JSON.stringify(event.value.result?.content[0]?.part.value)}`
        : (event.case ?? ""),
    );
  }
  expect(cases.filter((each) => each !== "started" && each !== "heartbeat")).toEqual(['completed "one\\ntwo\\n"']);
});

test("conclusive tools over HTTP and of MCP servers give nothing of an answer that has begun, progress apart [S2-70, S2-71]", {
  timeout: 60_000,
}, async () => {
  const body = Buffer.from("first half, second half");
  const half: Answer = {
    mimeType: "text/plain",
    body,
    content: [{ type: "text", text: body.toString() }],
    halts: true,
  };
  for (const name of ["half", "content/half"]) {
    await using servers = await startContentServers({ half });
    await using folder = await temporaryFolder();
    const http = { name: "half", description: "answers in two", type: "http", endpoint: `${servers.origin}/half` };
    const mcp = { name: "content", type: "mcp", mcp: { url: `${servers.origin}/mcp`, protocol: "legacy" } };
    const files = { "tools/half.json": JSON.stringify(http), "tools/content.json": JSON.stringify(mcp) };
    await using gateway = await openGateway({ folder: folder.path, files });
    await retryUntil(
      () => gateway.client.service.list({}),
      ({ tools }) => tools.some((tool) => tool.name === "content/half"),
      30_000,
    );
    const seen: unknown[] = [];
    const heartbeat = { seconds: 0n, nanos: 100_000_000 };
    let beats = 0;
    for await (const { event } of gateway.client.service.callStream({ invocation: { name }, heartbeat })) {
      if (event.case === "heartbeat") {
        await servers.begun();
        // The half had the time of some heartbeats to come out.
        if (++beats === 3) servers.goOn();
      } else if (event.case === "completed") seen.push(event.value.result?.content[0]?.part.value);
      else seen.push(event.case);
    }
    expect(beats).toBeGreaterThanOrEqual(3);
    expect(seen.filter((each) => each !== "progress")).toEqual(["started", "first half, second half"]);
  }
});
