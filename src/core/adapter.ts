import type { Invoke } from "./call.ts";
import type { Clock } from "./clock.ts";
import type { EgressRules } from "./egress.ts";
import type { JsonObject } from "./json.ts";
import type { Logger } from "./logger.ts";
import type { SecretSource } from "./secrets.ts";
import type { ResultFormat } from "./shaper.ts";
import type { Availability, DeclaredTool, ToolHints, ToolKind } from "./tool.ts";

/** Limits of one attempt, in milliseconds. */
export interface AttemptTimeouts {
  /** From dispatch to an open connection. */
  readonly connectMs: number;
  /** From the request's end to the answer's headers. */
  readonly readMs: number;
  /** Between two pieces of the answer's body. */
  readonly idleMs: number;
}

/** Bounds of the connections to one origin, which its tools share. What nobody set is absent. */
export interface PoolSettings {
  /** Most open at a time. */
  readonly maxConnections?: number;
  /** Most calls that wait for one. */
  readonly maxWaiting?: number;
  /** Most kept open for later calls. */
  readonly maxIdle?: number;
  /** How long one is kept, in milliseconds. */
  readonly idleMs?: number;
}

/** Which addresses that are not public a declaration may lead to. */
export type PrivateReach = "none" | "loopback" | "all";

/** What the registry has settled for a tool before its adapter sees the declaration. */
export interface AdapterSettings {
  readonly timeouts: AttemptTimeouts;
  /** Most bytes an adapter reads of one conclusive answer, after decompression. */
  readonly maxResponseBytes: number;
  /** What the answer is read as; `json` also where the result rules look into it. */
  readonly format: ResultFormat;
  /** Whether the result rules look into a JSON answer, so that it has to be there as a whole. Absent: they do not. */
  readonly looksInside?: boolean;
  /** What gateway.yaml sets for tools that do not. */
  readonly pool: PoolSettings;
  /** `all` for a file, which an operator put there; less for a registration over the wire. */
  readonly reach: PrivateReach;
  /** Where gateway.yaml lets connections lead. Absent: everywhere. */
  readonly egress?: EgressRules;
}

/** Something wrong in a declaration. */
export interface ConfigIssue {
  /** JSON pointer into the declaration. */
  readonly pointer: string;
  /** One line: what is wrong, what is allowed, the mend. */
  readonly message: string;
}

/** Outcome of reading an adapter's part of a declaration. */
export type Configured<C> =
  | {
      readonly ok: true;
      readonly config: C;
      readonly warnings: readonly ConfigIssue[];
      /** Whether a call changes nothing; the tool's own hint says more than what the adapter can tell. */
      readonly readOnly: boolean;
      /** Identity of what is reached, such as `http://127.0.0.1:7434`. */
      readonly upstream: string;
      /** What is reached beside it, in the same form, such as what gives tokens. Absent: nothing. */
      readonly alsoReaches?: readonly string[];
      /** What runs a program of the gateway's machine, such as `type: script`. Absent: nothing. */
      readonly runsProgram?: string;
      /** References of all secrets it can use. Absent: none. */
      readonly secretRefs?: readonly string[];
      /** Variables of the gateway's environment that a program gets because it asks for them. Absent: none. */
      readonly inheritedEnv?: readonly string[];
    }
  | { readonly ok: false; readonly issues: readonly ConfigIssue[] };

/** What an adapter may use. */
export interface AdapterDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly secrets: SecretSource;
  /** To be called when `availability` or the discovered tools changed. */
  changed(): void;
}

/** A tool that a server offers, as the server describes it: nothing in it has been checked. */
export interface UpstreamTool {
  /** The server's own name, and what `ToolCall.tool` is for its calls. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject | undefined;
  readonly hints: ToolHints;
}

/** What a server offers now. Replaced as a whole, never edited. */
export interface Offer {
  readonly tools: readonly UpstreamTool[];
  /** Tools that the adapter itself had to leave out, and what an operator should know of the list. */
  readonly notes: readonly { readonly tool: string | undefined; readonly message: string }[];
}

/** What a probe found. */
export interface ProbeReport {
  readonly ok: boolean;
  /** One line; holds no secret. */
  readonly message: string;
  /** What to do; empty when ok. */
  readonly mend: string;
}

/** One effective setting of an adapter, for `explain`. Secrets appear by reference. */
export interface ExplainedSetting {
  readonly key: string;
  readonly value: string;
}

/** A live connection of an adapter. Disposing cancels what still runs and frees everything; it never throws. */
export interface Upstream extends AsyncDisposable {
  /** Whether a call has a chance now; cheap, called on every List. */
  availability(): Availability;
  /**
   * Of a kind that `offers`: the tools behind it as last heard; undefined while nothing was heard of them yet. Cheap.
   * Another object means another offer; `AdapterDeps.changed` tells of it.
   */
  offer?(): Offer | undefined;
  readonly invoke: Invoke;
  /** Looks whether the upstream can be reached, without effect on it. Never throws but for the signal's reason. */
  probe(signal: AbortSignal): Promise<ProbeReport>;
}

/** A kind of tool. `C` is its parsed configuration. */
export interface Adapter<C = unknown> {
  readonly kind: ToolKind;
  /** The declaration names a server, whose tools become `server/tool` each. Absent: it is a tool itself. */
  readonly offers?: true;
  /**
   * JSON Schema (an object with `properties`) of the keys this kind adds to a declaration. A key marked
   * `"x-not-supported": true` is known and refused as not supported yet.
   */
  readonly configSchema: JsonObject;
  /** Parses the adapter's keys, already valid by `configSchema`, and checks them against the tool. Does no I/O. */
  configure(keys: JsonObject, tool: DeclaredTool, settings: AdapterSettings): Configured<C>;
  /** Effective settings, for people. */
  explain(config: C): readonly ExplainedSetting[];
  /** Programs of the gateway's machine that run for its tools. Absent: it starts none. */
  programs?(): number;
  /** Opens the upstream. Must not wait for a remote side that can be reached later. */
  open(config: C, deps: AdapterDeps, signal: AbortSignal): Promise<Upstream>;
}
