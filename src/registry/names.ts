import { createHash } from "node:crypto";

/** A name every model provider accepts; the strictest of them takes 64 characters and no leading digit. */
const SAFE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const MAX_ALIAS = 64;
const HASH_DIGITS = 10;
/** Where even hashed aliases meet: enough digits that two names never share them. */
const LONG_HASH_DIGITS = 32;

/**
 * Aliases of all tool names: `[A-Za-z_][A-Za-z0-9_]{0,63}`, each unique. They are a function of the set of names
 * alone, so order of registration and restarts do not change them:
 *
 * - a name that is safe as it stands is its own alias, whatever else there is;
 * - another gets `_` for each character that is not allowed (`order.status` → `order_status`);
 * - where two would get the same, or a tool is named so, each one that needs an alias gets a hash of its own name
 *   instead. None keeps the plain form, since a model that learnt it could then reach another tool than it meant.
 */
export class AliasTable {
  /** What a name may become → the names that would become it. */
  readonly #wanted = new Map<string, Set<string>>();

  /** Takes names in and out. Returns those of the others whose alias may have become another. */
  update(added: Iterable<string>, removed: Iterable<string>): Set<string> {
    const affected = new Set<string>();
    for (const name of removed) {
      for (const candidate of candidatesOf(name)) {
        const names = this.#wanted.get(candidate);
        if (names === undefined) continue;
        names.delete(name);
        if (names.size === 0) this.#wanted.delete(candidate);
        for (const other of names) affected.add(other);
      }
    }
    for (const name of added) {
      for (const candidate of candidatesOf(name)) {
        const names = this.#wanted.get(candidate) ?? new Set();
        for (const other of names) affected.add(other);
        this.#wanted.set(candidate, names.add(name));
      }
    }
    return affected;
  }

  /** The alias of a name; of one that was not taken in, the alias it would get. */
  aliasOf(name: string): string {
    if (SAFE_NAME.test(name)) return name;
    const free = candidatesOf(name).find((candidate) => {
      const names = this.#wanted.get(candidate);
      return names === undefined || (names.size === 1 && names.has(name));
    });
    return free ?? hashed(name, LONG_HASH_DIGITS);
  }

  /** The alias a name has where no other stands in its way. */
  plainAliasOf(name: string): string {
    return candidatesOf(name)[0] ?? name;
  }
}

/** What a name may become, best first. */
function candidatesOf(name: string): readonly string[] {
  if (SAFE_NAME.test(name)) return [name];
  const plain = safeForm(name);
  const short = hashed(name, HASH_DIGITS);
  return plain.length <= MAX_ALIAS ? [plain, short] : [short];
}

function safeForm(name: string): string {
  const safe = name.replaceAll(/[^A-Za-z0-9_]/g, "_");
  return /^\d/.test(safe) ? `_${safe}` : safe;
}

function hashed(name: string, digits: number): string {
  const hash = createHash("sha256").update(name).digest("hex").slice(0, digits);
  return `${safeForm(name).slice(0, MAX_ALIAS - digits - 1)}_${hash}`;
}
