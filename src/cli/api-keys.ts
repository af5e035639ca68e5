/** An API key, without the key itself. */
export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly roles: readonly string[];
  /** Milliseconds since the epoch. */
  readonly createTimeMs: number;
  readonly expireTimeMs: number | undefined;
  readonly revokeTimeMs: number | undefined;
}

/** The API keys of a state folder. What goes wrong throws GatewayError. */
export interface ApiKeys {
  create(
    facts: Pick<ApiKey, "name" | "roles" | "createTimeMs" | "expireTimeMs">,
  ): Promise<{ readonly key: string; readonly stored: ApiKey }>;
  list(): Promise<readonly ApiKey[]>;
  /** Of an id, or all of a name; those that were not revoked before. */
  revoke(idOrName: string, timeMs: number): Promise<readonly ApiKey[]>;
}
