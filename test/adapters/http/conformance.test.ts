import { type AdapterBench, describeAdapter, type TestedTool } from "../../conformance/adapter.ts";
import { closed, openTool, sendJson, startUpstream, type TestUpstream, type ToolOptions } from "./fixture.ts";

describeAdapter("http", startBench);

async function startBench(): Promise<AdapterBench> {
  const quick = await startUpstream((response) => sendJson(response, 200, { code: 0 }));
  const silent = await startUpstream(() => undefined);
  const endless = await startUpstream((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const timer = setInterval(() => response.write("data: tick\n\n"), 5);
    response.on("close", () => clearInterval(timer));
  });
  const failing = await startUpstream((response) => sendJson(response, 404, { message: "no such order" }));
  const gone = await startUpstream(() => undefined);
  await gone[Symbol.asyncDispose]();
  const auth = { header_name: "X-Key", secret_ref: "MISSING" };
  return {
    quick: tested(quick),
    silent: tested(silent, { keys: { method: "POST" } }),
    endless: tested(endless, { delivery: "incremental" }),
    failing: tested(failing),
    unreachable: tested(gone),
    unready: tested(quick, { keys: { auth } }),
    async [Symbol.asyncDispose]() {
      await Promise.all([quick, silent, endless, failing].map((upstream) => upstream[Symbol.asyncDispose]()));
    },
  };
}

function tested(upstream: TestUpstream, options: Partial<ToolOptions> = {}): TestedTool {
  return {
    open: () => openTool({ name: "tested_tool", ...options, keys: { endpoint: upstream.origin, ...options.keys } }),
    arguments: {},
    reached: () => upstream.requests.length,
    arrived: async () => void (await upstream.nextRequest()),
    quiet: async () => void (await Promise.all(upstream.sockets.map(closed))),
  };
}
