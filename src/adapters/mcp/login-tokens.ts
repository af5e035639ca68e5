import type { Clock } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import type { LoginStore, ServerLogin } from "../../core/logins.ts";
import type { SecretSource } from "../../core/secrets.ts";
import { raceSignal } from "../../core/signal.ts";
import type { Availability } from "../../core/tool.ts";
import { noToken } from "../shared/access-tokens.ts";
import { type HttpChannel, NotConnected } from "../shared/network/http-channel.ts";
import type { BearerChallenge } from "../shared/oauth-discovery.ts";
import { unusableSecret } from "../shared/secret-value.ts";
import { clientRequest, readTokenAnswer, type TokenAnswer } from "../shared/token-endpoint.ts";
import { tokenClient } from "./login-client.ts";
import type { DeclaredLogin } from "./mcp-config.ts";

/** A token is renewed so long before its end, at most a tenth of its life, give or take a quarter of it. */
const EARLY_MS = 60_000;
const JITTER = 0.25;

/** After a renewal that failed the next one is not tried sooner, while the token is still good. */
const RENEW_PAUSE_MS = 5_000;

/** Longest time for one answer. */
const FETCH_MS = 10_000;

/** Most scopes that are remembered because a server wants them. */
const MAX_SCOPES = 100;

/** Words by which an authorization server says that this login is over. Source: RFC 6749, section 5.2. */
const OVER: ReadonlySet<string> = new Set(["invalid_grant", "invalid_client", "unauthorized_client"]);

/** What the tokens of a login are got with. */
export interface LoginTokensOptions {
  /** Name of the server's declaration. */
  readonly server: string;
  /** Its address: the tokens of another one are not sent there. */
  readonly url: string;
  readonly auth: DeclaredLogin;
  readonly logins: LoginStore;
  /** Opens connections to an origin. */
  open(origin: string): HttpChannel;
  readonly secrets: SecretSource;
  readonly clock: Clock;
  readonly logger: Logger;
  /** To be called when `unavailable` or `lacking` may say something else. */
  changed(): void;
}

/** The tokens of one server, from what a person's login left: renewed early, and looked for anew when somebody logs in. */
export class LoginTokens implements AsyncDisposable {
  readonly #options: LoginTokensOptions;
  readonly #watch: Disposable;
  #login: ServerLogin | undefined;
  /** Why there are no tokens. */
  #problem: string | undefined;
  /** Why the login could not be read: it is looked at again when it is needed. */
  #unread: string | undefined;
  /** Scopes that a call failed for the lack of. */
  #lacking: readonly string[] = [];
  /** Monotonic. */
  #renewMs = 0;
  /** The token that was fetched in place of one that the server refused. */
  #second: string | undefined;
  #refreshing: Promise<void> | undefined;
  #reading: Promise<void> | undefined;
  #closed = false;

  constructor(options: LoginTokensOptions) {
    this.#options = options;
    this.#watch = options.logins.watch(options.server, () => void this.#read());
    void this.#read();
  }

