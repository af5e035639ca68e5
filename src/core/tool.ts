import type { JsonObject } from "./json.ts";

/** How a tool is reached. `loop`: executed by the agent loop itself. */
export type ToolKind = "http" | "script" | "mcp" | "grpc" | "runtime" | "module" | "loop";

/** Kinds whose tools can ask for input in the middle of a call. */
export const ASKING_KINDS: ReadonlySet<ToolKind> = new Set(["mcp"]);

/** How output may be consumed. */
export type Delivery = "conclusive" | "incremental";

/** Whether a call has a chance now. */
export type ToolState = "ready" | "degraded" | "unavailable" | "disabled";

/** State with its reason for people; the reason is empty for `ready`. */
export interface Availability {
  readonly state: ToolState;
  readonly reason: string;
  /** What an operator can do about it. */
  readonly mend?: string;
  /** It is only beginning, so that nothing is wrong yet. */
  readonly starting?: true;
}

/** Behaviour hints; absent means unknown. */
export interface ToolHints {
  readonly readOnly?: boolean;
  readonly destructive?: boolean;
  readonly idempotent?: boolean;
  readonly openWorld?: boolean;
}

/** What a declaration says of a tool, apart from its adapter's and steps' keys. */
export interface DeclaredTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly kind: ToolKind;
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject | undefined;
  /** What decides about retries and effects. */
  readonly hints: ToolHints;
  /** What a server says of its tool and nobody vouches for: shown where `hints` says nothing, and without effect. */
  readonly claimedHints?: ToolHints;
  readonly labels: Readonly<Record<string, string>>;
  readonly delivery: Delivery;
  readonly enabled: boolean;
}

/** A tool as the registry serves it. Replaced, never edited. */
export interface ToolDefinition extends DeclaredTool {
  /** Name every model provider accepts, from the registry's table. */
  readonly alias: string;
  /** `file:order_status.yaml` or `api`. */
  readonly source: string;
  /** Changes whenever the declaration changes. */
  readonly etag: string;
  /** SHA-256 (hex) over name, description, schemas and hints. */
  readonly contractDigest: string;
  /** Milliseconds since the epoch. */
  readonly createTimeMs: number;
  /** Milliseconds since the epoch. */
  readonly updateTimeMs: number;
  /** Deadline where the caller sets none. */
  readonly defaultTimeoutMs: number;
  readonly toolsets: readonly string[];
  /** When the registration lapses; milliseconds since the epoch. */
  readonly leaseExpireTimeMs: number | undefined;
}
