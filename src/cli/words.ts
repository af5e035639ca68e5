import {
  CheckStatus,
  Delivery,
  EarlyStop,
  ToolKind,
  ToolState,
  TruncationMode,
} from "../../clients/typescript/src/index.ts";

/** Words of the command line for the states of a tool. */
export const STATE_WORDS = {
  active: ToolState.READY,
  degraded: ToolState.DEGRADED,
  unavailable: ToolState.UNAVAILABLE,
  disabled: ToolState.DISABLED,
} as const satisfies Readonly<Record<string, ToolState>>;

/** Words of the command line, and of a declaration's `type`, for the kinds of tools. */
export const KIND_WORDS = {
  http: ToolKind.HTTP,
  script: ToolKind.SCRIPT,
  mcp: ToolKind.MCP,
  grpc: ToolKind.GRPC,
  runtime: ToolKind.RUNTIME,
  module: ToolKind.MODULE,
  loop: ToolKind.LOOP,
} as const satisfies Readonly<Record<string, ToolKind>>;

const DELIVERY_WORDS = { conclusive: Delivery.CONCLUSIVE, incremental: Delivery.INCREMENTAL };

const STATUS_WORDS = { ok: CheckStatus.OK, warning: CheckStatus.WARNING, failed: CheckStatus.FAILED };

const EARLY_STOP_WORDS = {
  match: EarlyStop.MATCH,
  max_length: EarlyStop.MAX_LENGTH,
  max_tokens: EarlyStop.MAX_TOKENS,
};

const TRUNCATION_WORDS = {
  head: TruncationMode.HEAD,
  tail: TruncationMode.TAIL,
  head_tail: TruncationMode.HEAD_TAIL,
  summary: TruncationMode.SUMMARY,
};

/** The word for a state. */
export function stateWord(state: ToolState): string {
  return wordOf(STATE_WORDS, state);
}

/** The word for a kind. */
export function kindWord(kind: ToolKind): string {
  return wordOf(KIND_WORDS, kind);
}

/** The word for how output may be consumed. */
export function deliveryWord(delivery: Delivery): string {
  return wordOf(DELIVERY_WORDS, delivery);
}

/** The word for the outcome of a check. */
export function statusWord(status: CheckStatus): string {
  return wordOf(STATUS_WORDS, status);
}

/** The word for how output was cut. */
export function truncationWord(mode: TruncationMode): string {
  return wordOf(TRUNCATION_WORDS, mode);
}

/** The word for the rule that ended a stream early. */
export function earlyStopWord(rule: EarlyStop): string {
  return wordOf(EARLY_STOP_WORDS, rule);
}

/** `unknown` for a value that only a newer gateway has. */
function wordOf(words: Readonly<Record<string, number>>, value: number): string {
  return Object.entries(words).find(([, candidate]) => candidate === value)?.[0] ?? "unknown";
}
