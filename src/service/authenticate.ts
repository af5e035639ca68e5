import { GatewayError } from "../core/errors.ts";
import { ANONYMOUS, OPERATOR_ROLE, type Principal } from "../core/principal.ts";

/** Who is on the other end of a connection. */
export interface Peer {
  /** IP address, or empty where the transport has none. */
  readonly address: string;
  readonly port: number;
  readonly encrypted: boolean;
}

/** Request headers by lower-case name; several values of one name are joined by `, `. */
export interface HeaderReader {
  get(name: string): string | null;
}

/**
 * Tells who calls, from headers and connection alone: it runs before the body is read.
 *
 * @throws GatewayError to refuse the call.
 */
export type Authenticate = (headers: HeaderReader, peer: Peer) => Principal | Promise<Principal>;

/** Everybody is the anonymous operator: for a gateway that serves loopback only. */
export const authenticateNobody: Authenticate = () => ANONYMOUS;

/** @throws GatewayError PERMISSION_DENIED unless the principal has the operator's role. `action`: `register tools`. */
export function requireOperator(principal: Principal, action: string): void {
  if (principal.roles.includes(OPERATOR_ROLE)) return;
  throw new GatewayError("PERMISSION_DENIED", `only the role \`${OPERATOR_ROLE}\` may ${action}`, {
    metadata: { role: OPERATOR_ROLE },
  });
}
