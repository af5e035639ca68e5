import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { DeclarationProblem } from "../core/registry.ts";
import type { Affected } from "../core/step.ts";
import { type AppliedUpdate, effectOf } from "./applied-update.ts";
import { ChangeLog } from "./change-log.ts";
import { Claims, type Holder } from "./claims.ts";
import type { Declaration } from "./declaration.ts";
import { AliasTable } from "./names.ts";
import type { OpenTool, StandingStep } from "./open-tool.ts";
import { conflictProblem, openProblem, sameProblems, sourceProblem } from "./problems.ts";
import { ServedServers } from "./served-servers.ts";
import type { Served, ServerToolsDeps } from "./server-tools.ts";
import { Snapshot } from "./snapshot.ts";
import { buildDefinition, type Claim, sameDefinition, ToolEntry } from "./tool-entry.ts";
import { type PlacedToolsets, SETTINGS_SOURCE, toolsetNotes } from "./toolset-notes.ts";
import type { Upstreams } from "./upstreams.ts";

/** Times of a claim, in milliseconds since the epoch; where absent, the table's own clock says them. */
export interface ClaimTimes {
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
  readonly leaseExpireTimeMs: number | undefined;
}

/** What a source says now. */
export type SourceUpdate =
  | {
      readonly kind: "declared";
      readonly source: string;
      readonly declaration: Declaration;
      readonly times?: ClaimTimes;
      /** The declaration's upstream, where it is open already. The table owns it from now on. */
      readonly open?: OpenTool | undefined;
    }
  /** What it says cannot be used: what it said before stays in force. */
  | { readonly kind: "rejected"; readonly source: string; readonly problems: readonly DeclarationProblem[] }
  | { readonly kind: "gone"; readonly source: string };

interface SourceState {
  readonly claim: Claim | undefined;
  readonly problems: readonly DeclarationProblem[];
  readonly openFailure: string | undefined;
}

/** What a table works with. */
export interface ToolTableDeps extends Pick<ServerToolsDeps, "screen" | "readAhead"> {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly upstreams: Upstreams;
  readonly steps: readonly StandingStep[];
  /** The toolsets in force, for what there is to say of them. Default: none. */
  readonly toolsets?: (() => PlacedToolsets) | undefined;
}

/** Everything the registry knows: who declares what, what serves, what is wrong, what changed when. */
export class ToolTable {
  readonly log: ChangeLog;
  /** The servers among what serves, with their tools. */
  readonly servers: ServedServers;
  readonly #clock: Clock;
  readonly #upstreams: Upstreams;
  readonly #steps: readonly StandingStep[];
  readonly #toolsets: ToolTableDeps["toolsets"];
  readonly #claims = new Claims();
  readonly #aliases = new AliasTable();
  readonly #sources = new Map<string, SourceState>();
  readonly #settling = new Map<string, Promise<void>>();
  readonly #staged = new Map<string, Served | undefined>();
  /** Sources whose problems may be others than the snapshot says. */
  readonly #dirty = new Set<string>();
  /** One for all tools. */
  readonly #changedAvailability = (tool: OpenTool): void => this.#availabilityChanged(tool);
  #flush: NodeJS.Immediate | undefined;
  #snapshot = Snapshot.empty;

  constructor(deps: ToolTableDeps) {
    this.#clock = deps.clock;
    this.#upstreams = deps.upstreams;
    this.#steps = deps.steps;
    this.#toolsets = deps.toolsets;
    this.servers = new ServedServers({
      ...deps,
      aliases: this.#aliases,
      snapshot: () => this.#snapshot,
      openMember: (declaration, server) => this.#upstreams.openMember(declaration, server),
      stage: (name, next) => this.#stage(name, next),
      changed: (sources) => this.#changed(sources),
    });
    // Microseconds since the epoch: above what an earlier run counted up to, and an exact double until the year 2255.
    this.log = new ChangeLog(deps.clock.now() * 1000);
  }

  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  /** Who has a name, serving or not. */
  holder(name: string): Holder | undefined {
    return this.#claims.first(name);
  }

