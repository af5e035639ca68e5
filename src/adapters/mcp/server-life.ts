import type { AdapterDeps, Offer } from "../../core/adapter.ts";
import { sleep } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import { raceSignal } from "../../core/signal.ts";
import type { Availability } from "../../core/tool.ts";
import { SecretWatch } from "../shared/secret-watch.ts";
import { notStarted } from "./call-failure.ts";
import { type McpConfig, secretRefsOf } from "./mcp-config.ts";
import { ProgramLink } from "./program-link.ts";
import type { ProgramSource } from "./program-source.ts";
import type { ServerConnector, StartedServer } from "./server-connector.ts";
import type { ServerMemory } from "./server-memory.ts";
import type { Era, Session } from "./session.ts";
import { endInWords, failedState, failureOf, isOfProtocol, programEnded, StartFailure } from "./start-failure.ts";
import type { StartQueue, StartTurn } from "./start-queue.ts";
import { offerOf, type RawList } from "./tool-list.ts";

/** A server that failed as often as it may is tried again after this. */
const PARKED_MS = 300_000;

/** A server that lived so long has recovered: failures before it do not count. */
const SOUND_MS = 30_000;

/** How long a call waits for an attempt that is due. */
const PATIENCE_MS = 5_000;

/** A server tells of changes in bursts. */
const REFRESH_MS = 100;

/** The list is read no oftener than this. */
const REFRESH_PAUSE_MS = 1_000;

/** Part by which a wait is longer or shorter than its rule says. */
const JITTER = 0.25;

/** What a server's life is led with. */
export interface ServerLifeOptions {
  readonly config: McpConfig;
  readonly deps: AdapterDeps;
  readonly connector: ServerConnector;
  readonly memory: ServerMemory;
  readonly programs: ProgramSource;
  /** The line of servers that start. */
  readonly starts: StartQueue;
  /** The life that makes the offer, where this one is for calls alone: then a call is what begins it, each time. */
  readonly main?: ServerLife | undefined;
}

type State =
  /** Not started, or stopped since nobody called it. */
  | { readonly kind: "idle" }
  /** `quiet`: calls are taken meanwhile, since nothing says that it will fail. */
  | {
      readonly kind: "starting";
      readonly started: Promise<Session>;
      readonly quiet: boolean;
      readonly turn: StartTurn;
    }
  | { readonly kind: "ready"; readonly session: Session; readonly sinceMs: number }
  /** Failed, and due for another attempt. */
  | { readonly kind: "waiting"; readonly failure: StartFailure; readonly dueMs: number; readonly timer: Disposable }
  | { readonly kind: "closed" };

/** One server from its first start to the end of its declaration: one process or session, whoever calls. */
export class ServerLife implements AsyncDisposable {
  readonly #options: ServerLifeOptions;
  readonly #secrets: SecretWatch;
  readonly #ended = new AbortController();
  readonly #dying = new Set<Promise<void>>();
  #state: State = { kind: "idle" };
  #offer: Offer | undefined;
  #era: Era | undefined;
  #failures = 0;
  #lastFailure: StartFailure | undefined;
  #calls = 0;
  #idle: Disposable | undefined;
  #refresh: Disposable | undefined;
  #reading = false;
  #readOnceMore = false;

  constructor(options: ServerLifeOptions) {
    this.#options = options;
    this.#era = options.main?.era;
    this.#secrets = new SecretWatch(secretRefsOf(options.config), options.deps);
  }

  get offer(): Offer | undefined {
    return this.#options.main?.offer ?? this.#offer;
  }

  /** What is known of its era. */
  get era(): Era | undefined {
    return this.#era;
  }

  /** What is spoken to now. */
  get session(): Session | undefined {
    return this.#state.kind === "ready" ? this.#state.session : undefined;
  }

  /** Why the last start failed; undefined once one succeeded. */
  get lastFailure(): StartFailure | undefined {
    return this.#lastFailure;
  }

