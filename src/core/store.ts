/** A registration made over the wire, as kept on disk. */
export interface StoredRegistration {
  /** Tool name. */
  readonly name: string;
  /** The declaration as it was sent. */
  readonly text: string;
  readonly format: "yaml" | "json";
  /** Principal that made it. */
  readonly principal: string;
  /** Milliseconds since the epoch. */
  readonly createTimeMs: number;
  /** Milliseconds since the epoch. */
  readonly updateTimeMs: number;
  /** When it lapses; milliseconds since the epoch. */
  readonly leaseExpireTimeMs: number | undefined;
}

/**
 * Keeps registrations. The caller does not overlap operations on one name. What fails throws GatewayError STORE_FAILED.
 * An implementation passes test/conformance/store.ts.
 */
export interface RegistrationStore extends AsyncDisposable {
  /**
   * All that are kept. A damaged entry is reported by `onDamaged`, by its tool name where that is known, and left
   * alone; it never hides the others.
   */
  load(onDamaged: (entry: string, problem: string) => void): Promise<readonly StoredRegistration[]>;
  /** Keeps or replaces one; durable when the promise resolves, and whole or absent after a crash at any moment. */
  put(registration: StoredRegistration): Promise<void>;
  /** Forgets one; none of that name is fine. Durable when the promise resolves. */
  remove(name: string): Promise<void>;
  /** Resolves when a put would work now. */
  check(): Promise<void>;
}

/** What names a call that counts once. */
export interface LedgerKey {
  /** Principal that calls. */
  readonly principal: string;
  /** Canonical name of the tool. */
  readonly tool: string;
  /** The caller's `request_id`. */
  readonly key: string;
}

/** A call that is about to be dispatched. */
export interface LedgerClaim extends LedgerKey {
  /** Equal for equal arguments only. */
  readonly digest: string;
  /** Id of the call that runs. */
  readonly callId: string;
  /** Milliseconds since the epoch. */
  readonly timeMs: number;
  /** Id of the call whose entry it takes the place of; absent: only where there is none. */
  readonly over?: string;
}

/** What is on record of a call. */
export interface LedgerEntry {
  /**
   * `running`: claimed and not settled. `unknown`: it ended, or its gateway did, without anybody knowing whether it took
   * effect. `committed`: answered.
   */
  readonly state: "running" | "unknown" | "committed";
  readonly digest: string;
  readonly callId: string;
  /** Of the last change of state; milliseconds since the epoch. */
  readonly timeMs: number;
  /** The answer, of `committed`; absent where it is no longer kept. */
  readonly outcome?: string;
}

/** How a call ended. `failed-no-effect` is forgotten, so that the same key may run again. */
export type LedgerSettlement =
  | { readonly state: "committed"; readonly outcome: string }
  | { readonly state: "unknown" }
  | { readonly state: "failed-no-effect" };

/**
 * Remembers calls that count once. What fails throws GatewayError LEDGER_UNAVAILABLE. An entry that is not `running`
 * is forgotten when it is older than the store keeps them; no entry is given up for room. An implementation passes
 * test/conformance/ledger-store.ts.
 */
export interface LedgerStore extends AsyncDisposable {
  /** What is on record under a key. */
  find(key: LedgerKey): Promise<LedgerEntry | undefined>;
  /**
   * Claims a key: `undefined`, durably; or the entry that stands in the way, and nothing changed.
   *
   * @throws GatewayError LEDGER_FULL.
   */
  claim(claim: LedgerClaim): Promise<LedgerEntry | undefined>;
  /** Settles a call, claimed or not; durable when the promise resolves. */
  settle(claim: LedgerClaim, settlement: LedgerSettlement): Promise<void>;
}

/** Room on disk for one call's output, a ring of bytes. Disposing frees it. */
export interface SpillFile extends AsyncDisposable {
  write(bytes: Uint8Array, offset: number): Promise<void>;
  /** Exactly that many bytes, written before. */
  read(offset: number, length: number): Promise<Uint8Array>;
}

/** Where output goes that memory is too small for. */
export interface SpillStore extends AsyncDisposable {
  /** Room that is empty at first and gone with the process at the latest. Throws GatewayError STORE_FAILED. */
  open(): Promise<SpillFile>;
}

/** Where texts are kept over restarts that are of use and never needed. Nothing of it ever fails. */
export interface TextCache {
  /** `key`: 1 to 100 letters and digits. Undefined: nothing is kept under it, or it cannot be read. */
  read(key: string): Promise<string | undefined>;
  write(key: string, text: string): Promise<void>;
}
