import { GatewayError } from "../core/errors.ts";
import type { MissingSecret, SecretSource } from "../core/secrets.ts";
import { raceSignal } from "../core/signal.ts";
import type { HelperSecrets } from "./helper-secrets.ts";
import type { SecretMemory } from "./secret-memory.ts";
import type { SecretProvider } from "./secret-provider.ts";

/** Several places of secrets: the first that has one counts; a helper is asked for what no other has. */
export class SecretChain implements SecretSource {
  readonly #memory: SecretMemory;
  #providers: readonly SecretProvider[];
  #helper: HelperSecrets | undefined;

  constructor(providers: readonly SecretProvider[], memory: SecretMemory, helper?: HelperSecrets) {
    this.#memory = memory;
    this.#providers = providers;
    this.#helper = helper;
  }

  /** Other places from now on. */
  replace(providers: readonly SecretProvider[], helper: HelperSecrets | undefined): void {
    this.#providers = providers;
    this.#helper = helper;
  }

  has(reference: string): boolean {
    return this.missing(reference) === undefined;
  }

  missing(reference: string): MissingSecret | undefined {
    // Who lists tools does not wait for it.
    for (const provider of this.#providers) void provider.look();
    if (this.#read(reference) !== undefined) return undefined;
    const helper = this.#helper;
    if (helper?.begin(reference) === true) return undefined;
    const mends = [...this.#providers, ...(helper === undefined ? [] : [helper])].map((each) => each.mend(reference));
    const mend = mends.join(", or ");
    const why = helper?.problem(reference);
    return {
      why: why === undefined ? "is not set" : `is not set, and the helper does not give it: ${why}`,
      mend: `${mend.charAt(0).toUpperCase()}${mend.slice(1)}.`,
    };
  }

  fresh(references: readonly string[], signal: AbortSignal): Promise<void> | undefined {
    if (references.length === 0) return undefined;
    const looking = this.#providers.flatMap((provider) => provider.look() ?? []);
    if (looking.length === 0) return this.#ask(references, signal);
    return raceSignal(Promise.all(looking), signal).then(() => this.#ask(references, signal));
  }

  resolve(reference: string): string {
    const value = this.peek(reference);
    if (value === undefined) {
      const [first] = this.#providers.length === 1 && this.#helper === undefined ? this.#providers : [];
      const mend = first === undefined ? this.missing(reference)?.mend : "set this environment variable";
      throw new GatewayError("SECRET_MISSING", `secret ${reference} is not set; ${mend ?? "call again"}`, {
        metadata: { secret: reference },
      });
    }
    this.#memory.remember(value);
    return value;
  }

  remember(value: string): void {
    this.#memory.remember(value);
  }

  peek(reference: string): string | undefined {
    return this.#read(reference) ?? this.#helper?.read(reference);
  }

  #read(reference: string): string | undefined {
    for (const provider of this.#providers) {
      const value = provider.read(reference);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  #ask(references: readonly string[], signal: AbortSignal): Promise<void> | undefined {
    const helper = this.#helper;
    if (helper === undefined) return undefined;
    const asking = references.flatMap((reference) =>
      this.#read(reference) === undefined ? (helper.ask(reference) ?? []) : [],
    );
    return asking.length === 0 ? undefined : raceSignal(Promise.all(asking), signal).then(() => undefined);
  }
}
