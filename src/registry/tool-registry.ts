import type { GatewayConfig } from "../config/gateway-config.ts";
import { isVisible } from "../core/access.ts";
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
import type { ResultRules } from "../core/shaper.ts";
import { raceSignal } from "../core/signal.ts";
import type { Affected } from "../core/step.ts";
import type { RegistrationStore } from "../core/store.ts";
import type { Declaration } from "./declaration.ts";
import type { ParseDeclaration, ReadAhead } from "./declaration-source.ts";
import { diagnose } from "./diagnose.ts";
import { explainOffered } from "./explain-server.ts";
import { FolderSource } from "./folder-source.ts";
import type { ComposeTool, StandingStep } from "./open-tool.ts";
import type { RegistrarRoles } from "./registration-policy.ts";
import { Registrations } from "./registrations.ts";
import { serverIsNoTool, toolDenied, toolDisabled, toolNotFound } from "./registry-errors.ts";
import { RolesSeen } from "./roles-seen.ts";
import type { ToolEntry } from "./tool-entry.ts";
import { ToolTable } from "./tool-table.ts";
import type { PlacedToolsets } from "./toolset-notes.ts";
import { Upstreams } from "./upstreams.ts";
import { seesChange, watchChanges } from "./watch-changes.ts";
import { WatchedFolder } from "./watched-folder.ts";

