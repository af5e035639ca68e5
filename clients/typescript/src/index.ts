export type { CallEvent } from "./call-stream.ts";
export {
  type ClientOptions,
  createToolgateClient,
  type GetOptions,
  type ListOptions,
  type RegisterOptions,
  type StreamOptions,
  type ToolgateClient,
  type ToolSelection,
  type UnregisterOptions,
  type WatchOptions,
} from "./client.ts";
export {
  type ClientReason,
  type EffectName,
  type GatewayReason,
  type StatusName,
  ToolgateError,
  type ToolgateReason,
  type Violation,
} from "./errors.ts";
export type {
  CallExplanation,
  Content,
  ContentAnnotations,
  ResourceLink,
  ResultNotice,
  ToolFailure,
  ToolResult,
  UpstreamExchange,
} from "./gen/toolgate/v1/call_pb.ts";
export { EarlyStop, FailureOrigin, TruncationMode } from "./gen/toolgate/v1/call_pb.ts";
export { CheckStatus, type DiagnoseResponse, type ExplainResponse } from "./gen/toolgate/v1/operator_service_pb.ts";
export type { DeclarationProblem, ListResponse, RegisterResponse } from "./gen/toolgate/v1/tool_gateway_service_pb.ts";
export { Delivery, SchemaForm, type Tool, ToolKind, ToolState } from "./gen/toolgate/v1/tool_pb.ts";
export { type JsonInput, type JsonValue, parseExact, stringifyExact } from "./json.ts";
export type { CallOutcome, NeededInput } from "./outcome.ts";
export type { ReadResultOptions, ResultPage, ResultQuery } from "./read-result.ts";
export type {
  ContinuationOptions,
  InputAnswer,
  InvokeContext,
  InvokeOptions,
  RequestOptions,
  ToolArguments,
} from "./request.ts";
export type { WatchEvent } from "./watch.ts";
