import type { Clock } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import type { SecretSource } from "../../core/secrets.ts";
import { raceSignal } from "../../core/signal.ts";
import { AccessTokens, noToken } from "../shared/access-tokens.ts";
import { type HttpChannel, NotConnected } from "../shared/network/http-channel.ts";
import { type BearerChallenge, DiscoveryProblem, discoverAuthorization } from "../shared/oauth-discovery.ts";
import { isPostAlone } from "./client-registration.ts";
import type { ServerCredentials } from "./mcp-config.ts";

/** Longest time for finding out who gives the tokens. */
const DISCOVERY_MS = 30_000;

/** Most scopes that are asked for because a server wants them. */
const MAX_SCOPES = 100;

/** What the tokens of a server are got with. */
export interface ServerTokensOptions {
  /** Name of the server's declaration. */
  readonly server: string;
  /** Its address. */
  readonly url: string;
  readonly auth: ServerCredentials;
  /** Opens connections to an origin. */
  open(origin: string): HttpChannel;
  readonly secrets: SecretSource;
  readonly clock: Clock;
}

/** The tokens of one server, by client credentials: from whom, and for which scopes, the server itself says where nobody else does. */
export class ServerTokens implements AsyncDisposable {
  readonly #options: ServerTokensOptions;
  /** What the server said last of the token it wants. */
  #challenge: BearerChallenge | undefined;
  /** Scopes that the server asked for. */
  readonly #wanted = new Set<string>();
  #tokens: AccessTokens | undefined;
  /** Those before. */
  #left: AccessTokens | undefined;
  #last: string | undefined;
  #finding: Promise<AccessTokens> | undefined;

  constructor(options: ServerTokensOptions) {
    this.#options = options;
  }

  /**
   * The token; `undefined`: nobody knows who gives it before the server has refused a request.
   *
   * @throws GatewayError.
   */
  async token(signal: AbortSignal): Promise<string | undefined> {
    if (this.#options.auth.tokenUrl === undefined && this.#challenge === undefined) return undefined;
    const tokens = this.#tokens ?? (await raceSignal(this.#begin(), signal));
    this.#last = await tokens.token(signal);
    return this.#last;
  }

  /**
   * The server did not take a request that went out with this token, or with none. Whether another one may do better.
   *
   * @param status 401, or 403: a token that lacks scopes helps where those are new.
   */
  refused(status: number, used: string | undefined, challenge: BearerChallenge): boolean {
    const named = (challenge.scope ?? "").split(" ");
    const fresh = named.filter((scope) => scope !== "" && !this.#wanted.has(scope));
    if (status === 403 && (challenge.error !== "insufficient_scope" || !this.#mayAskFor(fresh))) return false;
    for (const scope of fresh.slice(0, MAX_SCOPES - this.#wanted.size)) this.#wanted.add(scope);
    this.#note(challenge);
    // Of many calls that are refused at once the first has fetched another token already.
    if (used !== this.#last) return true;
    this.#last = undefined;
    if (used !== undefined) this.#tokens?.forget(used);
    // Who gives it, and what it is to be good for, may be others by now.
    if (this.#options.auth.tokenUrl === undefined || this.#mayAskFor(fresh)) this.#leave();
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#tokens?.[Symbol.asyncDispose](), this.#left?.[Symbol.asyncDispose]()]);
  }

  /** Where the metadata stand is not said each time. */
  #note(challenge: BearerChallenge): void {
    const { resourceMetadata = this.#challenge?.resourceMetadata } = challenge;
    this.#challenge = { ...challenge, resourceMetadata };
  }

  /** Scopes that are declared are all that is asked for. */
  #mayAskFor(scopes: readonly string[]): boolean {
    return scopes.length > 0 && this.#options.auth.scopes.length === 0;
  }

  /** Somebody may wait for a token of the ones that are left. */
  #leave(): void {
    if (this.#tokens === undefined) return;
    void this.#left?.[Symbol.asyncDispose]();
    this.#left = this.#tokens;
    this.#tokens = undefined;
  }

  #begin(): Promise<AccessTokens> {
    this.#finding ??= this.#found().finally(() => {
      this.#finding = undefined;
    });
    return this.#finding;
  }

  async #found(): Promise<AccessTokens> {
    const { server, clock } = this.#options;
    const limit = new AbortController();
    using _timer = clock.after(DISCOVERY_MS, () => {
      limit.abort(noToken(server, `anybody: who gives it was not found out within ${DISCOVERY_MS} ms`));
    });
    try {
      this.#tokens = await this.#find(limit.signal);
      return this.#tokens;
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      if (error instanceof DiscoveryProblem) throw noToken(server, `anybody: ${error.message}`, error);
      const why = error instanceof NotConnected ? `no connection: ${error.message}` : "the exchange broke off";
      throw noToken(server, `anybody: who gives it was not found out, ${why}`, error);
    }
  }

  async #find(signal: AbortSignal): Promise<AccessTokens> {
    const { server, url, auth, open, secrets, clock } = this.#options;
    const { tokenUrl, issuer, clientAuth, scopes, ...client } = auth;
    const found =
      tokenUrl === undefined && this.#challenge !== undefined
        ? await discoverAuthorization({ server: new URL(url), issuer, challenge: this.#challenge, open, signal })
        : { issuer: issuer ?? tokenUrl, tokenUrl: new URL(tokenUrl ?? url), authMethods: [], scopes: [] };
    const asked = this.#wanted.size > 0 ? [...this.#wanted] : found.scopes;
    return new AccessTokens({
      server,
      open,
      secrets,
      clock,
      auth: {
        ...client,
        tokenUrl: found.tokenUrl.href,
        scopes: scopes.length > 0 ? scopes : asked,
        clientAuth: clientAuth ?? (isPostAlone(found.authMethods) ? "post" : "basic"),
        audience: undefined,
        assertionAudience: found.issuer,
      },
    });
  }
}
