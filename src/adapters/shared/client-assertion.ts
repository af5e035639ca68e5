import { createPrivateKey, type KeyObject, randomUUID, sign } from "node:crypto";
import { stringifyJson } from "../../core/json.ts";

/** How long an assertion is good for, in seconds. */
const LIFE_S = 60;

/** What an assertion says. */
export interface AssertionFacts {
  readonly clientId: string;
  /** Who is to take it: the issuer, or the address that gives tokens. */
  readonly audience: string;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
}

/**
 * A JSON Web Token by which a client identifies itself with its private key, a PEM text: RS256, ES256, ES384 or EdDSA, as
 * the key is. Source: RFC 7523, sections 2.2 and 3. `undefined`: the text is no such key.
 */
export function clientAssertion(pem: string, { clientId, audience, nowMs }: AssertionFacts): string | undefined {
  const key = privateKey(pem);
  const algorithm = key === undefined ? undefined : algorithmOf(key);
  if (key === undefined || algorithm === undefined) return undefined;
  const seconds = Math.floor(nowMs / 1_000);
  const claims = {
    iss: clientId,
    sub: clientId,
    aud: audience,
    jti: randomUUID(),
    iat: seconds,
    exp: seconds + LIFE_S,
  };
  const text = [{ alg: algorithm.name, typ: "JWT" }, claims]
    .map((part) => Buffer.from(stringifyJson(part)).toString("base64url"))
    .join(".");
  const signature = sign(algorithm.hash, Buffer.from(text), { key, dsaEncoding: "ieee-p1363" });
  return `${text}.${signature.toString("base64url")}`;
}

/** In a variable of the environment the line breaks are often written as `\n`. */
function privateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem.replaceAll("\\n", "\n"));
  } catch {
    // Whatever is wrong with it, it is no key.
    return undefined;
  }
}

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject) {
  if (asymmetricKeyType === "rsa") return { name: "RS256", hash: "sha256" };
  if (asymmetricKeyType === "ed25519") return { name: "EdDSA", hash: null };
  if (asymmetricKeyType !== "ec") return undefined;
  switch (asymmetricKeyDetails?.namedCurve) {
    case "prime256v1":
      return { name: "ES256", hash: "sha256" };
    case "secp384r1":
      return { name: "ES384", hash: "sha384" };
    default:
      return undefined;
  }
}
