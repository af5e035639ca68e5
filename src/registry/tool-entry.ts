import type { Access } from "../core/access.ts";
import type { ToolView } from "../core/registry.ts";
import type { Availability, DeclaredTool, ToolDefinition } from "../core/tool.ts";
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

/** Nobody: for what is not listed. */
const NOBODY: Access = { roles: [], subjects: [] };

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
    return this.listed ? this.claim.declaration.policy.access : NOBODY;
  }

  /** Whether it is a server, which is no tool itself. */
  get isServer(): boolean {
    return this.claim.declaration.server !== undefined;
  }

  /** Whether List and Watch show it, and Get and calls find it. */
  get listed(): boolean {
    const { remote, exposed } = this.claim.declaration;
    return !this.isServer && remote?.visible !== false && exposed !== false;
  }

  get availability(): Availability {
    if (!this.definition.enabled) {
      return { state: "disabled", reason: `\`enabled: false\` in ${this.definition.source}` };
    }
    return this.open?.availability ?? READY;
  }
}

/** The definition that follows from a claim; what of it takes work is worked out when it is read. */
class ClaimDefinition implements ToolDefinition {
  readonly alias: string;
  readonly source: string;
  readonly #claim: Claim;

  constructor(claim: Claim, alias: string) {
    this.#claim = claim;
    this.alias = alias;
    this.source = claim.source.startsWith("api:") ? "api" : claim.source;
  }

  get name(): string {
    return this.#claim.name;
  }

  get title(): string {
    return this.#tool.title;
  }

  get description(): string {
    return this.#tool.description;
  }

  get kind(): DeclaredTool["kind"] {
    return this.#tool.kind;
  }

  get inputSchema(): DeclaredTool["inputSchema"] {
    return this.#tool.inputSchema;
  }

  get outputSchema(): DeclaredTool["outputSchema"] {
    return this.#tool.outputSchema;
  }

  get hints(): DeclaredTool["hints"] {
    return this.#tool.hints;
  }

  get claimedHints(): NonNullable<DeclaredTool["claimedHints"]> {
    return this.#tool.claimedHints ?? {};
  }

  get labels(): DeclaredTool["labels"] {
    return this.#tool.labels;
  }

  get delivery(): DeclaredTool["delivery"] {
    return this.#tool.delivery;
  }

  get enabled(): boolean {
    return this.#tool.enabled;
  }

  get etag(): string {
    return this.#claim.declaration.digest;
  }

  get contractDigest(): string {
    return this.#claim.declaration.contractDigest;
  }

  get createTimeMs(): number {
    return this.#claim.createTimeMs;
  }

  get updateTimeMs(): number {
    return this.#claim.updateTimeMs;
  }

  get defaultTimeoutMs(): number {
    return this.#claim.declaration.policy.totalMs;
  }

  get toolsets(): readonly string[] {
    return this.#claim.declaration.toolsets ?? NO_TOOLSETS;
  }

  get leaseExpireTimeMs(): number | undefined {
    return this.#claim.leaseExpireTimeMs;
  }

  get #tool(): DeclaredTool {
    return this.#claim.declaration.tool;
  }
}

const NO_TOOLSETS: readonly string[] = [];

/** The definition that follows from a claim. */
export function buildDefinition(claim: Claim, alias: string): ToolDefinition {
  return new ClaimDefinition(claim, alias);
}

/** Whether two definitions of one tool name are the same to everybody who reads them. */
export function sameDefinition(a: ToolDefinition, b: ToolDefinition): boolean {
  if (a === b) return true;
  return (
    a.alias === b.alias &&
    a.source === b.source &&
    a.createTimeMs === b.createTimeMs &&
    a.updateTimeMs === b.updateTimeMs &&
    a.leaseExpireTimeMs === b.leaseExpireTimeMs &&
    a.etag === b.etag
  );
}
