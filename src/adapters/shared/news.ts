/** Lets one reader wait until something has happened, whatever it is; it then looks for itself. */
export class News {
  #wake: (() => void) | undefined;

  /** Resolves at the next thing that happens. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Something has happened. */
  tell(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
