import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import { OPERATOR_ROLE, type Principal } from "../core/principal.ts";
import type {
  CheckResult,
  RegisterOptions,
  RegisterOutcome,
  RegistryEvent,
  ToolExplanation,
  ToolLease,
  ToolListing,
  ToolRegistry,
  ToolView,
} from "../core/registry.ts";
import type { SecretSource } from "../core/secrets.ts";
import { raceSignal } from "../core/signal.ts";
import type { Affected } from "../core/step.ts";
import type { RegistrationStore } from "../core/store.ts";
import type { ParseDeclaration } from "./declaration-source.ts";
import { diagnose } from "./diagnose.ts";
import { FolderSource } from "./folder-source.ts";
import type { ComposeTool, StandingStep } from "./open-tool.ts";
import { Registrations } from "./registrations.ts";
import { toolDisabled, toolNotFound } from "./registry-errors.ts";
import type { ToolEntry } from "./tool-entry.ts";
import { ToolTable } from "./tool-table.ts";
import { Upstreams } from "./upstreams.ts";
import { watchChanges } from "./watch-changes.ts";
import { WatchedFolder } from "./watched-folder.ts";

/** What a registry works with. */
export interface RegistryDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly secrets: SecretSource;
  /** The watched folder and how it is watched. */
  readonly tools: GatewayConfig["tools"];
  /** Stays the caller's: the registry does not dispose it. */
  readonly store: RegistrationStore;
  readonly parse: ParseDeclaration;
  readonly compose: ComposeTool;
  /** The pipeline's steps, for what they know of tools between calls. Default none. */
  readonly steps?: readonly StandingStep[];
}

/** The tools of the gateway, from the watched folder and from registrations. */
export interface Registry extends ToolRegistry, AsyncDisposable {
  /**
   * Begins to serve: settles when registrations and folder have been loaded. What is wrong with them becomes problems.
   *
   * @throws the signal's reason, and nothing else.
   */
  start(signal: AbortSignal): Promise<void>;
  /** Reads all declarations anew with what `parse` makes of them now; those it makes the same of stay as they are. */
  readAgain(): Promise<void>;
  /** To be called when something outside of upstreams gave tools another availability. */
  lookAgain(affected: Affected): void;
}

/** Makes a registry; it is empty until it is started. Disposing it closes all upstreams, those of running calls too. */
export function createToolRegistry(deps: RegistryDeps): Registry {
  return new FolderAndApiRegistry(deps);
}

class FolderAndApiRegistry implements Registry {
  readonly #deps: RegistryDeps;
  readonly #upstreams: Upstreams;
  readonly #table: ToolTable;
  readonly #registrations: Registrations;
  readonly #source: FolderSource;
  readonly #folder: WatchedFolder;
  readonly #stopped = new AbortController();

  constructor(deps: RegistryDeps) {
    const { clock, logger, parse } = deps;
    this.#deps = deps;
    this.#upstreams = new Upstreams(deps);
    this.#table = new ToolTable({ clock, upstreams: this.#upstreams, steps: deps.steps ?? [] });
    this.#registrations = new Registrations({ ...deps, table: this.#table });
    this.#source = new FolderSource({ clock, logger, parse, table: this.#table });
    this.#folder = new WatchedFolder(deps.tools, { clock, logger, apply: (changes) => this.#source.apply(changes) });
  }

  async start(signal: AbortSignal): Promise<void> {
    // Registrations first: one that has a file's name was there before the file, or it would have been refused.
    await raceSignal(this.#registrations.load(), signal);
    await this.#folder.load(signal);
    await raceSignal(this.#source.idle(), signal);
  }

  async readAgain(): Promise<void> {
    this.#folder.readAgain();
    await this.#registrations.readAgain();
  }

  lookAgain(affected: Affected): void {
    this.#table.lookAgain(affected);
  }

  list(principal: Principal): ToolListing {
    const { tools, problems } = this.#table.snapshot;
    return { revision: this.#table.log.head, tools, problems: isOperator(principal) ? problems : [] };
  }

  get(name: string, _principal: Principal): ToolView {
    return this.#find(name);
  }

  acquire(name: string, _principal: Principal): ToolLease {
    this.#stopped.signal.throwIfAborted();
    const { open, definition } = this.#find(name);
    if (open === undefined) throw toolDisabled(definition.name, definition.source);
    return open.lease(definition);
  }

  async register(options: RegisterOptions, principal: Principal, signal: AbortSignal): Promise<RegisterOutcome> {
    this.#stopped.signal.throwIfAborted();
    return this.#registrations.register(options, principal, signal);
  }

  async unregister(
    options: { readonly name: string; readonly etag: string | undefined; readonly allowMissing: boolean },
    _principal: Principal,
    signal: AbortSignal,
  ): Promise<number> {
    this.#stopped.signal.throwIfAborted();
    return this.#registrations.unregister(options, signal);
  }

  watch(afterRevision: number, principal: Principal, signal: AbortSignal): AsyncIterable<RegistryEvent> {
    return watchChanges(this.#table, {
      afterRevision,
      problems: isOperator(principal),
      signal,
      stopped: this.#stopped.signal,
      clock: this.#deps.clock,
    });
  }

  explain(name: string, _principal: Principal): ToolExplanation {
    const { claim, open, definition, availability } = this.#find(name);
    const { state, reason } = availability;
    const standing = state === "ready" ? [] : [{ key: "state", value: `${state}: ${reason}`, origin: "now" }];
    const values = [...claim.declaration.explained, ...standing];
    return { definition, values, steps: open?.composed(definition).steps ?? [] };
  }

  diagnose(signal: AbortSignal): Promise<readonly CheckResult[]> {
    const { clock, store, tools } = this.#deps;
    return diagnose({ clock, store, folder: tools.folder, snapshot: this.#table.snapshot }, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort(new GatewayError("GATEWAY_STOPPING", "the gateway is shutting down"));
    await this.#folder[Symbol.asyncDispose]();
    await this.#registrations[Symbol.asyncDispose]();
    await this.#upstreams[Symbol.asyncDispose]();
    await this.#source.idle();
  }

  #find(name: string): ToolEntry {
    const entry = this.#table.snapshot.find(name);
    if (entry === undefined) throw toolNotFound(name, this.#table.snapshot);
    return entry;
  }
}

function isOperator(principal: Principal): boolean {
  return principal.roles.includes(OPERATOR_ROLE);
}
