/** What of a login may be told. */
export interface LoginFacts {
  readonly server: string;
  readonly issuer: string;
  readonly resource: string;
  readonly scopes: readonly string[];
  /** When the access token ends; milliseconds since the epoch. */
  readonly accessEndMs: number | undefined;
  /** Whether the gateway can go on without anybody logging in again. */
  readonly renewable: boolean;
}

/** The person who logs in. */
export interface LoginPerson {
  /** Has to open this address in a browser. */
  open(address: string): void;
  /** Is told what went on, one line. */
  note(text: string): void;
  /** Gives the address that the browser ended at, where it runs on another machine. */
  readonly pasted?: Promise<string>;
}

/** The logins of a gateway. What goes wrong throws GatewayError. */
export interface Logins extends AsyncDisposable {
  login(server: string, person: LoginPerson, signal: AbortSignal): Promise<LoginFacts>;
  /** Undefined: there was none. */
  logout(
    server: string,
    signal: AbortSignal,
  ): Promise<{ readonly issuer: string; readonly revoked: boolean } | undefined>;
}
