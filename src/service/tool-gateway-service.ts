import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  CallRequest,
  CallResponseSchema,
  CallStreamRequest,
  CallStreamResponseSchema,
  ToolGatewayService,
} from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { decodeInvocation, heartbeatMs } from "../wire/call-codec.ts";
import { toTimestamp } from "../wire/durations.ts";
import { notSupportedYet, requiredName } from "../wire/request-error.ts";
import { encodeExplanation, encodeOutput, encodeResult, encodeStats, type StreamEvent } from "../wire/result-codec.ts";
import { rpcOf } from "./connect-context.ts";
import { drainCall } from "./drain-call.ts";
import { type ListDeps, listTools } from "./list-tools.ts";
import { type RegisterDeps, registerTool, unregisterTool } from "./register-tool.ts";
import type { Rpc } from "./rpc.ts";
import { type CallDeps, type CallEnd, type CallEvent, runCall } from "./run-call.ts";
import { type WatchDeps, watchTools } from "./watch-tools.ts";

/** What the service takes. */
export type ToolGatewayDeps = ListDeps & WatchDeps & RegisterDeps & CallDeps;

/** toolgate.v1.ToolGatewayService. */
export function createToolGatewayService(deps: ToolGatewayDeps): ServiceImpl<typeof ToolGatewayService> {
  return {
    register: (request, { values }) => registerTool(request, rpcOf(values), deps),
    unregister: (request, { values }) => unregisterTool(request, rpcOf(values), deps),
    get: (request, { values }) => {
      const view = deps.registry.get(requiredName("name", request.name), rpcOf(values).principal);
      return { tool: deps.tools.message(view, false) };
    },
    list: (request, { values }) => listTools(request, rpcOf(values), deps),
    watch: (request, { values }) => watchTools(request, rpcOf(values), deps),
    call: (request, { values }) => call(request, rpcOf(values), deps),
    callStream: (request, { values }) => callStream(request, rpcOf(values), deps),
  };
}

async function call(
  { invocation }: CallRequest,
  rpc: Rpc,
  deps: CallDeps,
): Promise<MessageInitShape<typeof CallResponseSchema>> {
  const { callId, end } = await drainCall(runCall(decodeInvocation(invocation), undefined, rpc, deps));
  return { callId, ...encodeEnd(end) };
}

async function* callStream(
  { invocation, heartbeat, resume }: CallStreamRequest,
  rpc: Rpc,
  deps: CallDeps,
): AsyncGenerator<MessageInitShape<typeof CallStreamResponseSchema>, void, undefined> {
  if (resume !== undefined) throw notSupportedYet("resume");
  const silenceMs = heartbeatMs(heartbeat);
  let sequence = 0n;
  for await (const event of runCall(decodeInvocation(invocation), silenceMs, rpc, deps)) {
    for (const message of encodeEvent(event)) yield { sequence: sequence++, event: message };
  }
}

function encodeEvent(event: CallEvent): StreamEvent[] {
  switch (event.type) {
    case "started":
      return [{ case: "started", value: { callId: event.callId, deadline: toTimestamp(event.deadlineMs) } }];
    case "heartbeat":
      return [{ case: "heartbeat", value: {} }];
    case "completed":
      return [{ case: "completed", value: encodeEnd(event) }];
    default:
      return encodeOutput(event);
  }
}

function encodeEnd({ result, tool, stats, exchanges }: CallEnd) {
  return {
    ...(result === undefined ? {} : { result: encodeResult(result, tool) }),
    stats: encodeStats(stats),
    ...(exchanges === undefined ? {} : { explanation: encodeExplanation(exchanges) }),
  };
}
