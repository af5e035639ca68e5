import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  ownValue,
  parseJson,
  stringifyJson,
} from "../core/json.ts";
import type { ClientAuth, LoginClient, ServerLogin } from "../core/logins.ts";

/** Form of what is written. */
const FORM = 1;

/** Bytes of an AES-256 key, of a nonce and of a tag of GCM, and of a salt. */
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const SALT_BYTES = 16;

const AUTHS: readonly ClientAuth[] = ["none", "basic", "post", "private_key_jwt"];
const ORIGINS: readonly LoginClient["origin"][] = ["declared", "document", "registered"];

/**
 * A login as it stands on disk: as JSON, or under AES-256-GCM where there is a key. Each time it is written it has a key
 * of its own, made from the gateway's and a random salt; that of another server does not open.
 * Source: NIST SP 800-38D; RFC 5869.
 */
export function encodeLogin(login: ServerLogin, key: Uint8Array | undefined): string {
  const facts = stringifyJson(compact({ ...login, client: compact(login.client) }));
  if (key === undefined) return stringifyJson({ form: FORM, login: parseJson(facts) });
  const salt = randomBytes(SALT_BYTES);
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", ownKey(key, salt), nonce).setAAD(Buffer.from(login.server));
  const sealed = Buffer.concat([salt, nonce, cipher.update(facts, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return stringifyJson({ form: FORM, sealed: sealed.toString("base64") });
}

/** What {@link decodeLogin} found. */
export type DecodedLogin = ServerLogin | "sealed" | "damaged";

/** Reads what {@link encodeLogin} wrote. `sealed`: there is no key, or not the one it was sealed with. */
export function decodeLogin(text: string, server: string, key: Uint8Array | undefined): DecodedLogin {
  const file = objectOf(text);
  if (file === undefined || ownValue(file, "form") !== FORM) return "damaged";
  const sealed = ownValue(file, "sealed");
  let facts = ownValue(file, "login") ?? null;
  if (typeof sealed === "string") {
    const opened = key === undefined ? undefined : open(Buffer.from(sealed, "base64"), server, key);
    if (opened === undefined) return "sealed";
    facts = objectOf(opened) ?? null;
  }
  const login = isJsonObject(facts) ? loginOf(facts) : undefined;
  return login === undefined || login.server !== server ? "damaged" : login;
}

function ownKey(key: Uint8Array, salt: Uint8Array): Buffer {
  return Buffer.from(hkdfSync("sha256", key, salt, "toolgate login", KEY_BYTES));
}

function open(sealed: Buffer, server: string, key: Uint8Array): string | undefined {
  const nonceEnd = SALT_BYTES + NONCE_BYTES;
  if (sealed.length < nonceEnd + TAG_BYTES) return undefined;
  const decipher = createDecipheriv(
    "aes-256-gcm",
    ownKey(key, sealed.subarray(0, SALT_BYTES)),
    sealed.subarray(SALT_BYTES, nonceEnd),
    { authTagLength: TAG_BYTES },
  );
  decipher.setAAD(Buffer.from(server)).setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return decipher.update(sealed.subarray(nonceEnd, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
  } catch {
    // Another key, or bytes that nobody sealed: there is nothing more to know.
    return undefined;
  }
}

function loginOf(facts: JsonObject): ServerLogin | undefined {
  const { text, time, texts } = reader(facts);
  const client = clientOf(ownValue(facts, "client") ?? null);
  const [id, server, url, issuer] = [text("id"), text("server"), text("url"), text("issuer")];
  const [tokenUrl, resource, accessToken] = [text("tokenUrl"), text("resource"), text("accessToken")];
  const [accessTimeMs, loginTimeMs] = [time("accessTimeMs"), time("loginTimeMs")];
  if (id === undefined || server === undefined || url === undefined || issuer === undefined) return undefined;
  if (tokenUrl === undefined || resource === undefined || accessToken === undefined) return undefined;
  if (client === undefined || accessTimeMs === undefined || loginTimeMs === undefined) return undefined;
  return {
    id,
    server,
    url,
    issuer,
    tokenUrl,
    resource,
    accessToken,
    client,
    accessTimeMs,
    loginTimeMs,
    revocationUrl: text("revocationUrl"),
    scopes: texts("scopes"),
    wanted: texts("wanted"),
    accessEndMs: time("accessEndMs"),
    refreshToken: text("refreshToken"),
  };
}

function clientOf(facts: JsonValue): LoginClient | undefined {
  if (!isJsonObject(facts)) return undefined;
  const { text, time } = reader(facts);
  const [clientId, redirectUri] = [text("clientId"), text("redirectUri")];
  const auth = AUTHS.find((each) => each === text("auth"));
  const origin = ORIGINS.find((each) => each === text("origin"));
  if (clientId === undefined || redirectUri === undefined || auth === undefined || origin === undefined)
    return undefined;
  return { clientId, redirectUri, auth, origin, secret: text("secret"), secretEndMs: time("secretEndMs") };
}

function reader(facts: JsonObject) {
  return {
    text: (key: string): string | undefined => {
      const value = ownValue(facts, key);
      return typeof value === "string" && value !== "" ? value : undefined;
    },
    time: (key: string): number | undefined => {
      const value = ownValue(facts, key);
      return typeof value === "number" ? value : undefined;
    },
    texts: (key: string): readonly string[] => {
      const value = ownValue(facts, key);
      return isJsonArray(value) ? value.filter((each) => typeof each === "string") : [];
    },
  };
}

/** Without what is undefined, which JSON has no word for. */
function compact(facts: object): JsonObject {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}

function objectOf(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
