import type { AdapterDeps, Offer, ProbeReport, Upstream } from "../../core/adapter.ts";
import type { CallContext, ToolCall, UpstreamEvent } from "../../core/call.ts";
import { GatewayError } from "../../core/errors.ts";
import type { LoginStore } from "../../core/logins.ts";
import { raceSignal } from "../../core/signal.ts";
import type { TextCache } from "../../core/store.ts";
import type { Availability } from "../../core/tool.ts";
import { cancellable } from "../shared/cancellable.ts";
import { findProgramProblem } from "../shared/launcher/examine.ts";
import type { Launcher } from "../shared/launcher/launcher.ts";
import type { ChannelNetwork } from "../shared/network/http-channel.ts";
import { type Beside, CredentialLives } from "./credential-lives.ts";
import { type CallSurroundings, McpCall } from "./mcp-call.ts";
import { type McpConfig, namedProgram, secretRefsOf } from "./mcp-config.ts";
import { Noise } from "./noise.ts";
import { ParkedCalls } from "./parked-calls.ts";
import { ProgramLink } from "./program-link.ts";
import { type ProgramSource, secretMask } from "./program-source.ts";
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
  readonly logins: LoginStore;
  /** The lines of servers that start, by what they are. */
  readonly starts: { readonly program: StartQueue; readonly remote: StartQueue };
}

/** An MCP server, whose tools are called by it. */
export class McpUpstream implements Upstream {
  readonly #config: McpConfig;
  readonly #noise = new Noise();
  readonly #lives: CredentialLives;
  readonly #launcher: Launcher | undefined;
  #closing: Promise<void> | undefined;

  constructor(config: McpConfig, deps: AdapterDeps, { launcher, network, cache, logins, starts }: SharedByServers) {
    this.#config = config;
    this.#launcher = config.target.kind === "program" ? launcher : undefined;
    const mask = secretMask(secretRefsOf(config), deps.secrets);
    const programs = { launcher, noise: this.#noise, mask };
    const memory = new ServerMemory(cache, config);
    const shared = { network, logins, programs, memory, starts: starts[config.target.kind] };
    this.#lives = new CredentialLives(config, (own, beside) => openLife(own, deps, shared, beside));
    this.#launcher?.retain();
    void this.#life.begin();
  }

  get #life(): ServerLife {
    return this.#lives.main.life;
  }

  availability(): Availability {
    return this.#life.availability();
  }

  offer(): Offer | undefined {
    return this.#life.offer;
  }

  readonly invoke = (call: ToolCall, context: CallContext): AsyncIterable<UpstreamEvent> => {
    const { continuation } = call;
    const around = this.#closing === undefined ? this.#lives.of(context.principal.roles) : this.#lives.main;
    const parked = continuation === undefined || call.validateOnly ? undefined : around.parked.take(continuation.state);
    const run = parked ?? new McpCall(around, call, context);
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
    return { ok: true, message: this.#lives.main.mask(message), mend: "" };
  }

  #broken(error: unknown): ProbeReport {
    const failure = this.#life.lastFailure;
    const link = this.#life.session?.link;
    const errors = link instanceof ProgramLink ? lastWords(link.errors, this.#lives.main.mask) : "";
    const message = failure?.message ?? GatewayError.from(error).message;
    const mend =
      failure === undefined || failure.mend === "" ? "Look at the server, and at the keys of `mcp`." : failure.mend;
    return { ok: false, message: `${message}${errors}`, mend };
  }

  async #close(): Promise<void> {
    const { all } = this.#lives;
    for (const { running, parked } of all) {
      for (const call of running) call.stop(this.#stopping());
      parked.abandon("the server was closed");
    }
    await Promise.all(all.map(({ life }) => life[Symbol.asyncDispose]()));
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

/** What its lives have in common. */
interface SharedByLives extends Pick<SharedByServers, "network" | "logins"> {
  readonly programs: ProgramSource;
  readonly memory: ServerMemory;
  readonly starts: StartQueue;
}

/** What calls with the credential of `config` take. Of a life beside the main one nothing is told to the registry. */
function openLife(
  config: McpConfig,
  deps: AdapterDeps,
  { network, logins, programs, memory, starts }: SharedByLives,
  beside: Beside | undefined,
): CallSurroundings {
  const own = beside === undefined ? deps : quietly(deps, beside);
  const onToolsChanged = beside === undefined ? () => life.toolsChanged() : undefined;
  const connector = new ServerConnector({ config, deps: own, programs, network, logins, onToolsChanged });
  const life = new ServerLife({ config, deps: own, connector, programs, memory, starts, main: beside?.main });
  return { config, deps, life, mask: programs.mask, running: new Set(), parked: new ParkedCalls(deps.clock) };
}

function quietly({ clock, logger, secrets }: AdapterDeps, { secretRef }: Beside): AdapterDeps {
  return { clock, logger: logger.child({ secretRef }), secrets, changed: () => undefined };
}
