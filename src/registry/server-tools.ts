import type { Offer } from "../core/adapter.ts";
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { DeclarationProblem } from "../core/registry.ts";
import type { ResultRules } from "../core/shaper.ts";
import type { Availability } from "../core/tool.ts";
import type { ReadAhead } from "./declaration-source.ts";
import { changesOf, type Expansion, expandOffer, NOTHING_OFFERED, type RemoteDeclaration } from "./expand-offer.ts";
import type { OpenTool } from "./open-tool.ts";
import { Pacer } from "./pacer.ts";
import { sourceProblem } from "./problems.ts";
import { listed, noToolsBegin, serverSource } from "./server-report.ts";
import type { Claim } from "./tool-entry.ts";

/** How long the tools of a version stay that another one has replaced, while that one has told of none yet. */
const TAKE_OVER_MS = 10_000;
/** Most names that one log line has. */
const MAX_LOGGED = 50;

const NOT_OPEN: Availability = { state: "unavailable", reason: "it is not open" };

/** What serves a name. */
export interface Served {
  readonly claim: Claim;
  readonly open: OpenTool | undefined;
}

/** What a server's tools are kept with. */
export interface ServerToolsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Makes a text of a server's fit to be shown. Default: as it came. */
  readonly screen?: ((rules: ResultRules) => (text: string) => string) | undefined;
  readonly readAhead?: ReadAhead | undefined;
  /** Makes the tool of a server: its calls go through the server's upstream. */
  openMember(declaration: RemoteDeclaration, server: OpenTool): OpenTool;
  /** From now on this serves a name; `undefined`: nothing does. Visible with the next flush. */
  stage(name: string, next: Served | undefined): void;
  /** The problems of these sources may be others. */
  changed(sources: readonly { readonly source: string }[]): void;
}

/** A tool of the server, as it is served. */
interface Member extends Served {
  /** Whose upstream it goes through. */
  readonly server: OpenTool | undefined;
  readonly declaration: RemoteDeclaration;
}

/**
 * The tools that one server brings, through all versions of its declaration and all lists it offers. A new list is
 * applied as the difference to the one before: what is offered as it was keeps its version, with all that is kept for
 * it. What the server offered last stays while it is down.
 */
export class ServerTools {
  readonly #deps: ServerToolsDeps;
  /** The version that is in force, or will be when it has told of its tools. */
  #next: Served;
  /** The version whose tools are served. */
  #current: Served;
  #offer: Offer | undefined;
  #members: ReadonlyMap<string, Member> = new Map();
  #expansion: Expansion = NOTHING_OFFERED;
  /** What the server says otherwise of a tool than it did, since the declaration was last another. */
  readonly #redefined = new Map<string, string>();
  #takeOver: Disposable | undefined;
  #expanding: Promise<void> | undefined;
  #busy = false;
  #gone = false;

  constructor(served: Served, deps: ServerToolsDeps) {
    this.#deps = deps;
    this.#next = served;
    this.#current = served;
    this.serve(served);
  }

  get name(): string {
    return this.#next.claim.name;
  }

  get served(): Served {
    return this.#next;
  }

  get expansion(): Expansion {
    return this.#expansion;
  }

  /** Whether the server has ever told of its tools. */
  get heard(): boolean {
    return this.#offer !== undefined;
  }

