import { isVisible } from "../core/access.ts";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { LogFields, Logger } from "../core/logger.ts";
import type { Principal } from "../core/principal.ts";
import type { RegisterOptions, RegisterOutcome } from "../core/registry.ts";
import { raceSignal } from "../core/signal.ts";
import type { RegistrationStore, StoredRegistration } from "../core/store.ts";
import type { AppliedUpdate } from "./applied-update.ts";
import type { Declaration, DeclarationOutcome } from "./declaration.ts";
import { containFaults, MAX_DECLARATION_BYTES, type ParseDeclaration, type ReadAhead } from "./declaration-source.ts";
import { KeyedLock } from "./keyed-lock.ts";
import { Pacer } from "./pacer.ts";
import { sourceProblem } from "./problems.ts";
import { type RegistrarRoles, refuseOthers, refuseRegistrar } from "./registration-policy.ts";
import {
  declarationInvalid,
  etagMismatch,
  nameNotFree,
  nameTaken,
  notRemovable,
  positioned,
  registryFull,
  toolNotFound,
} from "./registry-errors.ts";
import { ScheduledTask } from "./scheduled-task.ts";
import { buildDefinition, ToolEntry } from "./tool-entry.ts";
import { type ClaimTimes, type SourceUpdate, type ToolTable } from "./tool-table.ts";

const MIN_LEASE_MS = 1_000;
const MAX_LEASE_MS = 30 * 24 * 3_600_000;
/** Most registrations at a time. */
const MAX_REGISTRATIONS = 50_000;

/** What registrations work with. */
export interface RegistrationsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly store: RegistrationStore;
  readonly table: ToolTable;
  readonly parse: ParseDeclaration;
  readonly readAhead?: ReadAhead | undefined;
  /** Who may register what is more than a tool of a known host. Default: who may register at all. */
  readonly registrars?: RegistrarRoles;
}

/**
 * Tools registered over the wire. A registration is on disk before it is visible; what cannot be written is not made.
 * Operations on one name come one after the other.
 */
export class Registrations implements AsyncDisposable {
  readonly #deps: RegistrationsDeps;
  readonly #locks = new KeyedLock();
  /** What the store holds, by name. */
  readonly #kept = new Map<string, StoredRegistration>();
  readonly #lapses: ScheduledTask;

  constructor(deps: RegistrationsDeps) {
    this.#deps = deps;
    this.#lapses = new ScheduledTask(deps.clock, () => this.#lapse());
  }

