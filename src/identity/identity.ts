import { hash } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Authenticate, FetchKeys, HeaderReader, IdentitySettings, Peer } from "../core/identity.ts";
import type { Logger } from "../core/logger.ts";
import type { AuditTrail } from "../core/observation.ts";
import { ANONYMOUS, type Principal } from "../core/principal.ts";
import type { CheckResult } from "../core/registry.ts";
import { KEY_PREFIX } from "./api-keys.ts";
import { checkCertificate } from "./certificates.ts";
import { type Checked, type Refused, refused } from "./checked.ts";
import { FailedAttempts } from "./failed-attempts.ts";
import { Tokens } from "./jwt.ts";
import { KeyRing } from "./key-ring.ts";

/** Most credentials that are remembered as good; over it the oldest is forgotten. */
const MAX_GOOD = 10_000;
/** How long a token that was checked is not checked again: as long it outlives a key that its issuer withdrew. */
const TOKEN_MEMORY_MS = 60_000;

/** What telling callers apart takes. */
export interface IdentityOptions {
  /** Undefined: every caller is the anonymous operator. */
  readonly settings: IdentitySettings | undefined;
  /** File of API keys. */
  readonly keyFile: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly fetchKeys: FetchKeys;
  /** Hears of whoever is refused. */
  readonly audit?: AuditTrail | undefined;
}

/** Tells who calls. */
export interface Identity {
  /**
   * The one place where callers are told apart. In this order: the credential in `authorization` or `x-api-key`, the
   * certificate of the connection, the header of a trusted proxy, nothing. What is shown and does not count is refused,
   * whatever else there is.
   *
   * @throws GatewayError CREDENTIAL_MISSING, CREDENTIAL_INVALID, CREDENTIALS_THROTTLED.
   */
  readonly authenticate: Authenticate;
  /** Takes over other settings. @throws GatewayError where a file they name cannot be used; then nothing changes. */
  take(settings: IdentitySettings | undefined): Promise<void>;
  /** Looks whether issuers give their keys. @throws the signal's reason. */
  examine(signal: AbortSignal): Promise<readonly CheckResult[]>;
}

/** Makes it, with what it reads from files. @throws GatewayError where one cannot be used. */
export async function createIdentity(options: IdentityOptions): Promise<Identity> {
  const identity = new LiveIdentity(options);
  await identity.take(options.settings);
  return identity;
}

interface Ways {
  readonly settings: IdentitySettings;
  readonly keys: KeyRing | undefined;
  readonly tokens: Tokens;
}

class LiveIdentity implements Identity {
  readonly #options: IdentityOptions;
  readonly #failed: FailedAttempts;
  /** By digest, oldest first: they need not wait for the failures of others behind the same address. */
  readonly #good = new Map<string, { readonly principal: Principal; readonly untilMs: number }>();
  #ways: Ways | undefined;

  constructor(options: IdentityOptions) {
    this.#options = options;
    this.#failed = new FailedAttempts(options.clock);
  }

  readonly authenticate: Authenticate = (headers, peer) => {
    const ways = this.#ways;
    if (ways === undefined) return ANONYMOUS;
    const shown = shownIn(headers, ways.settings);
    return shown === undefined ? this.#withoutHeader(ways, headers, peer) : this.#withHeader(ways, shown, peer);
  };

  examine(signal: AbortSignal): Promise<readonly CheckResult[]> {
    return this.#ways?.tokens.examine(signal) ?? Promise.resolve([]);
  }

