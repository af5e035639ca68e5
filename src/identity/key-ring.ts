import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { Principal } from "../core/principal.ts";
import { WatchedFile } from "../secrets/watched-file.ts";
import { readApiKeys } from "./api-key-file.ts";
import { isSecretOf, keyParts, NO_KEY, type StoredKey } from "./api-keys.ts";
import { type Checked, refused } from "./checked.ts";

interface RingKey {
  readonly stored: StoredKey;
  readonly principal: Principal;
}

/** The API keys that are taken: those of a file, as it is now. A file that is damaged leaves the last good one in force. */
export class KeyRing {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #file: string;
  readonly #watched: WatchedFile;
  #keys: ReadonlyMap<string, RingKey> = new Map();

  constructor(file: string, clock: Clock, logger: Logger) {
    this.#file = file;
    this.#clock = clock;
    this.#logger = logger;
    this.#watched = new WatchedFile({
      file,
      clock,
      read: () => this.#read(),
      failed: (error) => logger.error("api-keys-rejected", { file, error, lastGoodServing: true }),
    });
  }

  /** Reads the file. @throws GatewayError STORE_FAILED where it is there and cannot be read. */
  start(): Promise<void> {
    return this.#watched.start();
  }

  /** Undefined: the keys are those of now. */
  fresh(): Promise<void> | undefined {
    return this.#watched.fresh();
  }

  /** Whose a key is. Takes the same time for a key that is unknown and for one that is wrong. */
  check(key: string): Checked {
    const parts = keyParts(key);
    if (parts === undefined) return refused("malformed API key");
    const known = this.#keys.get(parts.id);
    const fits = isSecretOf(known?.stored ?? NO_KEY, parts.secret);
    if (known === undefined || !fits) return refused("unknown API key", { keyId: parts.id });
    const { expireTimeMs, revokeTimeMs } = known.stored;
    if (revokeTimeMs !== undefined) return refused("revoked API key", { keyId: parts.id });
    if (expireTimeMs !== undefined && expireTimeMs <= this.#clock.now()) {
      return refused("expired API key", { keyId: parts.id });
    }
    return { principal: known.principal };
  }

  async #read(): Promise<void> {
    const stored = await readApiKeys(this.#file);
    const before = this.#keys;
    this.#keys = new Map(
      stored.map((key) => [key.id, { stored: key, principal: principalOf(key, before.get(key.id)?.principal) }]),
    );
    const usable = stored.filter(({ revokeTimeMs }) => revokeTimeMs === undefined).length;
    this.#logger.info("api-keys-loaded", { file: this.#file, usable, revoked: stored.length - usable });
  }
}

/** The same object for the same principal, since much is kept by it. */
function principalOf({ name, roles }: StoredKey, before: Principal | undefined): Principal {
  const id = `key:${name}`;
  if (before?.id === id && before.roles.join() === roles.join()) return before;
  return { id, roles, kind: "api_key" };
}