  /** Takes in what the store holds; what is damaged or no longer loads becomes a problem. Never rejects. */
  async load(): Promise<void> {
    const { store, table, clock } = this.#deps;
    let stored: readonly StoredRegistration[] = [];
    const problems = new Map<string, string>();
    try {
      stored = await store.load((entry, problem) => problems.set(`api:${entry}`, problem));
    } catch (error) {
      this.#deps.logger.error("registrations-load-failed", { error });
      problems.set(
        "api",
        "the registrations on disk cannot be read; check the permissions of the state folder and start again",
      );
    }
    const now = clock.now();
    const pacer = new Pacer(clock);
    const parse = containFaults(this.#deps.parse, this.#deps.logger);
    const updates = [...problems].map(([source, message]) => rejected(source, message));
    for (const registration of stored) {
      this.#kept.set(registration.name, registration);
      if (isOver(registration, now)) await this.#drop(registration, "lease-lapsed");
      else updates.push(restored(registration, parse));
      await pacer.turn();
    }
    await table.put(updates);
    this.#lapses.within(this.#untilNextLapseMs());
  }

  /** Reads every registration anew, since what it means may be another. Never rejects. */
  async readAgain(): Promise<void> {
    const { table, clock, logger, readAhead } = this.#deps;
    const parse = containFaults(this.#deps.parse, logger);
    const pacer = new Pacer(clock);
    for (const name of this.#kept.keys()) {
      await pacer.turn();
      await this.#locks.run(name, async () => {
        const registration = this.#kept.get(name);
        if (registration === undefined) return;
        await readAhead?.declaration(registration.text, registration.format);
        const startMs = clock.monotonicMs();
        const applied = await table.put([restored(registration, parse)]);
        this.#log(
          applied.filter(({ changed }) => changed.length > 0),
          startMs,
          { cause: "settings" },
        );
      });
    }
  }

  /** @throws GatewayError DECLARATION_INVALID, REQUEST_INVALID, TOOL_EXISTS, ETAG_MISMATCH, STORE_FAILED. */
  async register(options: RegisterOptions, principal: Principal, signal: AbortSignal): Promise<RegisterOutcome> {
    signal.throwIfAborted();
    const declaration = await raceSignal(this.#read(options), signal);
    const { registrars, table } = this.#deps;
    if (registrars !== undefined) {
      refuseRegistrar(declaration, principal, registrars, (reached, as) => table.declaresReach(reached, as));
    }
    const registering = this.#locks.run(declaration.tool.name, () =>
      this.#register(declaration, options, principal, signal),
    );
    return raceSignal(registering, signal);
  }

  /** The revision after it. @throws GatewayError TOOL_NOT_FOUND, TOOL_NOT_REMOVABLE, ETAG_MISMATCH, STORE_FAILED. */
  unregister(
    options: { readonly name: string; readonly etag: string | undefined; readonly allowMissing: boolean },
    principal: Principal,
    signal: AbortSignal,
  ): Promise<number> {
    const { name, etag, allowMissing } = options;
    const { table } = this.#deps;
    const removing = this.#locks.run(name, async () => {
      signal.throwIfAborted();
      const seen = table.snapshot.visibleTo(principal);
      // As if it were not there, unless it is somebody's who may see it.
      const access = table.snapshot.named(name)?.claim.declaration.policy.access;
      const hidden = !isVisible(principal, access);
      const registration = hidden ? undefined : this.#kept.get(name);
      if (registration === undefined) {
        const holder = hidden ? undefined : table.holder(name);
        const source = holder?.source ?? (hidden ? undefined : table.snapshot.named(name)?.claim.source);
        if (source !== undefined) throw notRemovable(name, source);
        if (allowMissing) return table.log.head;
        throw toolNotFound(name, seen);
      }
      refuseOthers(name, registration.principal, principal);
      this.#checkEtag(name, etag);
      await this.#deps.store.remove(name);
      await this.#drop(registration, "unregistered");
      return table.log.head;
    });
    return raceSignal(removing, signal);
  }

  /** Lets no more registrations lapse and waits for operations that go on. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lapses[Symbol.asyncDispose]();
    await this.#locks.idle();
  }

  async #read(options: RegisterOptions): Promise<Declaration> {
    const { text, format, leaseMs } = options;
    if (leaseMs !== undefined && !(leaseMs >= MIN_LEASE_MS && leaseMs <= MAX_LEASE_MS)) {
      const description = `expected 1 s to 30 days, got ${leaseMs / 1000} s`;
      const violations = [{ field: "lease", description, reason: "OUT_OF_RANGE" }];
      throw new GatewayError("REQUEST_INVALID", `lease: ${description}`, { violations });
    }
    const bytes = Buffer.byteLength(text);
    if (bytes > MAX_DECLARATION_BYTES) {
      const message = `the declaration has ${bytes} bytes, at most ${MAX_DECLARATION_BYTES} are allowed; shorten it`;
      throw declarationInvalid([sourceProblem("api", message)], format);
    }
    await this.#deps.readAhead?.declaration(text, format);
    const outcome = parseOrFail(this.#deps.parse, text, format);
    if (!outcome.ok) throw declarationInvalid(outcome.problems, format);
    return outcome.declaration;
  }

  async #register(
    declaration: Declaration,
    options: RegisterOptions,
    principal: Principal,
    signal: AbortSignal,
  ): Promise<RegisterOutcome> {
    signal.throwIfAborted();
    const { table } = this.#deps;
    const { name } = declaration.tool;
    this.#refuseHidden(name, principal);
    this.#checkConditions(name, options);
    refuseOthers(name, this.#kept.get(name)?.principal, principal);
    const registration = this.#registrationOf(declaration, options, principal);
    const warnings = declaration.notes.map((note) => positioned(note.line, note.column, note.message));
    if (options.validateOnly) {
      const tools = declaration.server === undefined ? [preview(declaration, registration, table)] : [];
      return { tools, revision: table.log.head, warnings };
    }
    using _name = table.holder(name) === undefined ? table.reserve(name, apiSource(name)) : undefined;
    await this.#keepAndServe(declaration, registration);
    return { tools: toolsOf(name, table), revision: table.log.head, warnings };
  }

  /** That a name is taken cannot be hidden from who wants it; by what and by whom can. @throws GatewayError TOOL_EXISTS. */
  #refuseHidden(name: string, principal: Principal): void {
    if (this.#kept.get(name)?.principal === principal.id) return;
    const taken = this.#deps.table.snapshot.named(name);
    if (taken !== undefined && !isVisible(principal, taken.claim.declaration.policy.access)) throw nameNotFree(name);
  }

  /** @throws GatewayError TOOL_EXISTS, ETAG_MISMATCH, REGISTRY_FULL. */
  #checkConditions(name: string, { mustNotExist, etag }: RegisterOptions): void {
    const holder = this.#deps.table.holder(name);
    if (holder !== undefined && (mustNotExist || holder.source !== apiSource(name))) {
      throw nameTaken(name, holder.source);
    }
    this.#checkEtag(name, etag);
    if (!this.#kept.has(name) && this.#kept.size >= MAX_REGISTRATIONS) throw registryFull(MAX_REGISTRATIONS);
  }

  #registrationOf(declaration: Declaration, options: RegisterOptions, principal: Principal): StoredRegistration {
    const { text, format, leaseMs } = options;
    const { name } = declaration.tool;
    const now = this.#deps.clock.now();
    const earlier = this.#kept.get(name);
    const unchanged = this.#deps.table.holder(name)?.claim?.declaration.digest === declaration.digest;
    return {
      name,
      text,
      format,
      principal: principal.id,
      createTimeMs: earlier?.createTimeMs ?? now,
      updateTimeMs: earlier !== undefined && unchanged ? earlier.updateTimeMs : now,
      leaseExpireTimeMs: leaseMs === undefined ? undefined : now + leaseMs,
    };
  }

  /** Opens, writes, then shows: a failure before the last leaves everything as it was. */
  async #keepAndServe(declaration: Declaration, registration: StoredRegistration): Promise<void> {
    const { table, store, clock } = this.#deps;
    const startMs = clock.monotonicMs();
    const serving = table.snapshot.named(registration.name);
    const opens = declaration.tool.enabled && serving?.open?.fits(declaration) !== true;
    const open = opens ? await table.open(declaration) : undefined;
    try {
      await store.put(registration);
    } catch (error) {
      open?.retire();
      throw error;
    }
    this.#kept.set(registration.name, registration);
    const source = apiSource(registration.name);
    const applied = await table.put([{ kind: "declared", source, declaration, times: timesOf(registration), open }]);
    this.#log(applied, startMs, { principal: registration.principal });
    if (registration.leaseExpireTimeMs !== undefined) {
      this.#lapses.within(registration.leaseExpireTimeMs - clock.now());
    }
  }

  /** Ends what has lapsed, and comes again for the soonest that has not. */
  async #lapse(): Promise<void> {
    const now = this.#deps.clock.now();
    const over = [...this.#kept.values()].filter((registration) => isOver(registration, now));
    await Promise.all(
      over.map((registration) =>
        this.#locks.run(registration.name, async () => {
          // It may have been renewed while this waited.
          if (this.#kept.get(registration.name) === registration) await this.#drop(registration, "lease-lapsed");
        }),
      ),
    );
    this.#lapses.within(this.#untilNextLapseMs());
  }

  #untilNextLapseMs(): number {
    let soonest = Number.POSITIVE_INFINITY;
    for (const { leaseExpireTimeMs } of this.#kept.values()) soonest = Math.min(soonest, leaseExpireTimeMs ?? soonest);
    return soonest - this.#deps.clock.now();
  }

  /** Stops serving a registration. A lapsed one that cannot be deleted is dropped again at the next start. */
  async #drop(registration: StoredRegistration, cause: "lease-lapsed" | "unregistered"): Promise<void> {
    const { name } = registration;
    const { table, store, logger, clock } = this.#deps;
    const startMs = clock.monotonicMs();
    this.#kept.delete(name);
    this.#log(await table.put([{ kind: "gone", source: apiSource(name) }]), startMs, { cause });
    if (cause === "unregistered") return;
    try {
      await store.remove(name);
    } catch (error) {
      logger.warn("registration-remove-failed", { tool: name, error });
    }
  }

  #log(applied: readonly AppliedUpdate[], startMs: number, fields: LogFields): void {
    const { logger, clock } = this.#deps;
    const ms = Math.round(clock.monotonicMs() - startMs);
    for (const { source, added, changed, removed } of applied) {
      logger.info("config reloaded", { source, added, changed, removed, ms, ...fields });
    }
  }

  #checkEtag(name: string, etag: string | undefined): void {
    const holder = this.#deps.table.holder(name);
    const current = holder?.claim?.declaration.digest;
    if (etag !== undefined && etag !== current) throw etagMismatch(name, current !== undefined);
  }
}

