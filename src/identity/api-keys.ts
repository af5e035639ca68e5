import { hash, randomBytes, randomInt, timingSafeEqual } from "node:crypto";

/** An API key as it is kept: of the key itself only a salted hash. */
export interface StoredKey {
  /** 12 small letters and digits; stands in the key and is no secret. */
  readonly id: string;
  /** Whose it is: the principal is `key:NAME`. Two keys can have one name, so that one can take the other's place. */
  readonly name: string;
  readonly roles: readonly string[];
  /** Hex. */
  readonly salt: string;
  /** SHA-256 over salt and secret, in hex. A slow hash is for what people make up; this is 256 random bits. */
  readonly hash: string;
  /** Milliseconds since the epoch. */
  readonly createTimeMs: number;
  readonly expireTimeMs: number | undefined;
  readonly revokeTimeMs: number | undefined;
}

/** A key that was made: what to keep, and what to show once. */
export interface NewKey {
  readonly stored: StoredKey;
  /** `tg_ID_SECRET`. */
  readonly key: string;
}

/** What every key begins with, so that scanners of code and logs can find one. */
export const KEY_PREFIX = "tg_";

const KEY = /^tg_([a-z0-9]{12})_([A-Za-z0-9_-]{43})$/;
const ID_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789";
const ID_LENGTH = 12;
const SECRET_BYTES = 32;
const SALT_BYTES = 16;

/** Makes a key of 256 random bits. */
export function createKey(facts: Pick<StoredKey, "name" | "roles" | "createTimeMs" | "expireTimeMs">): NewKey {
  const id = Array.from({ length: ID_LENGTH }, () => ID_CHARACTERS[randomInt(ID_CHARACTERS.length)]).join("");
  const secret = randomBytes(SECRET_BYTES).toString("base64url");
  const salt = randomBytes(SALT_BYTES).toString("hex");
  return {
    key: `${KEY_PREFIX}${id}_${secret}`,
    stored: { id, ...facts, salt, hash: hashOf(salt, secret), revokeTimeMs: undefined },
  };
}

/** The parts of a key; undefined for what cannot be one. */
export function keyParts(key: string): { readonly id: string; readonly secret: string } | undefined {
  const [, id, secret] = KEY.exec(key) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

/** Whether a secret is that of the stored key, in the same time whatever it is. */
export function isSecretOf(stored: Pick<StoredKey, "salt" | "hash">, secret: string): boolean {
  return timingSafeEqual(Buffer.from(hashOf(stored.salt, secret)), Buffer.from(stored.hash));
}

/** Stands in where there is no key of an id, so that it takes as long to find out. */
export const NO_KEY: Pick<StoredKey, "salt" | "hash"> = { salt: "", hash: "0".repeat(64) };

function hashOf(salt: string, secret: string): string {
  return hash("sha256", `${salt}:${secret}`, "hex");
}
