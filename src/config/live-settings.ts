import type { FaultPlan } from "../core/fault.ts";
import type { RateLimit } from "../core/step.ts";
import { changedSettings, type GatewayConfig } from "./gateway-config.ts";

/** What became of changed settings, by dotted key. */
export interface Reconfigured {
  readonly applied: readonly string[];
  readonly needRestart: readonly string[];
}

/** What declarations are read with. */
export interface DeclarationSettings {
  readonly defaults: GatewayConfig["defaults"]["timeout"] &
    GatewayConfig["defaults"]["result"] &
    Pick<GatewayConfig["defaults"], "pool" | "policies"> &
    Pick<GatewayConfig, "groups" | "toolsets" | "needsToolset" | "egress"> & { readonly maxResponseBytes: number };
  readonly origins: GatewayConfig["origins"];
}

/** The settings in force: those at the start, and of what can change later, the last ones that were taken over. */
export class LiveSettings {
  readonly #atStart: GatewayConfig;
  #now: GatewayConfig;
  #ofDeclarations: DeclarationSettings;

  constructor(config: GatewayConfig) {
    this.#atStart = config;
    this.#now = config;
    this.#ofDeclarations = declarationSettings(config);
  }

  /** The same object for as long as nothing is taken over. */
  get ofDeclarations(): DeclarationSettings {
    return this.#ofDeclarations;
  }

  /** Named sets of tools, and the lines of gateway.yaml by dotted key. */
  get toolsets(): Pick<GatewayConfig, "toolsets" | "origins"> {
    return this.#now;
  }

  /** Most calls of each caller in a time. */
  get rateLimit(): RateLimit | undefined {
    return this.#now.rateLimit;
  }

  /** Whether who calls what it may not see is told so. */
  get tellsDenied(): boolean {
    return this.#now.tellsDenied;
  }

  get faults(): FaultPlan {
    return this.#now.faults;
  }

  /** Takes over what can change now, and says what cannot. */
  take(next: GatewayConfig): Reconfigured {
    const applied = changedSettings(this.#now, next).filter(isLive);
    this.#now = next;
    this.#ofDeclarations = declarationSettings(next);
    return { applied, needRestart: changedSettings(this.#atStart, next).filter((key) => !isLive(key)) };
  }
}

function declarationSettings(config: GatewayConfig): DeclarationSettings {
  const { defaults, limits, egress, origins, groups, toolsets, needsToolset } = config;
  const { timeout, result, pool, policies } = defaults;
  const { responseBytes: maxResponseBytes } = limits;
  const lists = egress === undefined ? {} : { egress };
  const named = { groups, toolsets, needsToolset };
  return { defaults: { ...timeout, ...result, maxResponseBytes, pool, policies, ...named, ...lists }, origins };
}

/** Whether a setting can change while the gateway runs: those that declarations are read with, rates and faults. */
function isLive(key: string): boolean {
  return (
    ["defaults.", "groups.", "toolsets.", "faults.", "rate_limit.", "identity.", "egress.", "secrets."].some((prefix) =>
      key.startsWith(prefix),
    ) ||
    key === "limits.response_bytes" ||
    key === "denied_calls" ||
    key === "expose"
  );
}
