import type { AdapterDeps } from "../../core/adapter.ts";
import { AccessTokens, type ClientCredentials, credentialsKey } from "../shared/access-tokens.ts";
import { choiceKey, type EgressChoice, EgressGuard } from "../shared/network/egress.ts";
import { type ChannelNetwork, HttpChannel } from "../shared/network/http-channel.ts";

/** What a tool needs tokens for. */
export interface TokenUse {
  readonly client: ClientCredentials;
  readonly egress: EgressChoice;
  readonly connectMs: number;
  readonly deps: Pick<AdapterDeps, "clock" | "secrets">;
}

/** The tokens of one tool. */
export interface ToolTokens extends AsyncDisposable {
  readonly tokens: AccessTokens;
}

interface Shared {
  readonly tokens: AccessTokens;
  users: number;
}

/** The tokens of all tools: those that show the same credentials at the same place share one token. */
export class TokenPool {
  readonly #network: ChannelNetwork;
  readonly #shared = new Map<string, Shared>();

  constructor(network: ChannelNetwork) {
    this.#network = network;
  }

  /** Disposing gives them back. */
  open(use: TokenUse): ToolTokens {
    const key = `${credentialsKey(use.client)} ${choiceKey(use.egress)}`;
    const shared = this.#shared.get(key) ?? { tokens: this.#create(use), users: 0 };
    this.#shared.set(key, shared);
    shared.users += 1;
    return {
      tokens: shared.tokens,
      [Symbol.asyncDispose]: async () => {
        shared.users -= 1;
        if (shared.users > 0) return;
        this.#shared.delete(key);
        await shared.tokens[Symbol.asyncDispose]();
      },
    };
  }

  #create({ client, egress, connectMs, deps }: TokenUse): AccessTokens {
    const { clock, secrets } = deps;
    const channel = { ...this.#network, guard: new EgressGuard(egress), connectMs, clock, maxConnections: 1 };
    return new AccessTokens({
      server: `client ${client.clientId}`,
      auth: client,
      open: (origin) => new HttpChannel({ ...channel, origin }),
      secrets,
      clock,
    });
  }
}
