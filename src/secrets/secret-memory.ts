/** Most values kept. */
const MAX_VALUES = 256;

/** Most characters of all values together; a matcher needs some 15 times as many states. */
const MAX_CHARACTERS = 32 * 1024;

/**
 * Secret values that were handed out, so that a redactor can mask them, rotated ones too. Bounded: the values used
 * last are kept.
 */
export class SecretMemory {
  readonly #values = new Set<string>();
  #newest: string | undefined;
  #characters = 0;
  #version = 0;

  /** Changes whenever `values()` does. */
  get version(): number {
    return this.#version;
  }

  /** The values, the one used last at the end. */
  values(): readonly string[] {
    return [...this.#values];
  }

  /** Keeps a value, or notes that it was used again. The empty text is no secret. */
  remember(value: string): void {
    if (value === this.#newest || value === "") return;
    this.#newest = value;
    const known = this.#values.delete(value);
    this.#values.add(value);
    if (known) return;
    this.#characters += value.length;
    for (const oldest of this.#values) {
      if (oldest === value || (this.#values.size <= MAX_VALUES && this.#characters <= MAX_CHARACTERS)) break;
      this.#values.delete(oldest);
      this.#characters -= oldest.length;
    }
    this.#version += 1;
  }
}