  /** Whether a tool of a file reaches what has this identity, as its upstream or at all. */
  declaresReach(reached: string, as: "upstream" | "other"): boolean {
    return this.#snapshot.tools.some(({ claim: { declaration, source } }) => {
      const { policy, alsoReaches = [] } = declaration;
      const reaches = policy.upstream === reached || (as === "other" && alsoReaches.includes(reached));
      return reaches && source.startsWith("file:");
    });
  }

  /** The alias of a tool; of a name without a tool, the one it would get. */
  aliasOf(name: string): string {
    return this.#aliases.aliasOf(name);
  }

  /** Keeps a name that nobody has for a source. Disposing gives it back, unless the source has declared it since. */
  reserve(name: string, source: string): Disposable {
    this.#claims.set(name, { source, claim: undefined });
    return {
      [Symbol.dispose]: () => {
        if (this.#claims.first(name)?.claim !== undefined) return;
        this.#claims.remove(name, source);
        void this.#settle(name);
      },
    };
  }

  /** Opens the upstream of a declaration, for an update to come. @throws GatewayError. */
  open(declaration: Declaration): Promise<OpenTool> {
    return this.#upstreams.open(declaration, this.#changedAvailability);
  }

  /**
   * Takes in what sources say. A tool is replaced when its new version is open, so no name is ever without a tool in
   * between. Settles when all is in force; what cannot be opened has become a problem then. Never rejects.
   */
  async put(updates: readonly SourceUpdate[]): Promise<readonly AppliedUpdate[]> {
    const touched = updates.map((update) => ({ update, names: this.#take(update) }));
    const before = new Map<string, Served | undefined>();
    for (const { names } of touched) for (const name of names) before.set(name, this.#served(name));
    for (const { update } of touched) {
      if (update.kind === "declared" && update.open !== undefined) this.#adopt(update.source, update.open);
    }
    await Promise.all([...before.keys()].map((name) => this.#settle(name)));
    this.#flushAll();
    await this.servers.idle(before.keys());
    this.#flushAll();
    return touched.map(({ update, names }) => effectOf(update.source, names, before, this.#snapshot));
  }

  /** To be called when toolsets may be others. */
  settingsChanged(): void {
    this.#changed([{ source: SETTINGS_SOURCE }]);
  }

  #flushAll(): void {
    clearImmediate(this.#flush);
    this.#flush = undefined;
    const head = this.log.head;
    // A server that goes away or is switched off takes its tools along.
    while (this.#staged.size > 0) this.#flushTools();
    this.#flushProblems();
    clearImmediate(this.#flush);
    this.#flush = undefined;
    if (this.log.head !== head) this.log.wake();
  }

  /** Updates the rows for names; returns the names that may be served differently now. */
  #take(update: SourceUpdate): readonly string[] {
    const { source } = update;
    const prior = this.#sources.get(source);
    this.#changed([update]);
    if (update.kind === "rejected") {
      const { claim, openFailure } = prior ?? {};
      this.#sources.set(source, { claim, problems: update.problems, openFailure });
      return [];
    }
    const claim = update.kind === "declared" ? this.#claimOf(update, prior?.claim) : undefined;
    const former = prior?.claim?.name;
    if (former !== undefined && former !== claim?.name) this.#claims.remove(former, source);
    if (claim === undefined) {
      this.#sources.delete(source);
    } else {
      this.#claims.set(claim.name, { source, claim });
      this.#sources.set(source, { claim, problems: claim.declaration.notes, openFailure: undefined });
    }
    return [...new Set([former, claim?.name])].filter((name) => name !== undefined);
  }

  #claimOf(update: SourceUpdate & { readonly kind: "declared" }, prior: Claim | undefined): Claim {
    const { source, declaration } = update;
    const now = this.#clock.now();
    const name = declaration.tool.name;
    const earlier = prior?.name === name ? prior : undefined;
    // A digest takes work, so it is asked for where there are two to compare.
    const same = earlier !== undefined && earlier.declaration.digest === declaration.digest ? earlier : undefined;
    const times = update.times ?? {
      createTimeMs: earlier?.createTimeMs ?? now,
      updateTimeMs: same?.updateTimeMs ?? now,
      leaseExpireTimeMs: undefined,
    };
    return { name, source, declaration, ...times };
  }

  /** Takes an upstream that is open already for the claim its source has just made. */
  #adopt(source: string, open: OpenTool): void {
    const claim = this.#sources.get(source)?.claim;
    if (claim === undefined || this.#claims.first(claim.name)?.claim !== claim) open.retire();
    else this.#stage(claim.name, { claim, open });
  }

  /** What serves a name, once all that is ready is visible. */
  #served(name: string): Served | undefined {
    return this.#staged.has(name) ? this.#staged.get(name) : this.#snapshot.named(name);
  }

  /** Brings what serves a name in line with who has it. */
  async #settle(name: string): Promise<void> {
    const running = this.#settling.get(name);
    if (running !== undefined) return running;
    const claim = this.#step(name);
    if (claim === undefined) return;
    const settling = this.#openUntilSettled(name, claim);
    this.#settling.set(name, settling);
    await settling;
  }

  async #openUntilSettled(name: string, first: Claim): Promise<void> {
    // Who joins this run relies on it looking at the row again after each wait, and on its end being no wait at all.
    let claim: Claim | undefined = first;
    while (claim !== undefined) {
      await this.#openFor(claim);
      claim = this.#step(name);
    }
    this.#settling.delete(name);
  }

  /** Does what needs no waiting. Returns the claim whose upstream has to be opened first. */
  #step(name: string): Claim | undefined {
    const claim = this.#claims.first(name)?.claim;
    const served = this.#served(name);
    this.#changed(this.#claims.of(name));
    if (claim === served?.claim) return undefined;
    const ready = claim === undefined ? undefined : readyVersion(claim, served);
    if (claim === undefined || ready !== undefined) {
      this.#stage(name, ready);
      return undefined;
    }
    const state = this.#sources.get(claim.source);
    if (state?.claim !== claim || state.openFailure === undefined) return claim;
    // The last good version of the same source keeps serving; one of another source has lost the name.
    if (served !== undefined && served.claim.source !== claim.source) this.#stage(name, undefined);
    return undefined;
  }

  async #openFor(claim: Claim): Promise<void> {
    try {
      const open = await this.open(claim.declaration);
      if (this.#claims.first(claim.name)?.claim === claim) this.#stage(claim.name, { claim, open });
      else open.retire();
    } catch (error) {
      const state = this.#sources.get(claim.source);
      if (state?.claim === claim) this.#sources.set(claim.source, { ...state, openFailure: openProblem(error) });
    }
  }

  #stage(name: string, next: Served | undefined): void {
    const prior = this.#staged.get(name)?.open;
    if (prior !== undefined && prior !== next?.open && prior !== this.#snapshot.named(name)?.open) prior.retire();
    this.#staged.set(name, next);
    this.#changed(this.#claims.of(name));
  }

  /** What is ready becomes visible at the end of the turn, whatever else is still opening. */
  #changed(sources: readonly { readonly source: string }[]): void {
    for (const { source } of sources) this.#dirty.add(source);
    this.#flush ??= setImmediate(() => this.#flushAll());
  }

  #flushTools(): void {
    const before = this.#snapshot;
    const staged = [...this.#staged];
    this.#staged.clear();
    const added = staged.filter(([name, next]) => next !== undefined && before.named(name) === undefined);
    const removed = staged.filter(([name, next]) => next === undefined && before.named(name) !== undefined);
    const renamed = this.#aliases.update(added.map(nameOf), removed.map(nameOf));
    const changes = new Map<string, ToolEntry | undefined>();
    for (const name of renamed) changes.set(name, this.#entryOf(name, before.named(name)));
    for (const [name, next] of staged) changes.set(name, this.#entryOf(name, next));
    this.#snapshot = before.withTools(changes);
    if (added.length + removed.length > 0) this.settingsChanged();
    for (const [name, entry] of changes) {
      for (const step of this.#steps) step.settled?.(name, entry?.claim.declaration.policy);
      this.#record(name, before.named(name), entry);
      this.servers.settled(name, entry);
    }
    this.servers.renamed(renamed);
  }

  #entryOf(name: string, served: Served | undefined): ToolEntry | undefined {
    if (served === undefined) return undefined;
    const { claim, open } = served;
    return new ToolEntry(claim, open, buildDefinition(claim, this.#aliases.aliasOf(name)));
  }

  #record(name: string, before: ToolEntry | undefined, after: ToolEntry | undefined): void {
    if (before?.open !== after?.open) before?.open?.retire();
    if (after?.open !== undefined) after.open.told = after.availability;
    const entry = after ?? before;
    if (entry === undefined || looksTheSame(before, after)) return;
    this.log.append("tool", name, after?.listed !== true, entry.access);
  }

  #flushProblems(): void {
    const changes = new Map<string, readonly DeclarationProblem[]>();
    for (const source of this.#dirty) {
      const problems = this.#problemsOf(source);
      if (!sameProblems(problems, this.#snapshot.problemsOf(source))) changes.set(source, problems);
    }
    this.#dirty.clear();
    this.#snapshot = this.#snapshot.withProblems(changes);
    for (const [source, problems] of changes) this.log.append("problems", source, problems.length === 0);
  }

  #problemsOf(source: string): readonly DeclarationProblem[] {
    if (source === SETTINGS_SOURCE) {
      return this.#toolsets === undefined ? [] : toolsetNotes(this.#toolsets(), this.#snapshot, this.servers);
    }
    const ofServer = this.servers.problemsOf(source);
    if (ofServer !== undefined) return ofServer;
    const state = this.#sources.get(source);
    if (state === undefined) return [];
    const { claim, openFailure } = state;
    const serving = claim !== undefined && this.#snapshot.named(claim.name)?.claim.source === source;
    const own = state.problems.map((problem) => ({ ...problem, source, lastGoodServing: serving && !problem.note }));
    const failed =
      openFailure === undefined ? [] : [{ ...sourceProblem(source, openFailure), lastGoodServing: serving }];
    const idle = serving ? (this.servers.named(claim.name)?.idleNotes() ?? []) : [];
    return [...own, ...this.#conflict(source, claim), ...idle, ...failed];
  }

  #conflict(source: string, claim: Claim | undefined): readonly DeclarationProblem[] {
    const first = claim === undefined ? undefined : this.#claims.first(claim.name);
    return claim === undefined || first === undefined || first.source === source ? [] : [conflictProblem(claim, first)];
  }

  /** Tells watchers of tools that have another availability by now. */
  lookAgain(affected: Affected): void {
    const concerned =
      "tool" in affected
        ? [this.#snapshot.named(affected.tool)]
        : this.#snapshot.tools.filter(({ claim }) => claim.declaration.policy.upstream === affected.upstream);
    for (const entry of concerned) if (entry?.open !== undefined) this.#availabilityChanged(entry.open);
  }

  #availabilityChanged(tool: OpenTool): void {
    const entry = this.#snapshot.named(tool.declaration.tool.name);
    if (entry?.open !== tool) return;
    if (entry.isServer) this.#serverChanged(entry.definition.name);
    if (!entry.listed) return;
    const now = entry.availability;
    if (now.state === tool.told?.state && now.reason === tool.told.reason) return;
    tool.told = now;
    this.log.append("tool", entry.definition.name, false, entry.access);
    this.log.wake();
  }

  #serverChanged(name: string): void {
    const server = this.servers.named(name);
    server?.changed();
    for (const tool of server?.names ?? []) {
      const open = this.#snapshot.named(tool)?.open;
      if (open !== undefined) this.#availabilityChanged(open);
    }
  }
}

function nameOf([name]: readonly [string, unknown]): string {
  return name;
}

/** Whether List and Watch show the same of both. */
function looksTheSame(before: ToolEntry | undefined, after: ToolEntry | undefined): boolean {
  if (before?.listed === true && after?.listed === true) return sameDefinition(before.definition, after.definition);
  return before?.listed !== true && after?.listed !== true;
}

/** What can serve a claim without opening anything. */
function readyVersion(claim: Claim, served: Served | undefined): Served | undefined {
  if (!claim.declaration.tool.enabled) return { claim, open: undefined };
  const open = served?.open;
  return open?.fits(claim.declaration) === true ? { claim, open } : undefined;
}