  /** Names of its tools. */
  get names(): readonly string[] {
    return [...this.#members.keys()];
  }

  /** Another version of the declaration serves, or of its upstream. */
  serve(next: Served): void {
    const before = this.#next;
    this.#next = next;
    if (next.claim.declaration !== before.claim.declaration) this.#redefined.clear();
    const waits = next.open !== undefined && next.open !== before.open && this.#members.size > 0;
    if (waits && next.open.upstream.offer?.() === undefined) {
      this.#takeOver?.[Symbol.dispose]();
      this.#takeOver = this.#deps.clock.after(TAKE_OVER_MS, () => this.#serveNext());
      this.#problemsChanged();
    } else this.#serveNext();
  }

  /** The upstream told that something about it is another. */
  changed(): void {
    const offer = this.#next.open?.upstream.offer?.();
    if (offer !== undefined && offer !== this.#offer) this.#serveNext();
    this.#problemsChanged();
  }

  /** Its declaration is gone, and so are its tools. */
  remove(): void {
    this.#gone = true;
    this.#takeOver?.[Symbol.dispose]();
    for (const name of this.#members.keys()) this.#deps.stage(name, undefined);
    this.#members = new Map();
    this.#problemsChanged();
  }

  /** Settles when all that was told so far is in force. */
  async idle(): Promise<void> {
    await this.#expanding;
  }

  /** What is wrong with the server and its tools. Those of the declaration itself are not among them. */
  problems(): readonly DeclarationProblem[] {
    if (this.#gone) return [];
    const source = serverSource(this.name);
    const { heldBack, notes } = this.#expansion;
    return [
      ...this.#standing(),
      ...heldBack.map(({ tool, reason, offeredSo }) =>
        sourceProblem(source, `tool "${tool}" is held back: ${reason}`, offeredSo),
      ),
      ...[...this.#redefined].map(([tool, parts]) => {
        return sourceProblem(
          source,
          `tool "${tool}" has changed since it was first offered (${parts}): look at it`,
          true,
        );
      }),
      ...notes.map(({ tool, message }) => {
        return sourceProblem(source, tool === undefined ? message : `tool "${tool}": ${message}`, true);
      }),
    ];
  }

  /** Notes on what the declaration says in vain; they have a place there. */
  idleNotes(): readonly DeclarationProblem[] {
    if (this.#gone || this.#offer === undefined) return [];
    return this.#current.claim.declaration.server?.idle(new Set(this.#offer.tools.map(({ name }) => name))) ?? [];
  }

  /** That the server serves nothing, as long as it has no tools that could say so. */
  #standing(): readonly DeclarationProblem[] {
    const { claim, open } = this.#next;
    if (this.#members.size > 0) return [];
    const source = serverSource(this.name);
    const said = (what: string) => [sourceProblem(source, `server "${this.name}" ${what}`, true)];
    if (!claim.declaration.tool.enabled) return said("is disabled: its declaration says `enabled: false`");
    if (this.#offer !== undefined) return this.#offer.tools.length === 0 ? said("offers no tools") : [];
    const { state, reason, starting } = open?.availability ?? NOT_OPEN;
    if (state === "ready" || starting === true) return said("is starting and has told of no tools yet");
    return [sourceProblem(source, noToolsBegin(this.name) + reason)];
  }

  #serveNext(): void {
    this.#takeOver?.[Symbol.dispose]();
    this.#takeOver = undefined;
    this.#current = this.#next;
    this.#offer = this.#next.open?.upstream.offer?.() ?? this.#offer;
    this.#problemsChanged();
    if (this.#busy) return;
    this.#busy = true;
    this.#expanding = this.#expandAll();
  }

  /** Until what was expanded is what is there: another offer may come, or another version, while one is looked at. */
  async #expandAll(): Promise<void> {
    try {
      let settled = false;
      while (!settled && !this.#gone) {
        const { claim, open } = this.#current;
        const offer = this.#offer;
        const { server, rules } = claim.declaration;
        if (server === undefined || offer === undefined) break;
        const { clock, logger, readAhead } = this.#deps;
        const screen = this.#deps.screen?.(rules) ?? ((text: string): string => text);
        const means = { pacer: new Pacer(clock), logger, screen, readAhead };
        const expansion = await expandOffer(server, offer, this.#expansion, means);
        settled = claim === this.#current.claim && open === this.#current.open && offer === this.#offer;
        if (settled && !this.#gone) this.#apply(expansion);
      }
    } catch (error) {
      this.#deps.logger.error("server-tools-failed", { server: this.name, error });
    } finally {
      // At once and not when the promise settles: what comes in between would be lost.
      this.#busy = false;
    }
  }

  #apply(expansion: Expansion): void {
    const before = this.#members;
    const members = new Map<string, Member>();
    for (const [name, declaration] of expansion.tools) {
      const known = before.get(name);
      const member = this.#memberOf(name, declaration, known);
      members.set(name, member);
      if (member !== known) this.#deps.stage(name, member);
    }
    for (const name of before.keys()) if (!members.has(name)) this.#deps.stage(name, undefined);
    this.#members = members;
    this.#expansion = expansion;
    this.#log(before);
    this.#problemsChanged();
  }

  #memberOf(name: string, declaration: RemoteDeclaration, known: Member | undefined): Member {
    const { claim, open } = this.#current;
    const server = declaration.tool.enabled ? open : undefined;
    const next = this.#claimOf(name, declaration, known, claim);
    if (known === undefined || known.declaration.digest !== declaration.digest || known.server !== server) {
      const opened = server === undefined ? undefined : this.#deps.openMember(declaration, server);
      return { claim: next, open: opened, server, declaration };
    }
    return isSameClaim(known.claim, next) ? known : { ...known, claim: next, declaration };
  }

  #claimOf(name: string, declaration: RemoteDeclaration, known: Member | undefined, server: Claim): Claim {
    const now = this.#deps.clock.now();
    const same = known?.declaration.digest === declaration.digest;
    return {
      name,
      source: server.source,
      declaration,
      createTimeMs: known?.claim.createTimeMs ?? now,
      updateTimeMs: same ? known.claim.updateTimeMs : now,
      leaseExpireTimeMs: server.leaseExpireTimeMs,
    };
  }

  #log(before: ReadonlyMap<string, Member>): void {
    const added = [...this.#members.keys()].filter((name) => !before.has(name));
    const removed = [...before.keys()].filter((name) => !this.#members.has(name));
    const changed = [...this.#members].flatMap(([name, { declaration }]) => {
      const was = before.get(name)?.declaration;
      if (was === undefined || was.digest === declaration.digest) return [];
      const parts = changesOf(was, declaration).join(", ");
      if (was.remote.offeredDigest !== declaration.remote.offeredDigest) this.#redefined.set(name, parts);
      return [`${name}: ${parts}`];
    });
    for (const name of removed) this.#redefined.delete(name);
    if (added.length + removed.length + changed.length === 0) return;
    const { heldBack, leftOut } = this.#expansion;
    const fields = {
      server: this.name,
      added: listed(added, MAX_LOGGED),
      changed: listed(changed, MAX_LOGGED),
      removed: listed(removed, MAX_LOGGED),
      heldBack: heldBack.length,
      leftOut: leftOut.length,
    };
    // A tool that was approved may do something else by now.
    this.#deps.logger[changed.length > 0 && this.#redefined.size > 0 ? "warn" : "info"]("server tools changed", fields);
  }

  #problemsChanged(): void {
    this.#deps.changed([{ source: serverSource(this.name) }, { source: this.#next.claim.source }]);
  }
}

function isSameClaim(a: Claim, b: Claim): boolean {
  return a.declaration === b.declaration && a.source === b.source && a.leaseExpireTimeMs === b.leaseExpireTimeMs;
}