  async take(settings: IdentitySettings | undefined): Promise<void> {
    const { keyFile, clock, logger, fetchKeys } = this.#options;
    if (settings === undefined) {
      this.#ways = undefined;
      return;
    }
    const keys = settings.apiKeys ? (this.#ways?.keys ?? new KeyRing(keyFile, clock, logger)) : undefined;
    const tokens = new Tokens(settings.jwt, { clock, logger, fetchKeys });
    await Promise.all([keys === this.#ways?.keys ? undefined : keys?.start(), tokens.start()]);
    this.#ways = { settings, keys, tokens };
    this.#good.clear();
  }

  #withHeader(ways: Ways, shown: Shown, peer: Peer): Principal | Promise<Principal> {
    const digest = hash("sha256", shown.value, "base64");
    const waitMs = this.#failed.waitMs(peer.address);
    if (waitMs > 0 && !this.#good.has(digest)) {
      this.#refuse(peer, { problem: "throttled" });
      throw throttled(waitMs);
    }
    const { keys, tokens } = ways;
    if (shown.kind === "key" && keys !== undefined) {
      const fresh = keys.fresh();
      const settle = (): Principal => this.#settle(keys.check(shown.value), digest, peer);
      return fresh === undefined ? settle() : fresh.then(settle);
    }
    if (shown.kind !== "token") return this.#settle(refused(`${shown.kind} is not taken here`), digest, peer);
    const known = this.#good.get(digest);
    if (known !== undefined && known.untilMs > this.#options.clock.now()) return known.principal;
    return tokens.check(shown.value).then((checked) => this.#settle(checked, digest, peer));
  }

  #withoutHeader({ settings }: Ways, headers: HeaderReader, peer: Peer): Principal {
    const certificate = settings.certificates.length === 0 ? undefined : peer.certificate?.();
    if (certificate !== undefined) {
      return this.#accepted(checkCertificate(certificate, settings.certificates), peer);
    }
    const { trustedHeader, anonymousRoles } = settings;
    const subject = trustedHeader === undefined ? null : headers.get(trustedHeader.subject);
    if (trustedHeader !== undefined && subject !== null) {
      const roles = trustedHeader.roles === undefined ? null : headers.get(trustedHeader.roles);
      return this.#accepted(fromProxy(subject, roles), peer);
    }
    if (anonymousRoles !== undefined) return { id: ANONYMOUS.id, roles: anonymousRoles, kind: "anonymous" };
    this.#refuse(peer, { problem: "no credential" });
    throw missing(settings);
  }

  /** The principal of a credential in a header, which is remembered. */
  #settle(checked: Checked, digest: string, peer: Peer): Principal {
    this.#good.delete(digest);
    const principal = this.#accepted(checked, peer);
    const { untilMs } = "principal" in checked ? checked : {};
    const now = this.#options.clock.now();
    this.#good.set(digest, { principal, untilMs: Math.min(untilMs ?? now, now + TOKEN_MEMORY_MS) });
    for (const oldest of this.#good.keys()) {
      if (this.#good.size <= MAX_GOOD) break;
      this.#good.delete(oldest);
    }
    return principal;
  }

  #accepted(checked: Checked, peer: Peer): Principal {
    if ("principal" in checked) return checked.principal;
    this.#noteFailure(checked, peer);
    throw invalid();
  }

  #noteFailure({ problem, facts }: Refused, { address }: Peer): void {
    const slowed = this.#failed.add(address);
    this.#options.logger.warn("authentication-failed", { peer: address, problem, ...facts, slowed });
    this.#refuse({ address }, { problem, ...facts });
  }

  #refuse({ address }: Pick<Peer, "address">, facts: Readonly<Record<string, unknown>>): void {
    this.#options.audit?.note({ action: "authenticate", outcome: "refused", actor: address, facts });
  }
}

/** A credential in a header. */
interface Shown {
  readonly kind: "key" | "token" | "credential";
  readonly value: string;
}

/** What the headers show. Where neither keys nor tokens are taken, they are somebody else's business. */
function shownIn(headers: HeaderReader, { apiKeys, jwt }: IdentitySettings): Shown | undefined {
  if (!apiKeys && jwt.length === 0) return undefined;
  const authorization = headers.get("authorization");
  const apiKey = apiKeys ? headers.get("x-api-key") : null;
  // Which of two is meant nobody can tell.
  if (authorization !== null && apiKey !== null) return { kind: "credential", value: `${authorization}\n${apiKey}` };
  if (apiKey !== null) return { kind: "key", value: apiKey };
  if (authorization === null) return undefined;
  const bearer = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
  if (bearer === undefined) return { kind: "credential", value: authorization };
  return { kind: bearer.startsWith(KEY_PREFIX) ? "key" : "token", value: bearer };
}

/** Longest name of a caller that a proxy may send. */
const MAX_SUBJECT = 512;

/** Two headers of one name arrive joined by a comma; which of them the proxy sent nobody can tell. */
function fromProxy(subject: string, roles: string | null): Checked {
  if (!/^[\x21-\x2b\x2d-\x7e]+$/.test(subject) || subject.length > MAX_SUBJECT)
    return refused("malformed header of a proxy");
  const words = (roles ?? "").split(/[\s,]+/).filter((word) => word !== "");
  return { principal: { id: `header:${subject}`, roles: words, kind: "header" } };
}

function missing({ apiKeys, jwt, certificates }: IdentitySettings): GatewayError {
  const ways = [
    ...(apiKeys ? ["an API key (`authorization: Bearer tg_…`)"] : []),
    ...(jwt.length > 0 ? ["a token (`authorization: Bearer …`)"] : []),
    ...(certificates.length > 0 ? ["a client certificate"] : []),
  ];
  const mend = ways.length === 0 ? "call through the gateway's proxy" : `send ${ways.join(" or ")}`;
  return new GatewayError("CREDENTIAL_MISSING", `the call shows no credential; ${mend}`);
}

/** The same whatever is wrong: an unknown, a wrong, an expired and a revoked one look alike. */
function invalid(): GatewayError {
  return new GatewayError(
    "CREDENTIAL_INVALID",
    "the credential is not valid, or not any more; the gateway's log says why",
  );
}

function throttled(waitMs: number): GatewayError {
  const text = "too many calls from this address showed a credential that is not valid; try again later";
  return new GatewayError("CREDENTIALS_THROTTLED", text, { retryAfterMs: waitMs });
}
