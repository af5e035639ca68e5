/** What is not built yet, as far as a behaviour waits for it. */
export type Feature =
  | "circuit breaker"
  | "concurrency limits"
  | "identity"
  | "in-process tools"
  | "key files"
  | "MCP"
  | "model formats"
  | "packaging"
  | "retry"
  | "roles"
  | "search"
  | "skills"
  | "summaries"
  | "text screening"
  | "toolsets"
  | "verification"
  | "runtime-hosted tools";

/**
 * One behaviour of the manifest. Whether it is covered is not written here: it follows from the titles of tests that
 * cite its id. What no test cites must wait for a feature or stand in a document.
 */
export interface Behaviour {
  readonly text: string;
  /** Features without which it cannot be shown. */
  readonly waits?: readonly Feature[];
  /** Of a behaviour that tests cite: what they do not show. */
  readonly rest?: string;
  /** For a promise of the documents: where it stands, and words that must stand there. */
  readonly document?: { readonly file: string; readonly phrase: string };
}

/** A group of ids, for the counts. */
export interface Group {
  /** What its ids begin with, as `S2-`. */
  readonly prefix: string;
  readonly title: string;
  readonly behaviours: Readonly<Record<string, Behaviour>>;
}
