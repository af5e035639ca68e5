import type { Upstream } from "../core/adapter.ts";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import type { SecretSource } from "../core/secrets.ts";
import { linkSignals, raceSignal } from "../core/signal.ts";
import type { Declaration } from "./declaration.ts";
import { type ComposeTool, OpenTool, type StandingStep } from "./open-tool.ts";

/** Longest an adapter may take to open an upstream; it must not wait for a remote side, so this is never near. */
const OPEN_LIMIT_MS = 10_000;

/** What upstreams are opened with. */
export interface UpstreamsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly secrets: SecretSource;
  readonly compose: ComposeTool;
  readonly steps?: readonly StandingStep[];
}

/** All upstreams that are open, those of replaced versions included. */
export class Upstreams implements AsyncDisposable {
  readonly #deps: UpstreamsDeps;
  readonly #open = new Set<OpenTool>();
  readonly #stopped = new AbortController();
  readonly #forget = (gone: OpenTool): void => void this.#open.delete(gone);

  constructor(deps: UpstreamsDeps) {
    this.#deps = deps;
  }

  /**
   * Opens the upstream of a declaration.
   *
   * @param changed is called when its availability may be another.
   * @throws GatewayError whatever goes wrong.
   */
  async open(declaration: Declaration, changed: (tool: OpenTool) => void): Promise<OpenTool> {
    const { clock, secrets, compose, steps = [] } = this.#deps;
    const { adapter, config, tool } = declaration;
    const logger = this.#deps.logger.child({ tool: tool.name });
    const teller = new Teller(changed);
    const adapterDeps = { clock, secrets, logger, changed: teller.changed };
    this.#stopped.signal.throwIfAborted();
    using link = linkSignals(this.#stopped.signal);
    using _limit = clock.after(OPEN_LIMIT_MS, () => {
      const text = `the upstream of "${tool.name}" did not open within ${OPEN_LIMIT_MS / 1000} s`;
      link.abort(new GatewayError("UPSTREAM_TIMEOUT", text, { metadata: { tool: tool.name, limit: "connect" } }));
    });
    const opening = Promise.resolve().then(() => adapter.open(config, adapterDeps, link.signal));
    try {
      const upstream = await raceSignal(opening, link.signal);
      link.signal.throwIfAborted();
      const opened = new OpenTool(declaration, upstream, { compose, logger, steps, onClosed: this.#forget });
      this.#open.add(opened);
      teller.opened = opened;
      return opened;
    } catch (error) {
      disposeLate(opening);
      if (!this.#stopped.signal.aborted) logger.error("upstream-open-failed", { error });
      throw GatewayError.from(error);
    }
  }

  /** Disposes all of them, those with calls in flight too; no more can be opened. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort(new GatewayError("GATEWAY_STOPPING", "the gateway is shutting down"));
    await Promise.all([...this.#open].map((tool) => tool.close()));
  }
}

/**
 * Passes on that something changed, once there is a tool to tell of. A function made where upstreams are opened would
 * keep all that is needed there, an abort signal too, for as long as the tool lives.
 */
class Teller {
  opened: OpenTool | undefined;
  readonly #changed: (tool: OpenTool) => void;

  constructor(changed: (tool: OpenTool) => void) {
    this.#changed = changed;
  }

  readonly changed = (): void => {
    if (this.opened !== undefined) this.#changed(this.opened);
  };
}

/** An upstream that comes after nobody waits for it any more must not stay open. */
function disposeLate(opening: Promise<Upstream>): void {
  opening.then((upstream) => upstream[Symbol.asyncDispose]()).catch(() => undefined);
}
