import { isJsonObject, type JsonObject, ownValue, parseJson } from "../../core/json.ts";
import type { ClientAuth } from "../../core/logins.ts";
import { clientAssertion } from "./client-assertion.ts";

/** A client that asks for tokens. */
export interface TokenClient {
  readonly clientId: string;
  readonly auth: ClientAuth;
  /** Its secret, or its private key; of a client with `none` there is none. */
  readonly secret: string;
  /** Whom an assertion of it is for. */
  readonly assertionAudience: string;
}

/** A request of a client that identifies itself. */
export interface ClientRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Adds to a form who asks. `undefined`: the client signs, and its secret is no key.
 * Source: RFC 6749, section 2.3.1; RFC 7523, section 2.2.
 */
export function clientRequest(
  fields: Readonly<Record<string, string>>,
  { clientId, auth, secret, assertionAudience: audience }: TokenClient,
  nowMs: number,
): ClientRequest | undefined {
  const form = new URLSearchParams(fields);
  const headers = { accept: "application/json", "content-type": "application/x-www-form-urlencoded" };
  if (auth === "basic") {
    const pair = [clientId, secret].map(encodeURIComponent).join(":");
    const authorization = `Basic ${Buffer.from(pair).toString("base64")}`;
    return { headers: { ...headers, authorization }, body: form.toString() };
  }
  form.set("client_id", clientId);
  if (auth === "post") form.set("client_secret", secret);
  if (auth === "private_key_jwt") {
    const assertion = clientAssertion(secret, { clientId, audience, nowMs });
    if (assertion === undefined) return undefined;
    form.set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    form.set("client_assertion", assertion);
  }
  return { headers, body: form.toString() };
}

/** What the address that gives tokens answered. */
export type TokenAnswer =
  | {
      readonly ok: true;
      readonly accessToken: string;
      /** How long it lasts; absent: not said. */
      readonly lifeMs: number | undefined;
      readonly refreshToken: string | undefined;
      /** Absent: those that were asked for. */
      readonly scopes: readonly string[] | undefined;
    }
  | {
      readonly ok: false;
      /** The word of the standard, such as `invalid_grant`; absent: none that is one. */
      readonly error: string | undefined;
      /** One line, without what the answer says in its own words, which may quote what was sent. */
      readonly why: string;
    };

/** Reads an answer. Source: RFC 6749, sections 5.1 and 5.2. */
export function readTokenAnswer(status: number, text: string): TokenAnswer {
  const body = objectOf(text) ?? {};
  const accessToken = tokenIn(ownValue(body, "access_token"));
  if (status !== 200 || accessToken === undefined) return refusal(body, `it answered HTTP ${status} without a token`);
  const type = ownValue(body, "token_type");
  if (type !== undefined && (typeof type !== "string" || type.toLowerCase() !== "bearer")) {
    return refusal(body, "it answered with a token of another kind than Bearer");
  }
  const seconds = ownValue(body, "expires_in");
  const scope = ownValue(body, "scope");
  return {
    ok: true,
    accessToken,
    lifeMs: typeof seconds === "number" && seconds > 0 ? seconds * 1_000 : undefined,
    refreshToken: tokenIn(ownValue(body, "refresh_token")),
    scopes: typeof scope === "string" ? scope.split(" ").filter((each) => each !== "") : undefined,
  };
}

/** The word of the standard is safe to show. */
function refusal(body: JsonObject, why: string): TokenAnswer {
  const said = ownValue(body, "error");
  const error = typeof said === "string" && /^[a-z_]{1,64}$/.test(said) ? said : undefined;
  return { ok: false, error, why: error === undefined ? why : `${why} (${error})` };
}

/** What can stand in a header or a form as it is. */
function tokenIn(value: unknown): string | undefined {
  return typeof value === "string" && /^[\x21-\x7e]{1,16384}$/.test(value) ? value : undefined;
}

/** The JSON object of a text; undefined where it is none. */
export function objectOf(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