  /** Why the server cannot be reached; `undefined` where nothing is known to be in the way. */
  unavailable(): Availability | undefined {
    const why = this.#unread ?? this.#problem;
    if (why === undefined) return undefined;
    return { state: "unavailable", reason: why, mend: this.#mend() };
  }

  /** What is missing for some of the tools. */
  lacking(): Availability | undefined {
    if (this.#lacking.length === 0) return undefined;
    return { state: "degraded", reason: this.#lackText(), mend: this.#mend() };
  }

  /**
   * The token.
   *
   * @throws GatewayError SECRET_MISSING where somebody has to log in, UPSTREAM_UNREACHABLE where it cannot be renewed now.
   */
  async token(signal: AbortSignal): Promise<string> {
    if (this.#reading !== undefined) await raceSignal(this.#reading, signal);
    if (this.#unread !== undefined) await raceSignal(this.#read(), signal);
    const { clock } = this.#options;
    const login = this.#usable();
    if (login.accessEndMs === undefined || clock.now() < login.accessEndMs) {
      if (login.refreshToken !== undefined && clock.monotonicMs() >= this.#renewMs) this.#renew(login);
      return login.accessToken;
    }
    if (login.refreshToken === undefined) {
      this.#over("the login has ended, and cannot be renewed");
      throw this.#needed();
    }
    await raceSignal(this.#refresh(login), signal);
    return this.#usable().accessToken;
  }

  /**
   * The server did not take a request that went out with this token. Whether another one may do better.
   *
   * @throws GatewayError SECRET_MISSING where somebody has to log in.
   */
  async refused(status: number, used: string | undefined, challenge: BearerChallenge): Promise<boolean> {
    const login = this.#login;
    if (login === undefined || used !== login.accessToken) return status === 401;
    if (status === 403) {
      if (challenge.error !== "insufficient_scope") return false;
      await this.#lacks(login, challenge.scope ?? "");
      throw this.#needed(this.#lackText());
    }
    if (login.refreshToken === undefined || used === this.#second) {
      this.#over("the server refuses the login");
      throw this.#needed();
    }
    await this.#refresh(login);
    this.#second = this.#login?.accessToken;
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#watch[Symbol.dispose]();
    // A refresh token that was just given in place of another must not be lost.
    await this.#refreshing?.catch(() => undefined);
  }

  /** What stands in the store now. Never rejects. */
  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readOnce(): Promise<void> {
    const { logins, server } = this.#options;
    try {
      const found = await logins.read(server);
      this.#unread = undefined;
      // Nobody else renews it, so that what is known of the same login is never older than what is kept.
      if (found === undefined || found.id !== this.#login?.id) this.#take(found);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      if (this.#login === undefined) this.#unread = error.message;
    }
    this.#tell();
  }

  /** Goes on with a login, or without one. */
  #take(login: ServerLogin | undefined): void {
    const { server, url, secrets } = this.#options;
    if (login?.id !== this.#login?.id) {
      this.#lacking = [];
      this.#second = undefined;
    }
    this.#problem = undefined;
    this.#login = login;
    if (login === undefined) this.#problem = `nobody is logged in: run \`toolgate login ${server}\``;
    else if (login.url !== url) {
      this.#over("the login is one at another address of this server");
    } else {
      for (const value of [login.accessToken, login.refreshToken, login.client.secret]) {
        if (value !== undefined) secrets.remember(value);
      }
      this.#renewMs = this.#earlier(login);
    }
  }

  /** When the token is to be renewed; monotonic. */
  #earlier({ accessEndMs, accessTimeMs }: ServerLogin): number {
    const { clock } = this.#options;
    if (accessEndMs === undefined) return Number.POSITIVE_INFINITY;
    // Tokens of many gateways that began together are not renewed together.
    const early = Math.min(EARLY_MS, (accessEndMs - accessTimeMs) / 10) * (1 - JITTER + 2 * JITTER * Math.random());
    return clock.monotonicMs() + (accessEndMs - clock.now()) - early;
  }

  #usable(): ServerLogin {
    if (this.#login === undefined || this.unavailable() !== undefined) throw this.#needed();
    return this.#login;
  }

  #over(why: string): void {
    this.#problem = `${why}: run \`toolgate login ${this.#options.server}\``;
    this.#tell();
  }

  #tell(): void {
    if (!this.#closed) this.#options.changed();
  }

  /** Nobody waits for it: the token that is there is good for a while. */
  #renew(login: ServerLogin): void {
    this.#refresh(login).catch(() => {
      this.#renewMs = this.#options.clock.monotonicMs() + RENEW_PAUSE_MS;
    });
  }

  /** One request for all who wait. */
  #refresh(login: ServerLogin): Promise<void> {
    this.#refreshing ??= this.#refreshOnce(login).finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #refreshOnce(login: ServerLogin): Promise<void> {
    const { clock, logger } = this.#options;
    const answer = await this.#ask(login);
    if (!answer.ok) {
      if (!OVER.has(answer.error ?? "")) throw this.#failed(login, answer.why);
      logger.warn("mcp-login-ended", { issuer: login.issuer, error: answer.error });
      if (this.#login?.id === login.id) this.#over("the login has ended");
      return;
    }
    const { accessToken, lifeMs, refreshToken = login.refreshToken, scopes = login.scopes } = answer;
    const accessTimeMs = clock.now();
    const accessEndMs = lifeMs === undefined ? undefined : accessTimeMs + lifeMs;
    await this.#keep(login.id, { accessToken, accessTimeMs, accessEndMs, refreshToken, scopes });
  }

  /** Keeps new tokens before they are used, since the refresh token before them may be good for nothing now. */
  async #keep(
    id: string,
    tokens: Pick<ServerLogin, "accessToken" | "accessTimeMs" | "accessEndMs" | "refreshToken" | "scopes">,
  ): Promise<void> {
    const { logins, server, logger, secrets } = this.#options;
    secrets.remember(tokens.accessToken);
    if (tokens.refreshToken !== undefined) secrets.remember(tokens.refreshToken);
    try {
      this.#take(await logins.update(server, id, (login) => ({ ...login, ...tokens })));
    } catch (error) {
      // They are good as long as the gateway runs; after that somebody may have to log in again.
      logger.error("mcp-login-not-kept", { error });
      if (this.#login?.id === id) this.#take({ ...this.#login, ...tokens });
    }
  }

  async #ask(login: ServerLogin): Promise<TokenAnswer> {
    const { server, auth, open, secrets, clock } = this.#options;
    const url = new URL(login.tokenUrl);
    const limit = new AbortController();
    using _timer = clock.after(FETCH_MS, () => limit.abort(this.#failed(login, `no answer within ${FETCH_MS} ms`)));
    try {
      const of = { server, auth, client: login.client, issuer: login.issuer, secrets };
      const client = await tokenClient(of, limit.signal);
      const fields = { grant_type: "refresh_token", refresh_token: login.refreshToken ?? "", resource: login.resource };
      const request = clientRequest(fields, client, clock.now());
      if (request === undefined) throw unusableSecret(server, auth.secretRef ?? "", "is no private key (PEM)");
      await using channel = open(url.origin);
      const sent = { method: "POST", target: url.pathname + url.search, ...request, signal: limit.signal } as const;
      const answer = await channel.send(sent);
      return readTokenAnswer(answer.status, await answer.text());
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      const why = error instanceof NotConnected ? `no connection: ${error.message}` : "the exchange broke off";
      throw this.#failed(login, why, error);
    }
  }

  /** The next login asks for these scopes, too. */
  async #lacks(login: ServerLogin, scope: string): Promise<void> {
    const { logins, server, logger } = this.#options;
    // Source: RFC 6749, section 3.3.
    const named = scope.split(" ").filter((each) => /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/.test(each));
    const lacking = [...new Set([...this.#lacking, ...named])].slice(0, MAX_SCOPES);
    const isNew = lacking.length > this.#lacking.length;
    this.#lacking = lacking;
    if (!isNew) return;
    logger.warn("mcp-login-lacks-scopes", { scopes: lacking });
    const wants = (each: ServerLogin): ServerLogin => ({ ...each, wanted: [...new Set([...each.wanted, ...lacking])] });
    await logins.update(server, login.id, wants).catch((error: unknown) => {
      logger.error("mcp-login-not-kept", { error });
    });
    this.#tell();
  }

  #lackText(): string {
    const { server, auth } = this.#options;
    const scopes = this.#lacking.length === 0 ? "" : ` ${this.#lacking.join(" ")}`;
    const first = auth.scopes.length > 0 && scopes !== "" ? "add them to `scopes` of the declaration, and " : "";
    return `the login lacks scopes that the server asks for:${scopes}; ${first}run \`toolgate login ${server}\``;
  }

  #mend(): string {
    return `toolgate login ${this.#options.server}`;
  }

  #needed(why = this.unavailable()?.reason ?? ""): GatewayError {
    const { server } = this.#options;
    return new GatewayError("SECRET_MISSING", `${server}: ${why}`, {
      modelMessage: `${server}: the gateway is not logged in at this server as it has to be; its operator must run \`toolgate login ${server}\``,
      metadata: { tool: server, login: server },
    });
  }

  #failed(login: ServerLogin, why: string, cause?: unknown): GatewayError {
    return noToken(this.#options.server, `${new URL(login.tokenUrl).origin}: ${why}`, cause);
  }
}
