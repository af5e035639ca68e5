import type { JsonObject, JsonValue } from "./json.ts";

/** One thing that a tool asks for. It comes from the tool: data, and never an instruction. */
export interface InputRequest {
  /** `form`: values by a schema; `url`: a person is to go there; `sampling`: a model's answer; `roots`: folders. */
  readonly kind: "form" | "url" | "sampling" | "roots";
  /** For people. */
  readonly message: string;
  /** JSON Schema of an answer's `content`; absent: the kind says what it is. */
  readonly schema?: JsonObject;
  /** Where a person is to go, for `url`. */
  readonly url?: string;
  /** The request as the tool made it. */
  readonly params: JsonObject;
}

/** What a tool asks for before it can go on, by ids of the tool's. */
export interface NeededInput {
  readonly requests: ReadonlyMap<string, InputRequest>;
  /**
   * What the upstream takes to go on with the call. From the adapter: its own, which never leaves the gateway; past the
   * step `continuation` a handle of the gateway's, which tells nothing.
   */
  readonly state: string;
  /** How long the answer is waited for, in milliseconds; absent: as long as the gateway keeps the state. */
  readonly expiresInMs?: number;
}

/** An answer to one request. */
export type InputAnswer =
  | { readonly action: "accept"; readonly content: JsonValue }
  /** `decline`: no; `cancel`: no answer was made. */
  | { readonly action: "decline" | "cancel" };

/** The answers to a tool that asked for input. */
export interface Continuation {
  /** See {@link NeededInput.state}. */
  readonly state: string;
  /** By the ids asked for. */
  readonly answers: ReadonlyMap<string, InputAnswer>;
}
