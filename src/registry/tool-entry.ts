import type { Access } from "../core/access.ts";
import type { ToolView } from "../core/registry.ts";
import type { Availability, ToolDefinition } from "../core/tool.ts";
import type { Declaration } from "./declaration.ts";
import type { OpenTool } from "./open-tool.ts";

/** That a source declares a tool. Replaced, never edited. */
export interface Claim {
  readonly name: string;
  /** `file:weather.yaml` or `api:NAME`; unique. */
  readonly source: string;
  readonly declaration: Declaration;
  /** Milliseconds since the epoch. */
  readonly createTimeMs: number;
  /** Milliseconds since the epoch. */
  readonly updateTimeMs: number;
  /** Milliseconds since the epoch. */
  readonly leaseExpireTimeMs: number | undefined;
}

const READY: Availability = { state: "ready", reason: "" };

/** A tool as the snapshot holds it. Its availability is what it is at the moment it is read. */
export class ToolEntry implements ToolView {
  readonly claim: Claim;
  /** Absent for a tool that is disabled: nothing is opened for it. */
  readonly open: OpenTool | undefined;
  readonly definition: ToolDefinition;

  constructor(claim: Claim, open: OpenTool | undefined, definition: ToolDefinition) {
    this.claim = claim;
    this.open = open;
    this.definition = definition;
  }

  /** Who may see and call it; absent: everybody. */
  get access(): Access | undefined {
    return this.claim.declaration.policy.access;
  }

  get availability(): Availability {
    if (!this.definition.enabled) {
      return { state: "disabled", reason: `\`enabled: false\` in ${this.definition.source}` };
    }
    return this.open?.availability ?? READY;
  }
}

/** The definition that follows from a claim. */
export function buildDefinition(claim: Claim, alias: string): ToolDefinition {
  const { tool, digest, contractDigest, policy } = claim.declaration;
  return {
    ...tool,
    alias,
    source: claim.source.startsWith("api:") ? "api" : claim.source,
    etag: digest,
    contractDigest,
    createTimeMs: claim.createTimeMs,
    updateTimeMs: claim.updateTimeMs,
    defaultTimeoutMs: policy.totalMs,
    toolsets: [],
    leaseExpireTimeMs: claim.leaseExpireTimeMs,
  };
}

/** Whether two definitions of one tool name are the same to everybody who reads them. */
export function sameDefinition(a: ToolDefinition, b: ToolDefinition): boolean {
  return (
    a.etag === b.etag &&
    a.alias === b.alias &&
    a.source === b.source &&
    a.createTimeMs === b.createTimeMs &&
    a.updateTimeMs === b.updateTimeMs &&
    a.leaseExpireTimeMs === b.leaseExpireTimeMs
  );
}
