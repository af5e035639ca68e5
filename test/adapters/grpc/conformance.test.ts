import { once } from "node:events";
import { type AdapterBench, describeAdapter, type TestedTool } from "../../conformance/adapter.ts";
import { closed } from "../http/fixture.ts";
import { frame, openTool, order, type RawServer, refuse, reply, startRaw, type ToolOptions } from "./fixture.ts";

describeAdapter("grpc", startBench);

async function startBench(): Promise<AdapterBench> {
  const quick = await startRaw((call) => reply(call, [order()]));
  const silent = await startRaw(() => undefined);
  const endless = await startRaw(({ stream }) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" });
    const timer = setInterval(() => stream.write(frame(order())), 5);
    stream.on("close", () => clearInterval(timer));
  });
  const failing = await startRaw((call) => refuse(call, { "grpc-status": "5", "grpc-message": "no such order" }));
  const gone = await startRaw(() => undefined);
  await gone[Symbol.asyncDispose]();
  const sockets = async (server: RawServer): Promise<void> => void (await Promise.all(server.sockets.map(closed)));
  return {
    quick: tested(quick, {}, sockets),
    silent: tested(silent),
    endless: tested(endless, { grpc: { method: "shop.v1.OrderService/WatchOrder" }, delivery: "incremental" }),
    failing: tested(failing),
    unreachable: tested(gone),
    unready: tested(quick, { grpc: { metadata: { "x-key": "${MISSING}" } } }),
    async [Symbol.asyncDispose]() {
      await Promise.all([quick, silent, endless, failing].map((server) => server[Symbol.asyncDispose]()));
    },
  };
}

function tested(
  server: RawServer,
  options: Partial<ToolOptions> = {},
  quiet: (server: RawServer) => Promise<void> = streamsClosed,
): TestedTool {
  return {
    open: () => openTool({ name: "tested_tool", ...options, grpc: { address: server.address, ...options.grpc } }),
    arguments: { order_id: "A1" },
    reached: () => server.calls.length,
    arrived: async () => void (await server.nextCall()),
    quiet: () => quiet(server),
  };
}

/** A connection outlives its calls. */
async function streamsClosed({ calls }: RawServer): Promise<void> {
  const open = calls.filter(({ stream }) => !stream.closed);
  await Promise.all(open.map(({ stream }) => once(stream, "close")));
}
