import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CallRequest,
  CallResponseSchema,
  CallStreamRequest,
  CallStreamResponseSchema,
  ToolGatewayService,
} from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { GatewayError } from "../core/errors.ts";
import {
  type CallRequestFacts,
  decodeInvocation,
  decodeResume,
  heartbeatMs,
  resumeWindowMs,
} from "../wire/call-codec.ts";
import { toDuration, toTimestamp } from "../wire/durations.ts";
import { requiredName } from "../wire/request-error.ts";
import { encodeExplanation, encodeOutput, encodeResult, encodeStats, type StreamEvent } from "../wire/result-codec.ts";
import { listedSchemas } from "../wire/schema-form.ts";
import type { CallEnd, CallEvent } from "./call-record.ts";
import { rpcOf } from "./connect-context.ts";
import { drainCall } from "./drain-call.ts";
import { isPlain, keptCall, resumeCall, type StreamWishes } from "./kept-call.ts";
import type { KeptCallDeps } from "./kept-work.ts";
import { type ListDeps, listTools } from "./list-tools.ts";
import { type RegisterDeps, registerTool, unregisterTool } from "./register-tool.ts";
import type { Rpc } from "./rpc.ts";
import { runCall, shortError } from "./run-call.ts";
import type { Service } from "./service.ts";
import { type WatchDeps, watchTools } from "./watch-tools.ts";

/** What the service takes. */
export type ToolGatewayDeps = ListDeps & WatchDeps & RegisterDeps & KeptCallDeps;

/** toolgate.v1.ToolGatewayService. */
export function createToolGatewayService(deps: ToolGatewayDeps): Service<typeof ToolGatewayService> {
  return {
    register: (request, { values }) => registerTool(request, rpcOf(values), deps),
    unregister: (request, { values }) => unregisterTool(request, rpcOf(values), deps),
    get: (request, { values }) => {
      const view = deps.registry.get(requiredName("name", request.name), rpcOf(values).principal);
      return { tool: deps.tools.message(view, listedSchemas(request)) };
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
  deps: KeptCallDeps,
): Promise<MessageInitShape<typeof CallResponseSchema>> {
  const { callId, end } = await drainCall(begin(invocation, AT_ONCE, rpc, deps));
  return { callId, ...encodeEnd(end) };
}

async function* callStream(
  { invocation, heartbeat, resumeWindow, resume }: CallStreamRequest,
  rpc: Rpc,
  deps: KeptCallDeps,
): AsyncGenerator<MessageInitShape<typeof CallStreamResponseSchema>, void, undefined> {
  const wishes = { heartbeatMs: heartbeatMs(heartbeat), resumeWindowMs: resumeWindowMs(resumeWindow) };
  const place = resume === undefined ? undefined : decodeResume(resume, invocation);
  const events =
    place === undefined ? begin(invocation, wishes, rpc, deps) : resumeCall(place, wishes.heartbeatMs, rpc, deps);
  let sequence = place === undefined ? 0n : BigInt(place.after) + 1n;
  for await (const event of events) {
    for (const message of encodeEvent(event)) yield { sequence: sequence++, event: message };
  }
}

/** How a call is made that is not streamed. */
const AT_ONCE: StreamWishes = { heartbeatMs: undefined, resumeWindowMs: undefined };

/** Makes a call: on the short way unless something of it is to be kept. */
function begin(
  invocation: CallRequest["invocation"],
  wishes: StreamWishes,
  rpc: Rpc,
  deps: KeptCallDeps,
): AsyncGenerator<CallEvent, void, undefined> {
  const request = decodeWatched(invocation, rpc, deps);
  return isPlain(request, wishes)
    ? runCall(request, wishes.heartbeatMs, rpc, deps)
    : keptCall(request, wishes, rpc, deps);
}

/** Reads an invocation. One that cannot be read is told to who watches. @throws GatewayError. */
function decodeWatched(invocation: CallRequest["invocation"], rpc: Rpc, { watch }: KeptCallDeps): CallRequestFacts {
  try {
    return decodeInvocation(invocation);
  } catch (thrown) {
    const facts = { callId: undefined, principal: rpc.principal.id, arguments: undefined, ms: 0 };
    watch?.short({ tool: invocation?.name ?? "", ...facts, ...shortError(GatewayError.from(thrown)) });
    throw thrown;
  }
}

function encodeEvent(event: CallEvent): StreamEvent[] {
  switch (event.type) {
    case "started":
      return [{ case: "started", value: encodeStarted(event) }];
    case "heartbeat":
      return [{ case: "heartbeat", value: {} }];
    case "completed":
      return [{ case: "completed", value: encodeEnd(event) }];
    default:
      return encodeOutput(event);
  }
}

function encodeStarted({ callId, deadlineMs, resumeWindowMs: windowMs }: Extract<CallEvent, { type: "started" }>) {
  const started = { callId, deadline: toTimestamp(deadlineMs) };
  return windowMs === undefined ? started : { ...started, resumeWindow: toDuration(windowMs) };
}

function encodeEnd({ result, tool, stats, exchanges }: CallEnd) {
  return {
    ...(result === undefined ? {} : { result: encodeResult(result, tool) }),
    stats: encodeStats(stats),
    ...(exchanges === undefined ? {} : { explanation: encodeExplanation(exchanges) }),
  };
}
