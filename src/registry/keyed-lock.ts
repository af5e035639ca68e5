/** Runs tasks of one key one after the other, in the order they came; tasks of other keys do not wait. */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<void>>();

  /** Settles as the task does. A task that fails does not stop the next. */
  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const result = (this.#tails.get(key) ?? Promise.resolve()).then(task);
    const tail = result.then(
      () => undefined,
      () => undefined,
    );
    this.#tails.set(key, tail);
    try {
      return await result;
    } finally {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }

  /** Settles when every task asked for so far is over. Never rejects. */
  async idle(): Promise<void> {
    await Promise.all(this.#tails.values());
  }
}
