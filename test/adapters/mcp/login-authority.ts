import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { ServerLogin } from "../../../src/core/logins.ts";

/** A login at a server, as it would be kept. */
export function loginAt(server: string, url: string, accessToken: string): ServerLogin {
  const origin = "https://auth.example.com";
  return {
    id: randomUUID(),
    server,
    url,
    issuer: origin,
    tokenUrl: `${origin}/token`,
    resource: url,
    client: { clientId: "client", auth: "none", origin: "registered", redirectUri: "http://127.0.0.1:1/callback" },
    scopes: [],
    wanted: [],
    accessToken,
    accessTimeMs: Date.now(),
    loginTimeMs: Date.now(),
  };
}

/** How an authorization server differs from a good one. */
export interface AuthorityOptions {
  /** What it says of itself, besides or in place of what is true. */
  readonly metadata?: (origin: string) => object;
  /** The metadata as bytes, whatever they are. */
  readonly rawMetadata?: () => string;
  /** Changes the address that a browser is sent back to. */
  readonly redirect?: (back: URL, origin: string) => URL;
  /** How long an access token lasts, in seconds; undefined: it does not say. */
  readonly life?: () => number | undefined;
  /** Whether it gives refresh tokens. Default true. */
  readonly refreshes?: boolean;
  /** What a registration is answered beside the client's id. */
  readonly registered?: object;
  /** Answers of the address that gives tokens, in place of its own. */
  readonly token?: (form: URLSearchParams) => { readonly status: number; readonly body: string } | undefined;
}

/** An authorization server that asks nobody, and is strict with clients. */
export interface Authority extends AsyncDisposable {
  readonly origin: string;
  /** The access token that was given last, as a header. */
  header(): string;
  readonly lastAccess: string;
  readonly lastRefresh: string;
  /** Registrations as they came. */
  readonly registrations: readonly Record<string, unknown>[];
  /** Requests of browsers. */
  readonly authorizations: readonly Record<string, string>[];
  /** Requests for tokens. */
  readonly requests: readonly { readonly form: Record<string, string>; readonly authorization: string | undefined }[];
  /** Tokens that were given back. */
  readonly revoked: readonly string[];
  /** Paths that were asked for. */
  readonly paths: readonly string[];
  /** From now on no refresh token is good. */
  end(): void;
}

interface Code {
  readonly challenge: string;
  readonly redirectUri: string;
  readonly clientId: string;
  readonly resource: string;
  readonly scope: string;
}

/** Starts one on loopback. */
export async function startAuthority(options: AuthorityOptions = {}): Promise<Authority> {
  const state = new State(options);
  const server = createServer((request, response) => void state.serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  state.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(state, {
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

class State {
  origin = "";
  lastAccess = "";
  lastRefresh = "";
  readonly registrations: Record<string, unknown>[] = [];
  readonly authorizations: Record<string, string>[] = [];
  readonly requests: { form: Record<string, string>; authorization: string | undefined }[] = [];
  readonly revoked: string[] = [];
  readonly paths: string[] = [];
  readonly #options: AuthorityOptions;
  readonly #codes = new Map<string, Code>();
  readonly #scopes = new Map<string, string>();

  constructor(options: AuthorityOptions) {
    this.#options = options;
  }

  header(): string {
    return `Bearer ${this.lastAccess}`;
  }

  end(): void {
    this.#scopes.clear();
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", this.origin);
    this.paths.push(url.pathname);
    const body = await text(request);
    const json = (status: number, value: object): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    switch (url.pathname) {
      case "/.well-known/oauth-authorization-server":
        if (this.#options.rawMetadata !== undefined) response.writeHead(200).end(this.#options.rawMetadata());
        else json(200, { ...this.#metadata(), ...this.#options.metadata?.(this.origin) });
        return;
      case "/register":
        this.registrations.push(JSON.parse(body) as Record<string, unknown>);
        json(201, { client_id: `client-${this.registrations.length}`, ...this.#options.registered });
        return;
      case "/authorize":
        response.writeHead(302, { location: this.#authorized(url.searchParams).href }).end();
        return;
      case "/token": {
        const form = new URLSearchParams(body);
        this.requests.push({ form: Object.fromEntries(form), authorization: request.headers.authorization });
        const own = this.#options.token?.(form);
        if (own !== undefined) response.writeHead(own.status).end(own.body);
        else this.#tokens(form, json);
        return;
      }
      case "/revoke":
        this.revoked.push(new URLSearchParams(body).get("token") ?? "");
        json(200, {});
        return;
      default:
        json(404, {});
    }
  }

  #metadata(): object {
    return {
      issuer: this.origin,
      authorization_endpoint: `${this.origin}/authorize`,
      token_endpoint: `${this.origin}/token`,
      registration_endpoint: `${this.origin}/register`,
      revocation_endpoint: `${this.origin}/revoke`,
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none"],
      authorization_response_iss_parameter_supported: true,
    };
  }

  #authorized(params: URLSearchParams): URL {
    this.authorizations.push(Object.fromEntries(params));
    const one = (name: string): string => params.get(name) ?? "";
    const code = randomUUID();
    const back = new URL(one("redirect_uri"));
    this.#codes.set(code, {
      challenge: one("code_challenge_method") === "S256" ? one("code_challenge") : "",
      redirectUri: one("redirect_uri"),
      clientId: one("client_id"),
      resource: one("resource"),
      scope: one("scope"),
    });
    back.search = new URLSearchParams({ code, state: one("state"), iss: this.origin }).toString();
    return this.#options.redirect?.(back, this.origin) ?? back;
  }

  #tokens(form: URLSearchParams, json: (status: number, value: object) => void): void {
    const scope = form.get("grant_type") === "refresh_token" ? this.#refreshed(form) : this.#exchanged(form);
    if (scope === undefined) {
      json(400, { error: "invalid_grant", error_description: `not good: ${form.get("refresh_token") ?? ""}` });
      return;
    }
    this.lastAccess = `access-${randomUUID()}`;
    this.lastRefresh = this.#options.refreshes === false ? "" : `refresh-${randomUUID()}`;
    if (this.lastRefresh !== "") this.#scopes.set(this.lastRefresh, scope);
    const life = this.#options.life === undefined ? 3_600 : this.#options.life();
    json(200, {
      access_token: this.lastAccess,
      token_type: "bearer",
      ...(life === undefined ? {} : { expires_in: life }),
      ...(this.lastRefresh === "" ? {} : { refresh_token: this.lastRefresh }),
      ...(scope === "" ? {} : { scope }),
    });
  }

  /** A refresh token is good for one use. */
  #refreshed(form: URLSearchParams): string | undefined {
    const token = form.get("refresh_token") ?? "";
    const scope = this.#scopes.get(token);
    this.#scopes.delete(token);
    return scope;
  }

  /** A code is good for one use, for whom and what it was given. */
  #exchanged(form: URLSearchParams): string | undefined {
    const one = (name: string): string => form.get(name) ?? "";
    const code = this.#codes.get(one("code"));
    this.#codes.delete(one("code"));
    const digest = createHash("sha256").update(one("code_verifier")).digest("base64url");
    const fits =
      code?.challenge === digest && code.redirectUri === one("redirect_uri") && code.resource === one("resource");
    return fits ? code.scope : undefined;
  }
}
