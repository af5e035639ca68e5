import { GatewayError } from "../../core/errors.ts";
import type { ServerLogin } from "../../core/logins.ts";
import { linkSignals } from "../../core/signal.ts";
import { EgressGuard } from "../shared/network/egress.ts";
import { HttpChannel } from "../shared/network/http-channel.ts";
import { clientRequest } from "../shared/token-endpoint.ts";
import type { LoginMeans } from "./login.ts";
import { tokenClient } from "./login-client.ts";
import type { McpConfig } from "./mcp-config.ts";

/** Longest time for giving tokens back. */
const REVOKE_MS = 10_000;

/**
 * Gives the tokens of a login back that was forgotten (RFC 7009): the refresh token, with which the others end, or else the
 * access token. Whether the authorization server took it; where it has no place for that, or cannot be reached, they end
 * by themselves. Never rejects but for the signal's reason.
 */
export async function revoke(
  login: ServerLogin,
  { target, settings }: McpConfig,
  { network, secrets, clock }: Omit<LoginMeans, "logins">,
  signal: AbortSignal,
): Promise<boolean> {
  if (login.revocationUrl === undefined || target.kind !== "remote" || target.auth?.kind !== "oauth") return false;
  const url = new URL(login.revocationUrl);
  using link = linkSignals(signal);
  using _timer = clock.after(REVOKE_MS, () => link.abort(new GatewayError("UPSTREAM_UNREACHABLE", "no answer")));
  const { connectMs } = settings.timeouts;
  const channel = { ...network, guard: new EgressGuard(target.egress), connectMs, clock, maxConnections: 1 };
  await using open = new HttpChannel({ ...channel, origin: url.origin });
  try {
    const of = { server: login.server, auth: target.auth, client: login.client, issuer: login.issuer, secrets };
    const client = await tokenClient(of, link.signal);
    const kind = login.refreshToken === undefined ? "access_token" : "refresh_token";
    const fields = { token: login.refreshToken ?? login.accessToken, token_type_hint: kind };
    const request = clientRequest(fields, client, clock.now());
    if (request === undefined) return false;
    const sent = { method: "POST", target: url.pathname + url.search, ...request, signal: link.signal } as const;
    const answer = await open.send(sent);
    answer.drop();
    return answer.status === 200;
  } catch {
    // Whatever went wrong, the login is forgotten here.
    signal.throwIfAborted();
    return false;
  }
}
