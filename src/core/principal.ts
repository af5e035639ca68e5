/** Who calls. Travels in CallContext, page tokens, Watch and ledger keys from the first day. */
export interface Principal {
  /** Stable id, unique among principals; `anonymous` where no authentication is configured. */
  readonly id: string;
  /** Roles, for authorization. */
  readonly roles: readonly string[];
}

/** The caller where no authentication is configured: may do everything, since only loopback is served then. */
export const ANONYMOUS: Principal = { id: "anonymous", roles: ["operator"] };

/** Role that sees declaration problems and may register, unregister, explain and diagnose. */
export const OPERATOR_ROLE = "operator";
