import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { Redactor, RunHelper, SecretSettings, SecretSource } from "../core/secrets.ts";
import { chainRedactors } from "./chained-redactor.ts";
import { type Environment, environmentProvider } from "./environment-secrets.ts";
import { HelperSecrets } from "./helper-secrets.ts";
import { KeyFile } from "./key-file.ts";
import { LivePatterns } from "./live-patterns.ts";
import { createRedactor } from "./redactor.ts";
import { SecretChain } from "./secret-chain.ts";
import { SecretFolder } from "./secret-folder.ts";
import { SecretMemory } from "./secret-memory.ts";
import type { SecretProvider } from "./secret-provider.ts";
import { createTokenRedactor } from "./token-redactor.ts";

/** What places of secrets work with. */
export interface SecretDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly run: RunHelper;
}

/** Secrets, and what masks them. Disposing leaves those of the environment. */
export interface Secrets extends AsyncDisposable {
  readonly source: SecretSource;
  /**
   * Masks the values of those that were looked up, whatever has the shape of a well-known credential, and what
   * {@link mask} says besides: for all that leaves the gateway but results.
   */
  readonly redactor: Redactor;
  /** Masks the values and the shapes: for results, whose tools have patterns of their own. */
  readonly shapes: Redactor;
  /** Masks the values alone: for results of tools that switch the shapes off. */
  readonly values: Redactor;
  /** Masks what matches one of these regular expressions too, from now on. */
  mask(patterns: readonly string[]): void;
  /**
   * Takes over where secrets come from besides the environment.
   *
   * @throws GatewayError naming the mend where a place cannot be used; then nothing changes.
   */
  take(settings: SecretSettings, deps: SecretDeps): Promise<void>;
}

/** Secrets of an environment, read at each request: a changed value is in force at once. */
export function createSecrets(environment: Readonly<Record<string, string | undefined>>): Secrets {
  return new LiveSecrets(environment);
}

class LiveSecrets implements Secrets {
  readonly source: SecretChain;
  readonly redactor: Redactor;
  readonly shapes: Redactor;
  readonly values: Redactor;
  readonly #patterns = new LivePatterns();
  readonly #first: SecretProvider;
  #places: readonly AsyncDisposable[] = [];

  constructor(environment: Environment) {
    const memory = new SecretMemory();
    this.#first = environmentProvider(environment);
    this.source = new SecretChain([this.#first], memory);
    this.values = createRedactor(memory);
    this.shapes = chainRedactors(this.values, createTokenRedactor());
    this.redactor = chainRedactors(this.shapes, this.#patterns);
  }

  mask(patterns: readonly string[]): void {
    this.#patterns.take(patterns);
  }

  async take({ keyFile, folder, helper }: SecretSettings, deps: SecretDeps): Promise<void> {
    const files = [
      ...(keyFile === undefined ? [] : [new KeyFile(keyFile, deps)]),
      ...(folder === undefined ? [] : [new SecretFolder(folder, deps)]),
    ];
    await Promise.all(files.map((place) => place.start()));
    const helped = helper === undefined ? undefined : new HelperSecrets({ ...helper, ...deps });
    const before = this.#places;
    this.#places = helped === undefined ? files : [...files, helped];
    this.source.replace([this.#first, ...files], helped);
    await Promise.all(before.map((place) => place[Symbol.asyncDispose]()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const before = this.#places;
    this.#places = [];
    this.source.replace([this.#first], undefined);
    await Promise.all(before.map((place) => place[Symbol.asyncDispose]()));
  }
}