/** A call of a name that its caller may not see, or that nobody has. */
export interface DeniedCall {
  readonly name: string;
  readonly principal: Principal;
  /** Whether there is such a tool. */
  readonly hidden: boolean;
}

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
  /** Asked before a declaration is parsed while others call. Default: parsing takes the time it takes. */
  readonly readAhead?: ReadAhead | undefined;
  readonly compose: ComposeTool;
  /** Tools of the gateway's own, which have their names before anybody else. Read again with all others. Default none. */
  readonly builtIn?: () => readonly Declaration[];
  /** The pipeline's steps, for what they know of tools between calls. Default none. */
  readonly steps?: readonly StandingStep[];
  /** The toolsets in force, and where they stand. Default none. */
  readonly toolsets?: () => PlacedToolsets;
  /** Who may register what is more than a tool of a known host. Default: who may register at all. */
  readonly registrars?: RegistrarRoles;
  /** Whether who calls a tool that it may not see is told so, instead of that there is none. Default: it is not. */
  readonly tellsDenied?: () => boolean;
  /** Hears of calls of what is not there for their caller. */
  readonly denied?: (call: DeniedCall) => void;
  /** Makes a text of an upstream's (why it is down, what it says of its tools) fit to be shown. Default: as it came. */
  readonly screen?: (rules: ResultRules) => (text: string) => string;
  /** Examines what is no tool's, for `diagnose`. Default: nothing. */
  readonly examineMore?: (signal: AbortSignal) => Promise<readonly CheckResult[]>;
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
  /** All that there is, whoever may see it: to be counted, and shown to nobody. */
  whole(): ToolListing;
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
  readonly #roles = new RolesSeen();

  constructor(deps: RegistryDeps) {
    const { clock, logger, parse, readAhead, screen } = deps;
    this.#deps = deps;
    this.#upstreams = new Upstreams(deps);
    this.#table = new ToolTable({
      clock,
      logger,
      upstreams: this.#upstreams,
      steps: deps.steps ?? [],
      toolsets: deps.toolsets,
      screen,
      readAhead,
    });
    this.#registrations = new Registrations({ ...deps, table: this.#table });
    this.#source = new FolderSource({ clock, logger, parse, readAhead, table: this.#table });
    this.#folder = new WatchedFolder(deps.tools, { clock, logger, apply: (changes) => this.#source.apply(changes) });
  }

  async start(signal: AbortSignal): Promise<void> {
    await raceSignal(this.#putBuiltIn(), signal);
    // Registrations first: one that has a file's name was there before the file, or it would have been refused.
    await raceSignal(this.#registrations.load(), signal);
    await this.#folder.load(signal);
    await raceSignal(this.#source.idle(), signal);
  }

  async readAgain(): Promise<void> {
    await this.#putBuiltIn();
    this.#folder.readAgain();
    await this.#registrations.readAgain();
  }

  lookAgain(affected: Affected): void {
    this.#table.lookAgain(affected);
  }

  list(principal: Principal): ToolListing {
    const { log, snapshot } = this.#table;
    const operator = isOperator(principal);
    const { tools, problems } = snapshot.visibleTo(principal);
    this.#roles.since(principal, log.head);
    // A revision of what is hidden would tell that something is.
    const revision = log.lastSeen(log.head, (record) => seesChange(record, principal, operator));
    return { revision, tools, problems: operator ? problems : [] };
  }

  whole(): ToolListing {
    const { log, snapshot } = this.#table;
    return { revision: log.head, tools: snapshot.tools, problems: snapshot.problems };
  }

  get(name: string, principal: Principal): ToolView {
    return this.#find(name, principal);
  }

  acquire(name: string, principal: Principal): ToolLease {
    this.#stopped.signal.throwIfAborted();
    const { open, definition } = this.#callable(name, principal);
    if (open === undefined) throw toolDisabled(definition.name, definition.source);
    return open.lease(definition);
  }

  async register(options: RegisterOptions, principal: Principal, signal: AbortSignal): Promise<RegisterOutcome> {
    this.#stopped.signal.throwIfAborted();
    return this.#registrations.register(options, principal, signal);
  }

  async unregister(
    options: { readonly name: string; readonly etag: string | undefined; readonly allowMissing: boolean },
    principal: Principal,
    signal: AbortSignal,
  ): Promise<number> {
    this.#stopped.signal.throwIfAborted();
    return this.#registrations.unregister(options, principal, signal);
  }

  watch(afterRevision: number, principal: Principal, signal: AbortSignal): AsyncIterable<RegistryEvent> {
    return watchChanges(this.#table, {
      afterRevision,
      principal,
      outdated: afterRevision <= this.#roles.since(principal, this.#table.log.head),
      problems: isOperator(principal),
      signal,
      stopped: this.#stopped.signal,
      clock: this.#deps.clock,
    });
  }

  explain(name: string, principal: Principal): ToolExplanation {
    const { claim, open, definition, availability } = this.#unlisted(name, principal) ?? this.#find(name, principal);
    const { state, reason } = availability;
    const standing = state === "ready" ? [] : [{ key: "state", value: `${state}: ${reason}`, origin: "now" }];
    const server = this.#table.servers.named(definition.name);
    const offered = server === undefined ? [] : explainOffered(server);
    const values = [...claim.declaration.explained, ...offered, ...standing];
    if (server !== undefined) return { definition, values, steps: [] };
    return { definition, values, steps: open?.composed(definition).steps ?? [] };
  }

  diagnose(signal: AbortSignal): Promise<readonly CheckResult[]> {
    const { clock, store, secrets, tools, examineMore = () => Promise.resolve([]) } = this.#deps;
    const { snapshot } = this.#table;
    return diagnose({ clock, store, secrets, examineMore, folder: tools.folder, snapshot }, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort(new GatewayError("GATEWAY_STOPPING", "the gateway is shutting down"));
    await this.#folder[Symbol.asyncDispose]();
    await this.#registrations[Symbol.asyncDispose]();
    await this.#upstreams[Symbol.asyncDispose]();
    await this.#source.idle();
  }

  async #putBuiltIn(): Promise<void> {
    this.#table.settingsChanged();
    const declarations = this.#deps.builtIn?.() ?? [];
    await this.#table.put(
      declarations.map((declaration) => ({ kind: "declared", source: declaration.source, declaration })),
    );
  }

  /** What a principal may not see is not there, whatever it is called by. A server is no tool. */
  #find(name: string, principal: Principal): ToolEntry {
    const seen = this.#table.snapshot.visibleTo(principal);
    const entry = seen.find(name);
    if (entry !== undefined) return entry;
    if (this.#unlisted(name, principal)?.isServer !== true) throw toolNotFound(name, seen);
    const tools = this.#table.servers.named(name)?.names ?? [];
    throw serverIsNoTool(
      name,
      tools.filter((tool) => seen.named(tool) !== undefined),
    );
  }

  /** What nobody can call and operators may know of: a server, or a tool that is not listed. */
  #unlisted(name: string, principal: Principal): ToolEntry | undefined {
    const entry = this.#table.snapshot.find(name);
    const known = entry?.listed === false && isVisible(principal, entry.claim.declaration.policy.access);
    return known ? entry : undefined;
  }

  /** What is called. A name that is hidden and one that nobody has take the same way, unless the settings say otherwise. */
  #callable(name: string, principal: Principal): ToolEntry {
    try {
      return this.#find(name, principal);
    } catch (error) {
      const hidden = this.#table.snapshot.find(name)?.listed === true;
      this.#deps.denied?.({ name, principal, hidden });
      if (hidden && this.#deps.tellsDenied?.() === true) throw toolDenied(name);
      throw error;
    }
  }
}

function isOperator(principal: Principal): boolean {
  return principal.roles.includes(OPERATOR_ROLE);
}