  /** Begins it: starts the server, unless it is to be started by its first call and its tools are known. */
  async begin(): Promise<void> {
    const { config, memory } = this.#options;
    const { era, tools } = await memory.recall();
    if (this.#state.kind === "closed") return;
    this.#era = era;
    if (config.start === "lazy" && tools !== undefined) {
      this.#offered({ tools, notes: [] }, era);
      return;
    }
    if (this.#state.kind === "idle") void this.#start(false);
  }

  availability(): Availability {
    const missing = this.#missing();
    if (missing !== undefined) return missing;
    if (this.#state.kind === "waiting" && this.#isMended(this.#state.failure)) {
      this.#lastFailure = undefined;
      void this.#start(false);
    }
    const state = this.#state;
    switch (state.kind) {
      case "ready":
        return this.#options.connector.login?.lacking() ?? { state: "ready", reason: "" };
      case "idle":
        return this.#startingState(true);
      case "starting":
        return this.#startingState(state.quiet);
      case "waiting":
        return failedState(state.failure);
      case "closed":
        return { state: "unavailable", reason: "closed" };
    }
  }

  #startingState(quiet: boolean): Availability {
    if (quiet && this.#offer !== undefined) return { state: "ready", reason: "" };
    return this.#lastFailure === undefined
      ? { state: "unavailable", reason: "starting", starting: true }
      : failedState(this.#lastFailure);
  }

  /**
   * The session for a call of a tool, which its callers know by this name; waits for a start that goes on or is due soon.
   *
   * @throws GatewayError SECRET_MISSING, UPSTREAM_UNREACHABLE, GATEWAY_STOPPING; the signal's reason.
   */
  async use(tool: string, signal: AbortSignal): Promise<Session> {
    this.#secrets.look();
    const { clock } = this.#options.deps;
    if (this.#state.kind === "waiting" && !this.#isMended(this.#state.failure)) {
      const waitMs = this.#state.dueMs - clock.monotonicMs();
      if (waitMs > PATIENCE_MS) throw this.#unreachable(tool, this.#state.failure, waitMs);
      // The attempt itself is made by the state's own timer, whoever waits for it.
      await sleep(clock, Math.max(waitMs, 0), signal);
    }
    const state = this.#state;
    if (state.kind === "ready") return state.session;
    if (state.kind === "closed") throw this.#stopping(tool);
    try {
      const started = this.#start(true);
      if (this.#state.kind === "starting") this.#state.turn.hurry();
      return await raceSignal(started, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (this.#ended.signal.aborted) throw this.#stopping(tool);
      throw this.#unreachable(tool, failureOf(error, undefined), 0);
    }
  }

  /** A call begins. Disposing says that it is over. */
  enter(): Disposable {
    this.#calls += 1;
    this.#idle?.[Symbol.dispose]();
    this.#idle = undefined;
    return {
      [Symbol.dispose]: () => {
        this.#calls -= 1;
        this.#restLater();
      },
    };
  }

  /** The server does not know this session any more: it is left, and another one begun. */
  renew(session: Session): void {
    const state = this.#state;
    if (state.kind !== "ready" || state.session !== session) return;
    // Other calls may run in it still.
    this.#track(session.retire());
    this.#state = { kind: "idle" };
    if (this.#options.deps.clock.monotonicMs() - state.sinceMs >= REFRESH_PAUSE_MS) void this.#start(true);
    else this.#wait(new StartFailure("the server forgets its sessions at once", "Look at the server's own log."));
  }

  /** What the session goes by has failed. */
  failed(session: Session, failure: StartFailure): void {
    const state = this.#state;
    if (state.kind !== "ready" || state.session !== session) return;
    this.#leave(session);
    if (this.#options.deps.clock.monotonicMs() - state.sinceMs >= SOUND_MS) this.#failures = 0;
    this.#wait(failure);
    this.#options.deps.changed();
  }

  /** The server's tools are others now: the list is read again soon. */
  toolsChanged(): void {
    if (this.#reading) this.#readOnceMore = true;
    else this.#readIn(REFRESH_MS);
  }

  [Symbol.asyncDispose](): Promise<void> {
    if (this.#state.kind !== "closed") this.#close();
    return Promise.all(this.#dying).then(() => undefined);
  }

  #close(): void {
    const state = this.#state;
    this.#state = { kind: "closed" };
    this.#secrets.close();
    this.#idle?.[Symbol.dispose]();
    this.#refresh?.[Symbol.dispose]();
    if (state.kind === "waiting") state.timer[Symbol.dispose]();
    this.#ended.abort(new GatewayError("GATEWAY_STOPPING", "the server's declaration was closed"));
    if (state.kind === "ready") this.#leave(state.session);
    this.#track(this.#options.connector[Symbol.asyncDispose]());
  }

  /** The start that goes on, or one that begins now. */
  #start(quiet: boolean): Promise<Session> {
    const state = this.#state;
    if (state.kind === "starting") return state.started;
    if (state.kind === "waiting") state.timer[Symbol.dispose]();
    const turn = this.#options.starts.enter(this.#options.deps.clock);
    const started = this.#run(turn);
    // Who waits for it hears of it; nobody need.
    started.catch(() => undefined);
    this.#state = { kind: "starting", started, quiet: quiet && this.#lastFailure === undefined, turn };
    return started;
  }

  async #run(turn: StartTurn): Promise<Session> {
    const { connector, deps } = this.#options;
    const known = this.#era;
    using _turn = turn;
    try {
      await raceSignal(turn.mine, this.#ended.signal);
      const started = await connector.start(known, this.#ended.signal).catch((error: unknown) => {
        // The verdict may be of another time.
        if (known === undefined || this.#ended.signal.aborted || !isOfProtocol(error)) throw error;
        this.#era = undefined;
        return connector.start(undefined, this.#ended.signal);
      });
      return this.#started(started);
    } catch (error) {
      const failure = failureOf(error, undefined);
      if (this.#state.kind !== "closed") this.#wait(failure);
      deps.changed();
      throw failure;
    }
  }

  #started({ session, list, eraSure }: StartedServer): Session {
    const { deps, config } = this.#options;
    if (this.#state.kind === "closed") {
      this.#track(session.close());
      throw this.#stopping(config.tool.name);
    }
    this.#lastFailure = undefined;
    this.#era = eraSure ? session.era : undefined;
    this.#state = { kind: "ready", session, sinceMs: deps.clock.monotonicMs() };
    deps.logger.info("mcp-server-ready", {
      protocol: session.version,
      server: session.server,
      tools: list.tools.length,
    });
    void session.link.over.then(() => this.#gone(session));
    if (this.#options.main === undefined) this.#listed(list, session);
    this.#restLater();
    return session;
  }

  #listed(list: RawList, session: Session): void {
    this.#offered(list, session.era);
    this.#track(this.#options.memory.keep(this.#era, list.tools));
  }

  #offered(list: RawList, era: Era | undefined): void {
    const { config, deps } = this.#options;
    this.#offer = offerOf(list, era === "modern" && config.target.kind === "remote");
    deps.changed();
  }

  /** The session ended by itself. */
  #gone(session: Session): void {
    const { programs } = this.#options;
    const { link } = session;
    const how = link instanceof ProgramLink ? endInWords(link.end) : undefined;
    const errors = link instanceof ProgramLink ? link.errors : "";
    this.failed(session, programEnded(how ?? "closed the connection", errors, programs.mask));
  }

  #wait(failure: StartFailure): void {
    const { config, deps, main } = this.#options;
    this.#failures += 1;
    this.#lastFailure = failure;
    const { firstMs, maxMs, attempts } = config.restart;
    const parked = main === undefined && this.#failures >= attempts;
    const ruleMs = parked ? PARKED_MS : Math.min(firstMs * 2 ** Math.min(this.#failures - 1, 30), maxMs);
    const waitMs = ruleMs * (1 - JITTER + 2 * JITTER * Math.random());
    deps.logger.warn("mcp-server-failed", {
      reason: failure.message,
      failures: this.#failures,
      retryMs: Math.round(waitMs),
    });
    const timer = deps.clock.after(waitMs, () => {
      if (main === undefined) void this.#start(false);
      else this.#state = { kind: "idle" };
    });
    this.#state = { kind: "waiting", failure, dueMs: deps.clock.monotonicMs() + waitMs, timer };
  }

  #leave(session: Session): void {
    this.#track(session.close());
  }

  #track(work: Promise<void>): void {
    this.#dying.add(work);
    void work.finally(() => this.#dying.delete(work));
  }

  #restLater(): void {
    const { config, deps } = this.#options;
    if (config.idleTimeoutMs === undefined || this.#calls > 0 || this.#state.kind !== "ready") return;
    this.#idle?.[Symbol.dispose]();
    this.#idle = deps.clock.after(config.idleTimeoutMs, () => {
      const state = this.#state;
      if (this.#calls > 0 || state.kind !== "ready") return;
      this.#state = { kind: "idle" };
      this.#failures = 0;
      this.#leave(state.session);
      deps.logger.info("mcp-server-idle-stop");
    });
  }

  #readIn(waitMs: number): void {
    if (this.#state.kind === "closed") return;
    this.#refresh ??= this.#options.deps.clock.after(waitMs, () => {
      this.#refresh = undefined;
      void this.#readAgain();
    });
  }

  async #readAgain(): Promise<void> {
    const { session } = this;
    const { deps } = this.#options;
    this.#reading = true;
    this.#readOnceMore = false;
    try {
      if (session === undefined) return;
      const list = await session.list(this.#ended.signal);
      if (this.session !== session) return;
      this.#listed(list, session);
    } catch (error) {
      if (this.session !== session || this.#offer === undefined) return;
      const message = `the list of tools could not be read again (${failureOf(error, undefined).message}); the one before it stays`;
      deps.logger.warn("mcp-list-failed", { reason: message });
      const notes = this.#offer.notes.filter((note) => note.tool !== undefined);
      this.#offer = { tools: this.#offer.tools, notes: [...notes, { tool: undefined, message }] };
      deps.changed();
    } finally {
      this.#reading = false;
      if (this.#readOnceMore) this.#readIn(REFRESH_PAUSE_MS);
    }
  }

  /** A secret or login that is missing. */
  #missing(): Availability | undefined {
    return this.#secrets.unavailable() ?? this.#options.connector.login?.unavailable();
  }

  /** What was missing may be there now. */
  #isMended({ cause }: StartFailure): boolean {
    return cause instanceof GatewayError && cause.reason === "SECRET_MISSING" && this.#missing() === undefined;
  }

  #unreachable(tool: string, failure: StartFailure, waitMs: number): GatewayError {
    return notStarted({ server: this.#options.config.tool.name, tool, failure, waitMs });
  }

  #stopping(tool: string): GatewayError {
    const name = tool === "" ? this.#options.config.tool.name : tool;
    return new GatewayError("GATEWAY_STOPPING", `${name}: the server was closed while it was called`);
  }
}
