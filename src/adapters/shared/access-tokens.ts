import type { Clock } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import type { ClientAuth } from "../../core/logins.ts";
import type { SecretSource } from "../../core/secrets.ts";
import { raceSignal } from "../../core/signal.ts";
import { type HttpChannel, NotConnected } from "./network/http-channel.ts";
import { secretValue, unusableSecret } from "./secret-value.ts";
import { clientRequest, readTokenAnswer } from "./token-endpoint.ts";

/** A token without a time is taken to last so long. */
const DEFAULT_LIFE_MS = 300_000;

/** A token is renewed so long before its end, at most a tenth of its life, give or take a quarter of it. */
const EARLY_MS = 60_000;
const JITTER = 0.25;

/** After a renewal that failed the next one is not tried sooner, while the token is still good. */
const RENEW_PAUSE_MS = 5_000;

/** Longest time for one answer: that of any upstream's. A call that has less ends by its own limit. */
const FETCH_MS = 30_000;

/** A client that identifies itself with a secret, and what its tokens are for. */
export interface ClientCredentials {
  readonly tokenUrl: string;
  readonly clientId: string;
  /** The client's secret, or its private key. */
  readonly secretRef: string;
  readonly scopes: readonly string[];
  readonly clientAuth: Exclude<ClientAuth, "none">;
  /** Whom an assertion of the client is for; absent: the address that gives tokens. */
  readonly assertionAudience?: string | undefined;
  /** Source: RFC 8707. Absent: the token is for whatever the server takes it for. */
  readonly resource: string | undefined;
  /** What some servers take instead. */
  readonly audience: string | undefined;
}

/** Equal for credentials that get the same tokens. */
export function credentialsKey({ tokenUrl, clientId, secretRef, scopes, ...rest }: ClientCredentials): string {
  const { clientAuth, resource = null, audience = null } = rest;
  return JSON.stringify([tokenUrl, clientId, secretRef, scopes, clientAuth, resource, audience]);
}

/** What tokens are fetched with. */
export interface AccessTokensOptions {
  readonly server: string;
  readonly auth: ClientCredentials;
  /** Opens connections to an origin. */
  open(origin: string): HttpChannel;
  readonly secrets: SecretSource;
  readonly clock: Clock;
}

interface Token {
  readonly value: string;
  /** Monotonic; from then on another one is fetched while this one is still used. */
  readonly renewMs: number;
  /** Monotonic. */
  readonly endMs: number;
}

/** The tokens of OAuth 2.0 client credentials. Source: RFC 6749, section 4.4; RFC 8707. */
export class AccessTokens implements AsyncDisposable {
  readonly #options: AccessTokensOptions;
  readonly #url: URL;
  readonly #channel: HttpChannel;
  #token: Token | undefined;
  #fetching: Promise<Token> | undefined;
  #pausedUntilMs = 0;

  constructor(options: AccessTokensOptions) {
    this.#options = options;
    this.#url = new URL(options.auth.tokenUrl);
    this.#channel = options.open(this.#url.origin);
  }

  /** The token; one request for all who wait. @throws GatewayError. */
  async token(signal: AbortSignal): Promise<string> {
    const token = this.#token;
    const nowMs = this.#options.clock.monotonicMs();
    if (token !== undefined && nowMs < token.endMs) {
      if (nowMs >= Math.max(token.renewMs, this.#pausedUntilMs)) this.#renew();
      return token.value;
    }
    return (await raceSignal(this.#begin(), signal)).value;
  }

  /** The server did not take this one. */
  forget(value: string): void {
    if (this.#token?.value === value) this.#token = undefined;
  }

  #begin(): Promise<Token> {
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  /** Nobody waits for it: the token that is there is good for a while. */
  #renew(): void {
    this.#begin().catch(() => {
      this.#pausedUntilMs = this.#options.clock.monotonicMs() + RENEW_PAUSE_MS;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#channel[Symbol.asyncDispose]();
  }

  async #fetch(): Promise<Token> {
    const { server, clock } = this.#options;
    const limit = new AbortController();
    using _timer = clock.after(FETCH_MS, () => limit.abort(this.#failed(`no answer within ${FETCH_MS} ms`)));
    try {
      const token = await this.#ask(limit.signal);
      this.#token = token;
      return token;
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      const why =
        error instanceof NotConnected
          ? `no connection to ${this.#url.origin}: ${error.message}`
          : "the exchange broke off";
      throw noToken(server, why, error);
    }
  }

  async #ask(signal: AbortSignal): Promise<Token> {
    const { server, auth, secrets, clock } = this.#options;
    await secrets.fresh([auth.secretRef], signal);
    const secret = secretValue(server, auth.secretRef, secrets);
    const { clientId, clientAuth, assertionAudience = auth.tokenUrl } = auth;
    const client = { clientId, auth: clientAuth, secret, assertionAudience };
    const request = clientRequest(fieldsOf(auth), client, clock.now());
    if (request === undefined) {
      throw unusableSecret(server, auth.secretRef, "is no private key (RSA, EC or Ed25519, PEM)");
    }
    const target = this.#url.pathname + this.#url.search;
    const answer = await this.#channel.send({ method: "POST", target, ...request, signal });
    const read = readTokenAnswer(answer.status, await answer.text());
    if (!read.ok) throw this.#failed(read.why);
    const { accessToken: value, lifeMs = DEFAULT_LIFE_MS } = read;
    secrets.remember(value);
    const endMs = clock.monotonicMs() + lifeMs;
    // Tokens of many gateways that began together are not renewed together.
    const earlyMs = Math.min(EARLY_MS, lifeMs / 10) * (1 - JITTER + 2 * JITTER * Math.random());
    return { value, renewMs: endMs - earlyMs, endMs };
  }

  #failed(why: string): GatewayError {
    return noToken(this.#options.server, `${this.#url.origin}: ${why}`);
  }
}

/** What is asked for. Source: RFC 6749, section 4.4.2. */
function fieldsOf({ resource, audience, scopes }: ClientCredentials): Record<string, string> {
  return {
    grant_type: "client_credentials",
    ...(resource === undefined ? {} : { resource }),
    ...(audience === undefined ? {} : { audience }),
    ...(scopes.length > 0 ? { scope: scopes.join(" ") } : {}),
  };
}

/** The error for a server that gives no token. */
export function noToken(server: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError("UPSTREAM_UNREACHABLE", `${server}: no access token from ${why}; the server was not called`, {
    modelMessage: `${server}: the gateway cannot identify itself to this server; its operator must mend it`,
    metadata: { tool: server },
    cause,
  });
}
