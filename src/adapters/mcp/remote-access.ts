import type { Clock } from "../../core/clock.ts";
import type { SecretSource } from "../../core/secrets.ts";
import { VERSION } from "../../core/version.ts";
import { headerBytes, holdsControl } from "../shared/header-rules.ts";
import { EgressGuard } from "../shared/network/egress.ts";
import {
  type ChannelAnswer,
  type ChannelNetwork,
  type ChannelRequest,
  HttpChannel,
} from "../shared/network/http-channel.ts";
import { type BearerChallenge, bearerChallenge } from "../shared/oauth-discovery.ts";
import { secretValue, unusableSecret } from "../shared/secret-value.ts";
import { filledValue } from "../shared/value-template.ts";
import { LoginTokens, type LoginTokensOptions } from "./login-tokens.ts";
import { type RemoteTarget, remoteSecretRefs } from "./mcp-config.ts";
import { ServerTokens } from "./server-tokens.ts";

/** Connections to one server where nobody sets another number. */
const MAX_CONNECTIONS = 100;

/** How often one request is sent again with another token: the first one, and one with more scopes. */
const MAX_REFUSALS = 2;

/** What access to a remote server is made from. */
export interface RemoteAccessOptions {
  /** Name of the server's declaration. */
  readonly server: string;
  readonly target: RemoteTarget;
  readonly network: ChannelNetwork;
  readonly secrets: SecretSource;
  readonly clock: Clock;
  readonly connectMs: number;
  readonly maxConnections: number | undefined;
  /** Where logins are. Absent: nobody logs in. */
  readonly login?: Pick<LoginTokensOptions, "logins" | "logger" | "changed">;
}

/** A request to the server; its credentials and declared headers are added. */
export type RemoteRequest = Omit<ChannelRequest, "target"> & { readonly target?: string };

/** Requests to one remote server, with its credentials: read anew for each, so that rotation works. */
export class RemoteAccess implements AsyncDisposable {
  /** Path and query of the declared address. */
  readonly target: string;
  readonly origin: string;
  readonly #options: RemoteAccessOptions;
  readonly #channel: HttpChannel;
  readonly #tokens: ServerTokens | LoginTokens | undefined;
  /** The login, of a server that somebody logs in at. */
  readonly login: LoginTokens | undefined;
  /** Of what every request has. */
  readonly #references: readonly string[];

  constructor(options: RemoteAccessOptions) {
    this.#options = options;
    const { target, network, clock, connectMs, maxConnections = MAX_CONNECTIONS } = options;
    const url = new URL(target.url);
    this.origin = url.origin;
    this.#references = remoteSecretRefs(target);
    this.target = url.pathname + url.search;
    const channel = { ...network, guard: new EgressGuard(target.egress), connectMs, clock };
    this.#channel = new HttpChannel({ ...channel, origin: url.origin, maxConnections });
    const { server, secrets, login } = options;
    const open = (origin: string): HttpChannel => new HttpChannel({ ...channel, origin, maxConnections: 1 });
    const means = { server, url: target.url, open, secrets, clock };
    const { auth } = target;
    if (auth?.kind === "oauth" && login !== undefined) this.login = new LoginTokens({ ...means, auth, ...login });
    this.#tokens = auth?.kind === "client_credentials" ? new ServerTokens({ ...means, auth }) : this.login;
  }

  /**
   * Sends a request. Where the server does not take the token, another one is fetched: it was refused, so it may be sent
   * once more.
   *
   * @throws GatewayError SECRET_MISSING, UPSTREAM_UNREACHABLE where no token is given; SECRET_MISSING where somebody has to log in; else as the channel does.
   */
  async send(request: RemoteRequest): Promise<ChannelAnswer> {
    for (let refusals = 0; ; refusals += 1) {
      const token = await this.#tokens?.token(request.signal);
      const answer = await this.#once(request, token);
      const { status } = answer;
      if (this.#tokens === undefined || (status !== 401 && status !== 403) || refusals === MAX_REFUSALS) return answer;
      const challenge = bearerChallenge(answer.header("www-authenticate"));
      const again = await this.#refused(status, token, challenge).catch((error: unknown) => {
        answer.drop();
        throw error;
      });
      if (!again) return answer;
      answer.drop();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#channel[Symbol.asyncDispose](), this.#tokens?.[Symbol.asyncDispose]()]);
  }

  async #refused(status: number, token: string | undefined, challenge: BearerChallenge): Promise<boolean> {
    return (await this.#tokens?.refused(status, token, challenge)) === true;
  }

  async #once(
    { target = this.target, headers, ...request }: RemoteRequest,
    token: string | undefined,
  ): Promise<ChannelAnswer> {
    const own = await this.#headers(request.signal);
    if (token !== undefined) own["authorization"] = `Bearer ${token}`;
    return this.#channel.send({ ...request, target, headers: { ...own, ...headers } });
  }

  async #headers(signal: AbortSignal): Promise<Record<string, string>> {
    const { server, target, secrets } = this.#options;
    await secrets.fresh(this.#references, signal);
    const headers: Record<string, string> = { "user-agent": `toolgate/${VERSION}` };
    const secret = (reference: string): string => {
      const value = secretValue(server, reference, secrets);
      if (holdsControl(value)) throw unusableSecret(server, reference, "holds a line break or control character");
      return value;
    };
    for (const { name, value } of target.headers) headers[name.toLowerCase()] = headerBytes(filledValue(value, secret));
    if (target.auth?.kind === "bearer")
      headers["authorization"] = `Bearer ${headerBytes(secret(target.auth.secretRef))}`;
    return headers;
  }
}
