import type { AdapterDeps, Offer, ProbeReport, Upstream } from "../../core/adapter.ts";
import type { CallContext, ToolCall, UpstreamEvent } from "../../core/call.ts";
import { GatewayError } from "../../core/errors.ts";
import { raceSignal } from "../../core/signal.ts";
import type { TextCache } from "../../core/store.ts";
import type { Availability } from "../../core/tool.ts";
import { cancellable } from "../shared/cancellable.ts";
import { findProgramProblem } from "../shared/launcher/examine.ts";
import type { Launcher } from "../shared/launcher/launcher.ts";
import type { ChannelNetwork } from "../shared/network/http-channel.ts";
import { type CallSurroundings, McpCall } from "./mcp-call.ts";
import { type McpConfig, namedProgram, secretRefsOf } from "./mcp-config.ts";
import { Noise } from "./noise.ts";
import { ParkedCalls } from "./parked-calls.ts";
import { ProgramLink } from "./program-link.ts";
import { secretMask } from "./program-source.ts";
import { ServerConnector } from "./server-connector.ts";
import { ServerLife } from "./server-life.ts";
import { ServerMemory } from "./server-memory.ts";
import { lastWords } from "./start-failure.ts";
import type { StartQueue } from "./start-queue.ts";

/** What all servers share. */
export interface SharedByServers {
  readonly launcher: Launcher;
  readonly network: ChannelNetwork;
  readonly cache: TextCache;
  /** The lines of servers that start, by what they are. */
  readonly starts: { readonly program: StartQueue; readonly remote: StartQueue };
}

/** An MCP server, whose tools are called by it. */
export class McpUpstream implements Upstream {
  readonly #config: McpConfig;
  readonly #life: ServerLife;
  readonly #noise = new Noise();
  readonly #around: CallSurroundings;
  readonly #launcher: Launcher | undefined;
  #closing: Promise<void> | undefined;

  constructor(config: McpConfig, deps: AdapterDeps, { launcher, network, cache, starts }: SharedByServers) {
    this.#config = config;
    this.#launcher = config.target.kind === "program" ? launcher : undefined;
    const mask = secretMask(secretRefsOf(config), deps.secrets);
    const programs = { launcher, noise: this.#noise, mask };
    const connector = new ServerConnector({
      config,
      deps,
      programs,
      network,
      onToolsChanged: () => this.#life.toolsChanged(),
    });
    const memory = new ServerMemory(cache, config);
    this.#life = new ServerLife({ config, deps, connector, programs, memory, starts: starts[config.target.kind] });
    this.#around = { config, deps, life: this.#life, mask, running: new Set(), parked: new ParkedCalls(deps.clock) };
    this.#launcher?.retain();
    void this.#life.begin();
  }

  availability(): Availability {
    return this.#life.availability();
  }

  offer(): Offer | undefined {
    return this.#life.offer;
  }

  readonly invoke = (call: ToolCall, context: CallContext): AsyncIterable<UpstreamEvent> => {
    const { continuation } = call;
    const parked =
      continuation === undefined || call.validateOnly ? undefined : this.#around.parked.take(continuation.state);
    const run = parked ?? new McpCall(this.#around, call, context);
    if (this.#closing !== undefined) run.stop(this.#stopping());
    const events =
      parked === undefined || continuation === undefined ? run.events() : parked.resume(continuation, context);
    return cancellable(events, () => run.stop(this.#cancelled()));
  };

  async probe(signal: AbortSignal): Promise<ProbeReport> {
    signal.throwIfAborted();
    const { target } = this.#config;
    if (target.kind === "program" && this.#life.session === undefined) {
      const problem = await raceSignal(findProgramProblem(namedProgram(target)), signal);
      if (problem !== undefined)
        return { ok: false, message: `the server cannot be started: ${problem.message}`, mend: problem.mend };
    }
    const error = await this.#life.use("", signal).then(
      () => undefined,
      (cause: unknown) => cause,
    );
    signal.throwIfAborted();
    return error === undefined ? this.#sound() : this.#broken(error);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #sound(): ProbeReport {
    const { session, offer } = this.#life;
    const tools = offer?.tools.length ?? 0;
    const server = session?.server === undefined || session.server === "" ? "the server" : session.server;
    const { count, lines } = this.#noise;
    const noise =
      count === 0
        ? ""
        : `; ${count} lines on its standard output were no messages, the last one: ${lines.at(-1) ?? ""}`;
    const message = `${server} speaks MCP ${session?.version ?? "?"} and has ${tools} tools${noise}`;
    return { ok: true, message: this.#around.mask(message), mend: "" };
  }

  #broken(error: unknown): ProbeReport {
    const failure = this.#life.lastFailure;
    const link = this.#life.session?.link;
    const errors = link instanceof ProgramLink ? lastWords(link.errors, this.#around.mask) : "";
    const message = failure?.message ?? GatewayError.from(error).message;
    const mend =
      failure === undefined || failure.mend === "" ? "Look at the server, and at the keys of `mcp`." : failure.mend;
    return { ok: false, message: `${message}${errors}`, mend };
  }

  async #close(): Promise<void> {
    for (const call of this.#around.running) call.stop(this.#stopping());
    this.#around.parked.abandon("the server was closed");
    await this.#life[Symbol.asyncDispose]();
    await this.#launcher?.release();
  }

  #cancelled(): GatewayError {
    return new GatewayError("CALL_CANCELLED", `${this.#config.tool.name}: the call was cancelled`);
  }

  #stopping(): GatewayError {
    return new GatewayError(
      "GATEWAY_STOPPING",
      `${this.#config.tool.name}: the server was closed while a tool of it was called`,
    );
  }
}
