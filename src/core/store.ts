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
