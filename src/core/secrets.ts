/** Where secrets come from. Values go into an upstream request and nowhere else. */
export interface SecretSource {
  /** Whether the reference is set and not empty. */
  has(reference: string): boolean;
  /**
   * The value now; never cached by the caller, so that rotation works.
   *
   * @throws GatewayError SECRET_MISSING, naming the reference, when it is not set or empty.
   */
  resolve(reference: string): string;
}

/** Replaces secret values, in plain and in encoded forms, by `***`. */
export interface Redactor {
  text(value: string): string;
  /** Redacts text that comes in pieces, also where a secret is split over two of them. */
  stream(): RedactionStream;
}

/** One text in pieces. */
export interface RedactionStream {
  /** What can be let go now; keeps back an end that may be the beginning of a secret. */
  push(piece: string): string;
  /** What was kept back. */
  end(): string;
}
