import { GatewayError } from "../core/errors.ts";
import type { Authenticate } from "../core/identity.ts";
import { ANONYMOUS, type Principal } from "../core/principal.ts";
import type { LiveRpc } from "./rpc.ts";

export type { Authenticate, Peer } from "../core/identity.ts";

/** Everybody is the anonymous operator: for a gateway that serves loopback only. */
export const authenticateNobody: Authenticate = () => ANONYMOUS;

/** Probes of balancers show no credential, and learn no more than whether the gateway takes calls. */
const OPEN_TO_ALL = "grpc.health.v1.Health/";

/**
 * What every front does with an RPC before it reads the body: finds out who calls, and leaves in the RPC how to find it
 * out again. Returns a promise only where something has to be waited for.
 *
 * @throws GatewayError to refuse the call.
 */
export function identifyCaller(rpc: LiveRpc, authenticate: Authenticate): void | Promise<void> {
  if (rpc.method.startsWith(OPEN_TO_ALL)) return;
  const ask = (): Principal | Promise<Principal> => authenticate(rpc.headers, rpc.peer());
  const found = ask();
  if (found instanceof Promise) return found.then((principal) => rpc.identify(principal, ask));
  rpc.identify(found, ask);
}

/**
 * Makes sure that a caller that stays for long is still who it was.
 *
 * @throws GatewayError CALLER_CHANGED, and what authentication throws.
 */
export function refuseChanged(before: Principal, now: Principal): void {
  if (before === now || (before.id === now.id && before.roles.join() === now.roles.join())) return;
  throw new GatewayError("CALLER_CHANGED", "your roles are others now; watch again, and the tools are told anew");
}

/** @throws GatewayError PERMISSION_DENIED unless the principal has one of the roles. `action`: `register tools`. */
export function requireRole(principal: Principal, roles: readonly string[], action: string): void {
  if (roles.some((role) => principal.roles.includes(role))) return;
  const words = roles.map((role) => `\`${role}\``).join(" or ");
  throw new GatewayError("PERMISSION_DENIED", `only the role ${words} may ${action}`, {
    metadata: { role: roles.join(",") },
  });
}
