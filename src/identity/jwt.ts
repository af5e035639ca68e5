import { readFile } from "node:fs/promises";
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  decodeJwt,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from "jose";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { FetchKeys, JwtIssuer } from "../core/identity.ts";
import { isJsonArray, isJsonObject, ownValue, parseJson } from "../core/json.ts";
import type { Logger } from "../core/logger.ts";
import type { CheckResult } from "../core/registry.ts";
import { WatchedFile } from "../secrets/watched-file.ts";
import { type Checked, refused } from "./checked.ts";

/** Longest answer of an issuer about its keys. */
const JWKS_TIMEOUT_MS = 5_000;
/** How long its keys count, and how soon an unknown one makes it be asked again. */
const JWKS_MAX_AGE_MS = 600_000;
const JWKS_COOLDOWN_MS = 10_000;
const MAX_TOKEN_LENGTH = 16_384;
const MAX_SUBJECT_LENGTH = 512;
const MAX_ROLES = 1_000;

/** What checking tokens takes. */
export interface TokenDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly fetchKeys: FetchKeys;
}

interface Source {
  readonly issuer: JwtIssuer;
  readonly keys: JWTVerifyGetKey;
  /** Of keys in a file. */
  readonly watched?: WatchedFile;
}

/** Checks JSON Web Tokens of some issuers. Source: RFC 7519, RFC 8725. */
export class Tokens {
  readonly #deps: TokenDeps;
  readonly #sources: ReadonlyMap<string, Source>;

  constructor(issuers: readonly JwtIssuer[], deps: TokenDeps) {
    this.#deps = deps;
    this.#sources = new Map(issuers.map((issuer) => [issuer.issuer, sourceOf(issuer, deps)]));
  }

