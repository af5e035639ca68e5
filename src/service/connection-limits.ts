/** Bounds of a connection. Times in milliseconds. */
export interface ConnectionLimits {
  /** From accept until it is known which HTTP a socket speaks. */
  readonly sniffMs: number;
  /** From the first byte of an HTTP/1 request to the end of its headers. */
  readonly headersMs: number;
  /** From the first byte of a request to its last. */
  readonly requestMs: number;
  /** From the end of a call until its caller has taken the answer. */
  readonly answerMs: number;
  /** Answers written to an HTTP/2 connection that its peer has not taken yet, in bytes. */
  readonly unreadAnswerBytes: number;
  /** An HTTP/1 connection without a request. Longer than the 60 s after which most balancers drop theirs. */
  readonly idleMs: number;
  /** Header fields of a request, in bytes. */
  readonly headerBytes: number;
  /** Connections at a time. */
  readonly connections: number;
  /**
   * Memory of one HTTP/2 session in MB. Node's default of 10 refuses new calls on a connection that a sidecar shares
   * among slow streams.
   */
  readonly sessionMemoryMb: number;
  /** Streams a peer may reset at once, and again each second, before its connection is closed. */
  readonly streamResetBurst: number;
  readonly streamResetRate: number;
  /** From the abort of an RPC to its reset. */
  readonly resetGraceMs: number;
}

/** What holds where nothing else is said. */
export const DEFAULT_CONNECTION_LIMITS: ConnectionLimits = {
  sniffMs: 5_000,
  headersMs: 10_000,
  requestMs: 60_000,
  answerMs: 60_000,
  unreadAnswerBytes: 256 * 1024 * 1024,
  idleMs: 75_000,
  headerBytes: 16_384,
  connections: 10_000,
  sessionMemoryMb: 1_000,
  streamResetBurst: 1_000,
  streamResetRate: 100,
  resetGraceMs: 2_000,
};
