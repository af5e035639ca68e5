import { secretRefFor } from "../shared/secret-choice.ts";
import type { CallSurroundings } from "./mcp-call.ts";
import type { McpConfig } from "./mcp-config.ts";
import type { ServerLife } from "./server-life.ts";

/** How long a session of a role's credential waits for its next call, where the declaration does not say. */
const IDLE_MS = 5 * 60_000;

/** Makes what calls with the credential of `config` take. `beside`: the life that makes the offer; absent for itself. */
export type OpenLife = (config: McpConfig, beside?: Beside) => CallSurroundings;

/** A life that is not the main one. */
export interface Beside {
  readonly main: ServerLife;
  /** Of its credential. */
  readonly secretRef: string;
}

/**
 * What calls of one server take, by the credential of who makes them. Two credentials share nothing: no session, no
 * connection, no call that waits for its caller.
 */
export class CredentialLives {
  /** Of the common credential. It makes the offer, for everybody. */
  readonly main: CallSurroundings;
  readonly #open: OpenLife;
  /** By reference, so no more than `by_role` names. */
  readonly #others = new Map<string, CallSurroundings>();

  constructor(config: McpConfig, open: OpenLife) {
    this.#open = open;
    this.main = open(config);
  }

  /** For calls of someone with these roles. */
  of(roles: readonly string[]): CallSurroundings {
    const { config, life } = this.main;
    const { target } = config;
    if (target.kind === "program" || target.auth?.kind !== "bearer") return this.main;
    const secretRef = secretRefFor(target.auth, roles);
    if (secretRef === target.auth.secretRef) return this.main;
    const known = this.#others.get(secretRef);
    if (known !== undefined) return known;
    const auth = { kind: "bearer", secretRef, byRole: [] } as const;
    const idleTimeoutMs = config.idleTimeoutMs ?? IDLE_MS;
    const opened = this.#open({ ...config, target: { ...target, auth }, idleTimeoutMs }, { main: life, secretRef });
    this.#others.set(secretRef, opened);
    return opened;
  }

  /** All that there are by now. */
  get all(): readonly CallSurroundings[] {
    return [this.main, ...this.#others.values()];
  }
}
