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

/** Keeps registrations. An implementation passes test/conformance/store.ts. */
export interface RegistrationStore extends AsyncDisposable {
  /** All that are kept. A damaged entry is reported by `onDamaged` and left alone; it never hides the others. */
  load(onDamaged: (entry: string, problem: string) => void): Promise<readonly StoredRegistration[]>;
  /** Keeps or replaces one; durable when the promise resolves, and whole or absent after a crash at any moment. */
  put(registration: StoredRegistration): Promise<void>;
  /** Forgets one; none of that name is fine. */
  remove(name: string): Promise<void>;
}
