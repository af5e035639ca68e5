/** How a client identifies itself where tokens are given. `none`: by its name alone. */
export type ClientAuth = "none" | "basic" | "post" | "private_key_jwt";

/** What the gateway is to an authorization server. */
export interface LoginClient {
  readonly clientId: string;
  readonly auth: ClientAuth;
  /** Where it got its name: from the declaration, from its metadata document, or by registering itself (RFC 7591). */
  readonly origin: "declared" | "document" | "registered";
  /** Given when it registered itself. Absent: it has none, or the declaration names one. */
  readonly secret?: string | undefined;
  /** When that ends; milliseconds since the epoch. */
  readonly secretEndMs?: number | undefined;
  /** Where browsers are sent back to, as it registered. */
  readonly redirectUri: string;
}

/** What a person's login at a server left behind. */
export interface ServerLogin {
  /** Another one for each login, so that what came of an older one takes no other's place. */
  readonly id: string;
  /** Name of the server's declaration. */
  readonly server: string;
  /** Address of the server: its tokens go nowhere else. */
  readonly url: string;
  readonly issuer: string;
  readonly tokenUrl: string;
  /** Where tokens are given back (RFC 7009). Absent: nowhere. */
  readonly revocationUrl?: string | undefined;
  /** What the tokens are for (RFC 8707), as the server names itself. */
  readonly resource: string;
  readonly client: LoginClient;
  /** Scopes that were given, or else asked for. */
  readonly scopes: readonly string[];
  /** Scopes that the server has asked for since: the next login asks for them, too. */
  readonly wanted: readonly string[];
  readonly accessToken: string;
  /** When the access token ends; milliseconds since the epoch. Absent: nobody said. */
  readonly accessEndMs?: number | undefined;
  /** When the access token was given; milliseconds since the epoch. */
  readonly accessTimeMs: number;
  /** Absent: when the access token ends, somebody has to log in again. */
  readonly refreshToken?: string | undefined;
  /** When somebody logged in; milliseconds since the epoch. */
  readonly loginTimeMs: number;
}

/** Keeps logins, one a server. What fails throws GatewayError: SECRET_MISSING for the key it is sealed with, else STORE_FAILED. */
export interface LoginStore {
  /** Undefined: nobody has logged in. */
  read(server: string): Promise<ServerLogin | undefined>;
  /** Keeps a login, in place of another one. */
  put(login: ServerLogin): Promise<void>;
  /**
   * Replaces a login by what `change` makes of it, as long as it is still the one with this id; gives what is kept then.
   * Whole or not at all after a crash at any moment.
   */
  update(server: string, id: string, change: (login: ServerLogin) => ServerLogin): Promise<ServerLogin | undefined>;
  /** Forgets a login, and gives what was forgotten. */
  remove(server: string): Promise<ServerLogin | undefined>;
  /** Tells, soon, that the login of a server may be another, whoever changed it. */
  watch(server: string, changed: () => void): Disposable;
}