  /** Reads the files of keys. @throws GatewayError naming the one that cannot be used. */
  async start(): Promise<void> {
    const files = [...this.#sources.values()].flatMap(({ watched }) => watched ?? []);
    await Promise.all(files.map((file) => file.start()));
  }

  /** Asks every issuer for its keys. @throws the signal's reason. */
  async examine(signal: AbortSignal): Promise<readonly CheckResult[]> {
    const issuers = [...this.#sources.values()].map(({ issuer }) => issuer);
    const checks = await Promise.all(issuers.map((each) => examineIssuer(each, this.#deps.fetchKeys, signal)));
    return checks.flat();
  }

  /** Whose a token is. @throws GatewayError CREDENTIAL_UNCHECKED where the issuer's keys cannot be had. */
  async check(token: string): Promise<Checked> {
    if (token.length > MAX_TOKEN_LENGTH) return refused("token too long");
    const source = this.#sources.get(issuerOf(token) ?? "");
    if (source === undefined) return refused("token of an unknown issuer");
    const { issuer, keys, watched } = source;
    await watched?.fresh();
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer: issuer.issuer,
        audience: [...issuer.audiences],
        algorithms: [...issuer.algorithms],
        clockTolerance: issuer.clockSkewMs / 1_000,
        requiredClaims: ["exp"],
        currentDate: new Date(this.#deps.clock.now()),
      });
      return principalOf(payload, issuer);
    } catch (error) {
      if (error instanceof errors.JOSEError && !isUnreachable(error)) {
        return refused(`token refused: ${problemOf(error)}`, { issuer: issuer.issuer });
      }
      this.#deps.logger.error("jwks-unreachable", { issuer: issuer.issuer, error });
      const text = "the token cannot be checked: the gateway cannot have its issuer's keys now";
      throw new GatewayError("CREDENTIAL_UNCHECKED", text, { cause: error });
    }
  }
}

/** Asks for an issuer's keys, and says what came of it. Never rejects but for the signal's reason. */
async function examineIssuer({ jwks }: JwtIssuer, fetchKeys: FetchKeys, signal: AbortSignal): Promise<CheckResult[]> {
  if (!("url" in jwks)) return [];
  const { url, allowPrivate } = jwks;
  const subject = `jwks_url ${url}`;
  const failed = (message: string, mend: string): CheckResult[] => [{ subject, status: "failed", message, mend }];
  try {
    const { status, text } = await fetchKeys(url, { allowPrivate, signal });
    if (status !== 200) return failed(`answered HTTP ${status}`, "Correct the address, or look at the issuer.");
    const keys = keyCount(text);
    if (keys === undefined)
      return failed("its answer is no list of keys", "Write there where the issuer has its JWKS.");
    return [{ subject, status: "ok", message: `${keys} keys`, mend: "" }];
  } catch (error) {
    signal.throwIfAborted();
    const why = error instanceof Error ? error.message : "the exchange broke off";
    return failed(
      `cannot be fetched: ${why}`,
      "See that the gateway reaches it, and what `egress` and `allow_private` say.",
    );
  }
}

/** How many keys a text has; undefined: it is no set of keys. */
function keyCount(text: string): number | undefined {
  try {
    const value = parseJson(text);
    const keys = isJsonObject(value) ? ownValue(value, "keys") : undefined;
    return isJsonArray(keys) ? keys.length : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function sourceOf(issuer: JwtIssuer, { clock, logger, fetchKeys }: TokenDeps): Source {
  const { jwks } = issuer;
  if ("url" in jwks) {
    const keys = createRemoteJWKSet(new URL(jwks.url), {
      timeoutDuration: JWKS_TIMEOUT_MS,
      cacheMaxAge: JWKS_MAX_AGE_MS,
      cooldownDuration: JWKS_COOLDOWN_MS,
      [customFetch]: async (url, { signal }) => {
        const { status, text } = await fetchKeys(url, { allowPrivate: jwks.allowPrivate, signal });
        // The library takes 200 alone, and other statuses may not have a body.
        return status === 200 ? new Response(text) : Response.error();
      },
    });
    return { issuer, keys };
  }
  const { file } = jwks;
  let local: JWTVerifyGetKey | undefined;
  const read = async (): Promise<void> => {
    local = await readKeys(file);
    logger.info("jwks-loaded", { file });
  };
  const failed = (error: unknown): void => logger.error("jwks-rejected", { file, error, lastGoodServing: true });
  return {
    issuer,
    watched: new WatchedFile({ file, clock, read, failed }),
    keys: async (header, token) => {
      if (local === undefined) throw new errors.JWKSNoMatchingKey();
      return local(header, token);
    },
  };
}

/** The keys of a file. @throws GatewayError naming the mend. */
async function readKeys(file: string): Promise<JWTVerifyGetKey> {
  try {
    // The library looks at what it is given.
    return createLocalJWKSet(JSON.parse(await readFile(file, "utf8")) as JSONWebKeySet);
  } catch (cause) {
    const text = `\`jwks_file\` ${file} cannot be used: write a JSON object with \`keys\` there, as issuers publish it`;
    throw new GatewayError("INTERNAL", text, { cause });
  }
}

/** Who it says made it; nothing of it is checked yet. */
function issuerOf(token: string): string | undefined {
  try {
    return decodeJwt(token).iss;
  } catch {
    // Not a token at all.
    return undefined;
  }
}

function principalOf(payload: JWTPayload, issuer: JwtIssuer): Checked {
  const subject = Object.hasOwn(payload, issuer.subjectClaim) ? payload[issuer.subjectClaim] : undefined;
  if (typeof subject !== "string" || subject === "" || subject.length > MAX_SUBJECT_LENGTH) {
    return refused(`token without \`${issuer.subjectClaim}\``, { issuer: issuer.issuer });
  }
  const words = rolesClaim(payload, issuer.rolesClaim);
  const { roleMap } = issuer;
  const mapped = roleMap === undefined ? words : words.flatMap((word) => roleMap.get(word) ?? []);
  const roles = [...new Set([...issuer.roles, ...mapped])];
  return {
    principal: { id: `${issuer.name}:${subject}`, roles, kind: "jwt" },
    untilMs: (payload.exp ?? 0) * 1_000 + issuer.clockSkewMs,
  };
}

/** A list of texts, or the words of one. The claim may be named by its whole name, dots and all, or by a path. */
function rolesClaim(payload: JWTPayload, path: string): readonly string[] {
  const whole = Object.hasOwn(payload, path);
  let at: unknown = payload;
  for (const name of whole ? [path] : path.split(".")) {
    at = typeof at === "object" && at !== null && Object.hasOwn(at, name) ? Reflect.get(at, name) : undefined;
  }
  if (typeof at === "string")
    return at
      .split(/[\s,]+/)
      .filter((word) => word !== "")
      .slice(0, MAX_ROLES);
  return Array.isArray(at) ? at.filter((word) => typeof word === "string").slice(0, MAX_ROLES) : [];
}

/** Whether it is the issuer's fault: no answer, or one that is no list of keys. */
function isUnreachable(error: errors.JOSEError): boolean {
  return ["ERR_JWKS_TIMEOUT", "ERR_JWKS_INVALID", "ERR_JOSE_GENERIC"].includes(error.code);
}

/** A word for why, without anything of the token. */
function problemOf(error: errors.JOSEError): string {
  return error instanceof errors.JWTClaimValidationFailed ? `${error.code} ${error.claim} ${error.reason}` : error.code;
}
