import {
  EarlyStop as WireEarlyStop,
  FailureOrigin as WireFailureOrigin,
  TruncationMode as WireTruncationMode,
} from "../../gen/toolgate/v1/call_pb.ts";
import { Effect as WireEffect } from "../../gen/toolgate/v1/errors_pb.ts";
import { CheckStatus } from "../../gen/toolgate/v1/operator_service_pb.ts";
import {
  Delivery as WireDelivery,
  ToolKind as WireToolKind,
  ToolState as WireToolState,
} from "../../gen/toolgate/v1/tool_pb.ts";
import type { EarlyStopRule, ToolFailure, TruncationMode } from "../core/call.ts";
import type { Effect } from "../core/effect.ts";
import type { CheckResult } from "../core/registry.ts";
import type { Delivery, ToolKind, ToolState } from "../core/tool.ts";

/** The words of core as numbers of the wire. */
export const KIND_NUMBERS = {
  http: WireToolKind.HTTP,
  script: WireToolKind.SCRIPT,
  mcp: WireToolKind.MCP,
  grpc: WireToolKind.GRPC,
  runtime: WireToolKind.RUNTIME,
  module: WireToolKind.MODULE,
  loop: WireToolKind.LOOP,
} as const satisfies Readonly<Record<ToolKind, WireToolKind>>;

/** See {@link KIND_NUMBERS}. */
export const STATE_NUMBERS = {
  ready: WireToolState.READY,
  degraded: WireToolState.DEGRADED,
  unavailable: WireToolState.UNAVAILABLE,
  disabled: WireToolState.DISABLED,
} as const satisfies Readonly<Record<ToolState, WireToolState>>;

/** See {@link KIND_NUMBERS}. */
export const DELIVERY_NUMBERS = {
  conclusive: WireDelivery.CONCLUSIVE,
  incremental: WireDelivery.INCREMENTAL,
} as const satisfies Readonly<Record<Delivery, WireDelivery>>;

/** See {@link KIND_NUMBERS}. */
export const EFFECT_NUMBERS = {
  none: WireEffect.NONE,
  committed: WireEffect.COMMITTED,
  unknown: WireEffect.UNKNOWN,
} as const satisfies Readonly<Record<Effect, WireEffect>>;

/** See {@link KIND_NUMBERS}. */
export const TRUNCATION_NUMBERS = {
  head: WireTruncationMode.HEAD,
  tail: WireTruncationMode.TAIL,
  head_tail: WireTruncationMode.HEAD_TAIL,
  summary: WireTruncationMode.SUMMARY,
} as const satisfies Readonly<Record<TruncationMode, WireTruncationMode>>;

/** See {@link KIND_NUMBERS}. */
export const EARLY_STOP_NUMBERS = {
  match: WireEarlyStop.MATCH,
  max_length: WireEarlyStop.MAX_LENGTH,
  max_tokens: WireEarlyStop.MAX_TOKENS,
} as const satisfies Readonly<Record<EarlyStopRule, WireEarlyStop>>;

/** See {@link KIND_NUMBERS}. */
export const ORIGIN_NUMBERS = {
  tool: WireFailureOrigin.TOOL,
  protocol: WireFailureOrigin.PROTOCOL,
} as const satisfies Readonly<Record<NonNullable<ToolFailure["origin"]>, WireFailureOrigin>>;

/** See {@link KIND_NUMBERS}. */
export const CHECK_NUMBERS = {
  ok: CheckStatus.OK,
  warning: CheckStatus.WARNING,
  failed: CheckStatus.FAILED,
} as const satisfies Readonly<Record<CheckResult["status"], CheckStatus>>;
