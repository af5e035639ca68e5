import type { LoginClient } from "../../core/logins.ts";
import type { SecretSource } from "../../core/secrets.ts";
import { secretValue } from "../shared/secret-value.ts";
import type { TokenClient } from "../shared/token-endpoint.ts";
import type { DeclaredLogin } from "./mcp-config.ts";

/** The client with its secret as it is now. @throws GatewayError SECRET_MISSING. */
export async function tokenClient(
  of: {
    readonly server: string;
    readonly auth: DeclaredLogin;
    readonly client: LoginClient;
    readonly issuer: string;
    readonly secrets: SecretSource;
  },
  signal: AbortSignal,
): Promise<TokenClient> {
  const { server, auth, client, issuer, secrets } = of;
  const { clientId } = client;
  const known = { clientId, auth: client.auth, assertionAudience: issuer };
  if (client.origin !== "declared" || auth.secretRef === undefined) return { ...known, secret: client.secret ?? "" };
  await secrets.fresh([auth.secretRef], signal);
  return { ...known, secret: secretValue(server, auth.secretRef, secrets) };
}
