/** Why a secret cannot be used. */
export interface MissingSecret {
  /** Goes on after `secret NAME`. */
  readonly why: string;
  /** What to do about it, one sentence. */
  readonly mend: string;
}

/** Where secrets come from. Values go into an upstream request and nowhere else. */
export interface SecretSource {
  /** Whether the reference is set and not empty, as far as that is known without waiting. */
  has(reference: string): boolean;
  /** What keeps it from being used; undefined where {@link has} holds. */
  missing(reference: string): MissingSecret | undefined;
  /** Makes sure that values that take time are those of now. Undefined: nothing is to be waited for. @throws the signal's reason. */
  fresh(references: readonly string[], signal: AbortSignal): Promise<void> | undefined;
  /**
   * The value now; never cached by the caller, so that rotation works.
   *
   * @throws GatewayError SECRET_MISSING, naming the reference, when it is not set or empty.
   */
  resolve(reference: string): string;
  /** A value that was got by secrets, and is to be masked as they are. */
  remember(value: string): void;
  /** The value that is at hand; for masking alone. */
  peek(reference: string): string | undefined;
}

/** Where secrets come from besides the environment. */
export interface SecretSettings {
  /** Absolute path of a file with lines `NAME=value`. */
  readonly keyFile: string | undefined;
  /** Absolute path of a folder with a file for each secret. */
  readonly folder: string | undefined;
  readonly helper: SecretHelper | undefined;
}

/** A program that gives secrets. */
export interface SecretHelper {
  /** The program, an absolute path or a name that is looked up in PATH, and its arguments. */
  readonly command: readonly string[];
  readonly timeoutMs: number;
  /** How long what it gave is used again. */
  readonly cacheMs: number;
}

/** Runs a program to its end and gives its output. */
export type RunHelper = (
  run: {
    readonly file: string;
    readonly args: readonly string[];
    /** Most bytes of its output. */
    readonly maxBytes: number;
  },
  signal: AbortSignal,
) => Promise<{ readonly output: Buffer } | { readonly problem: string }>;

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