function parseOrFail(parse: ParseDeclaration, text: string, format: "yaml" | "json"): DeclarationOutcome {
  try {
    return parse(text, { format, source: "api" });
  } catch (error) {
    throw GatewayError.from(error);
  }
}

function apiSource(name: string): string {
  return `api:${name}`;
}

function isOver(registration: StoredRegistration, nowMs: number): boolean {
  return registration.leaseExpireTimeMs !== undefined && registration.leaseExpireTimeMs <= nowMs;
}

function timesOf(registration: StoredRegistration): ClaimTimes {
  const { createTimeMs, updateTimeMs, leaseExpireTimeMs } = registration;
  return { createTimeMs, updateTimeMs, leaseExpireTimeMs };
}

function rejected(source: string, message: string): SourceUpdate {
  return { kind: "rejected", source, problems: [sourceProblem(source, message)] };
}

/** The tool as it would be; nothing is opened for it, so it counts as ready unless it is disabled. */
function preview(declaration: Declaration, registration: StoredRegistration, table: ToolTable): ToolEntry {
  const { name } = declaration.tool;
  const claim = { name, source: apiSource(name), declaration, ...timesOf(registration) };
  return new ToolEntry(claim, undefined, buildDefinition(claim, table.aliasOf(name)));
}

/** The tool of a name, or those that the server of that name has told of. */
function toolsOf(name: string, { servers, snapshot }: ToolTable): readonly ToolEntry[] {
  const names = servers.named(name)?.names ?? [name];
  return names.flatMap((each) => {
    const entry = snapshot.named(each);
    return entry?.listed === true ? [entry] : [];
  });
}

/** What an earlier run kept. */
function restored(registration: StoredRegistration, parse: ParseDeclaration): SourceUpdate {
  const { name, text, format } = registration;
  const source = apiSource(name);
  const outcome = parse(text, { format, source: "api" });
  if (outcome.ok && outcome.declaration.tool.name === name) {
    return { kind: "declared", source, declaration: outcome.declaration, times: timesOf(registration) };
  }
  const again = "the registration kept on disk no longer loads, register the tool again";
  if (outcome.ok) return rejected(source, `${again}: it declares "${outcome.declaration.tool.name}"`);
  const problems = outcome.problems.map((problem) => ({ ...problem, message: `${again}: ${problem.message}` }));
  return { kind: "rejected", source, problems };
}
