import type { AdapterDeps } from "../../core/adapter.ts";
import type { Availability } from "../../core/tool.ts";

/** Knows which secret of a tool is not set, and tells the registry when that changes. */
export class SecretWatch {
  readonly #references: readonly string[];
  readonly #deps: AdapterDeps;
  /** The one that was missing when it was looked last. */
  #missing: string | undefined;
  #closed = false;

  constructor(references: readonly string[], deps: AdapterDeps) {
    this.#references = references;
    this.#deps = deps;
    this.#missing = this.#firstMissing();
  }

  /** Looks now. */
  look(): void {
    const missing = this.#firstMissing();
    if (missing === this.#missing) return;
    this.#missing = missing;
    // Later, since the registry may be in the middle of asking.
    queueMicrotask(() => {
      if (!this.#closed) this.#deps.changed();
    });
  }

  /** Looks now; `undefined` where nothing is missing. */
  unavailable(): Availability | undefined {
    this.look();
    if (this.#missing === undefined) return undefined;
    const missing = this.#deps.secrets.missing(this.#missing);
    if (missing === undefined) return undefined;
    return { state: "unavailable", reason: `secret ${this.#missing} ${missing.why}`, mend: missing.mend };
  }

  /** Nothing is told any more. */
  close(): void {
    this.#closed = true;
  }

  #firstMissing(): string | undefined {
    return this.#references.find((reference) => !this.#deps.secrets.has(reference));
  }
}
