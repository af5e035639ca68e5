import type { AdapterDeps, Upstream } from "../core/adapter.ts";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import type { SecretSource } from "../core/secrets.ts";
import type { ResultRules } from "../core/shaper.ts";
import { linkSignals, raceSignal } from "../core/signal.ts";
import type { Declaration } from "./declaration.ts";
import type { RemoteDeclaration } from "./expand-offer.ts";
import { type ComposeTool, OpenTool, type OpenToolDeps, type StandingStep } from "./open-tool.ts";
import { ScreenedUpstream } from "./screened-upstream.ts";

/** Longest an adapter may take to open an upstream; it must not wait for a remote side, so this is never near. */
const OPEN_LIMIT_MS = 10_000;

/** What upstreams are opened with. */
export interface UpstreamsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly secrets: SecretSource;
  readonly compose: ComposeTool;
  readonly steps?: readonly StandingStep[];
  /** Makes a text of an upstream's fit to be shown. Default: it is as it came. */
  readonly screen?: (rules: ResultRules) => (text: string) => string;
}

/** All upstreams that are open, those of replaced versions included. */
export class Upstreams implements AsyncDisposable {
  readonly #deps: UpstreamsDeps;
  readonly #open = new Set<OpenTool>();
  readonly #openDeps: OpenToolDeps;
  readonly #stopped = new AbortController();

  constructor(deps: UpstreamsDeps) {
    this.#deps = deps;
    const { compose, logger, steps = [] } = deps;
    this.#openDeps = { compose, logger, steps, onClosed: (gone) => void this.#open.delete(gone) };
  }

  /**
   * Opens the upstream of a declaration.
   *
   * @param changed is called when its availability may be another.
   * @throws GatewayError whatever goes wrong.
   */
  async open(declaration: Declaration, changed: (tool: OpenTool) => void): Promise<OpenTool> {
    const { clock, logger } = this.#deps;
    const { adapter, config, tool } = declaration;
    const link = new RegistryLink(tool.name, this.#deps, changed);
    this.#stopped.signal.throwIfAborted();
    using limit = linkSignals(this.#stopped.signal);
    using _timer = clock.after(OPEN_LIMIT_MS, () => {
      const text = `the upstream of "${tool.name}" did not open within ${OPEN_LIMIT_MS / 1000} s`;
      limit.abort(new GatewayError("UPSTREAM_TIMEOUT", text, { metadata: { tool: tool.name, limit: "connect" } }));
    });
    const opening = Promise.resolve().then(() => adapter.open(config, link, limit.signal));
    try {
      const upstream = await raceSignal(opening, limit.signal);
      limit.signal.throwIfAborted();
      const { screen } = this.#deps;
      const screened = screen === undefined ? upstream : new ScreenedUpstream(upstream, screen(declaration.rules));
      const opened = new OpenTool(declaration, screened, this.#openDeps);
      this.#open.add(opened);
      link.opened = opened;
      return opened;
    } catch (error) {
      disposeLate(opening);
      if (!this.#stopped.signal.aborted) logger.error("upstream-open-failed", { tool: tool.name, error });
      throw GatewayError.from(error);
    }
  }

  /** Makes the tool of a server that is open: its calls go through the server's upstream, which it keeps open. */
  openMember(declaration: RemoteDeclaration, server: OpenTool): OpenTool {
    const opened = new OpenTool(declaration, remoteUpstream(declaration, server), this.#openDeps);
    this.#open.add(opened);
    return opened;
  }

  /** Disposes all of them, those with calls in flight too; no more can be opened. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort(new GatewayError("GATEWAY_STOPPING", "the gateway is shutting down"));
    await Promise.all([...this.#open].map((tool) => tool.close()));
  }
}

/** A server's upstream as one of its tools sees it. Disposing it leaves the server to the others. */
function remoteUpstream({ remote, tool }: RemoteDeclaration, server: OpenTool): Upstream {
  const { upstream } = server;
  const servedAs = { name: tool.name, readOnly: tool.hints.readOnly === true };
  const hold = server.hold();
  return {
    availability: () => upstream.availability(),
    invoke: (call, context) => {
      const args = remote.toServer(call.arguments);
      return upstream.invoke({ ...call, tool: remote.name, arguments: args, servedAs }, context);
    },
    probe: (signal) => upstream.probe(signal),
    async [Symbol.asyncDispose]() {
      hold[Symbol.dispose]();
    },
  };
}

/**
 * What one adapter has of the registry. It lives as long as the tool: a function made where upstreams are opened would
 * keep all that is needed there, an abort signal too, and few of thousands of tools ever log a line.
 */
class RegistryLink implements AdapterDeps {
  /** Once there is a tool to tell of. */
  opened: OpenTool | undefined;
  readonly #tool: string;
  readonly #deps: UpstreamsDeps;
  readonly #changed: (tool: OpenTool) => void;
  #logger: Logger | undefined;

  constructor(tool: string, deps: UpstreamsDeps, changed: (tool: OpenTool) => void) {
    this.#tool = tool;
    this.#deps = deps;
    this.#changed = changed;
  }

  get clock(): Clock {
    return this.#deps.clock;
  }

  get secrets(): SecretSource {
    return this.#deps.secrets;
  }

  get logger(): Logger {
    this.#logger ??= this.#deps.logger.child({ tool: this.#tool });
    return this.#logger;
  }

  /** Passes on that something changed. */
  changed(): void {
    if (this.opened !== undefined) this.#changed(this.opened);
  }
}

/** An upstream that comes after nobody waits for it any more must not stay open. */
function disposeLate(opening: Promise<Upstream>): void {
  opening.then((upstream) => upstream[Symbol.asyncDispose]()).catch(() => undefined);
}
