/** How a principal proved who it is: nothing to prove, an API key, a token, a certificate, a sidecar's word. */
export type PrincipalKind = "anonymous" | "api_key" | "jwt" | "certificate" | "header";

/** Who calls. Travels in CallContext, page tokens, Watch and ledger keys from the first day. */
export interface Principal {
  /** Stable id, unique among principals, such as `key:ci`; `anonymous` where no authentication is configured. */
  readonly id: string;
  /** Roles, for authorization. */
  readonly roles: readonly string[];
  /** Absent: anonymous. */
  readonly kind?: PrincipalKind;
}

/** The caller where no authentication is configured: may do everything, since only loopback is served then. */
export const ANONYMOUS: Principal = { id: "anonymous", roles: ["operator"], kind: "anonymous" };

/** Role that sees declaration problems and may register, unregister, explain and diagnose. */
export const OPERATOR_ROLE = "operator";
