import {
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  SUPPORTED_PROTOCOL_VERSIONS,
} from "@modelcontextprotocol/client";
import type { AdapterDeps } from "../../core/adapter.ts";
import { GatewayError } from "../../core/errors.ts";
import type { LoginStore } from "../../core/logins.ts";
import { linkSignals, raceSignal } from "../../core/signal.ts";
import type { ChannelNetwork } from "../shared/network/http-channel.ts";
import type { LoginTokens } from "./login-tokens.ts";
import { type McpConfig, type ProgramTarget, type RemoteTarget, secretRefsOf } from "./mcp-config.ts";
import { ProgramLink, StartRefused } from "./program-link.ts";
import { type ProgramSource, serverProgram } from "./program-source.ts";
import { RemoteAccess } from "./remote-access.ts";
import type { ServerLink } from "./server-link.ts";
import { type Era, RpcFailure, Session } from "./session.ts";
import { SseLink } from "./sse-link.ts";
import { endInWords, failureOf, programEnded, StartFailure } from "./start-failure.ts";
import { StreamableLink } from "./streamable-link.ts";
import type { RawList } from "./tool-list.ts";

/** Longest time for a program to say whether it speaks the stateless era: it costs the start that time. */
const PROBE_MS = 3_000;

/** A list of tools is part of a start, and may be larger than results are. */
const MIN_MESSAGE_BYTES = 16 * 1024 * 1024;

const NO_TOOLS: RawList = { tools: [], notes: [] };

/** The server does not speak the revision of a request. Source: MCP 2026-07-28. */
const UNSUPPORTED_VERSION = -32_022;

/** What connecting to one server takes. */
export interface ConnectorOptions {
  readonly config: McpConfig;
  readonly deps: AdapterDeps;
  readonly programs: ProgramSource;
  readonly network: ChannelNetwork;
  readonly logins: LoginStore;
  /** The server's tools are others now. Undefined: they are not wanted, and not listed. */
  readonly onToolsChanged: (() => void) | undefined;
}

/** A server that was started and has listed its tools. */
export interface StartedServer {
  readonly session: Session;
  readonly list: RawList;
  /** Whether its era was found out, and not taken for granted since it did not say in time. */
  readonly eraSure: boolean;
}

type FoundEra = { readonly era: Era } & Pick<StartedServer, "eraSure">;

/** Starts or reaches one server, in the era that it speaks. */
export class ServerConnector implements AsyncDisposable {
  readonly #options: ConnectorOptions;
  readonly #access: RemoteAccess | undefined;
  readonly #links = new Set<ServerLink>();

  constructor(options: ConnectorOptions) {
    this.#options = options;
    const { config, deps, network, logins } = options;
    const { target, settings } = config;
    if (target.kind !== "remote") return;
    this.#access = new RemoteAccess({
      server: config.tool.name,
      target,
      network,
      secrets: deps.secrets,
      clock: deps.clock,
      connectMs: settings.timeouts.connectMs,
      maxConnections: settings.pool.maxConnections,
      login: { logins, logger: deps.logger, changed: () => deps.changed() },
    });
  }

  /** The login, of a server that somebody logs in at. */
  get login(): LoginTokens | undefined {
    return this.#access?.login;
  }

  /**
   * Begins a session and reads the tools, within `start_timeout`. `known`: the era by an earlier verdict.
   *
   * @throws StartFailure; the signal's reason.
   */
  async start(known: Era | undefined, signal: AbortSignal): Promise<StartedServer> {
    const { config, deps } = this.#options;
    using link = linkSignals(signal);
    const seconds = config.startTimeoutMs / 1_000;
    using _limit = deps.clock.after(config.startTimeoutMs, () => {
      const text = `no initialize within ${seconds} s (start_timeout)`;
      link.abort(new StartFailure(text, "Look at the server, or raise `mcp.start_timeout`."));
    });
    const { target, protocol } = config;
    const era = protocol === "auto" ? (known ?? "auto") : protocol === "legacy" ? "legacy" : "modern";
    const starting =
      target.kind === "program" ? this.#startProgram(target, era, link.signal) : this.#reach(target, era, link.signal);
    try {
      return await raceSignal(starting, link.signal);
    } catch (error) {
      starting.then(({ session }) => session.close()).catch(() => undefined);
      if (link.signal.aborted) await this.#dropAll();
      if (signal.aborted) throw signal.reason;
      throw failureOf(error, undefined);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dropAll();
    await this.#access?.[Symbol.asyncDispose]();
  }

  async #startProgram(target: ProgramTarget, era: Era | "auto", signal: AbortSignal): Promise<StartedServer> {
    const { config, deps } = this.#options;
    await deps.secrets.fresh(secretRefsOf(config), signal);
    const found = era === "auto" ? await this.#probeProgram(target, signal) : { era, eraSure: true };
    const link = this.#programLink(target);
    const started = await this.#begin(link, found.era, signal).catch((error: unknown) => {
      throw this.#programFailure(error, link);
    });
    return { ...started, eraSure: found.eraSure };
  }

  /**
   * Whether the program speaks the stateless era, asked of a process of its own: some servers end at a request before
   * `initialize`, and one that answered it never takes an `initialize` any more.
   */
  async #probeProgram(target: ProgramTarget, signal: AbortSignal): Promise<FoundEra> {
    const link = this.#programLink(target);
    const timeoutMs = Math.min(PROBE_MS, this.#options.config.startTimeoutMs / 2);
    const { clock } = this.#options.deps;
    let late = false;
    using _limit = clock.after(timeoutMs, () => {
      late = true;
      void link.kill();
    });
    try {
      await raceSignal(this.#session(link, "modern", timeoutMs), signal);
      return { era: "modern", eraSure: true };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof StartRefused || error instanceof GatewayError) throw this.#programFailure(error, link);
      // One that is slow, on a machine that is busy, may speak it all the same.
      return { era: "legacy", eraSure: !late && !isTimeout(error) };
    } finally {
      this.#links.delete(link);
      void link.kill();
    }
  }

  #programLink(target: ProgramTarget): ProgramLink {
    const { programs, config, deps } = this.#options;
    const link = new ProgramLink({
      launcher: programs.launcher,
      program: serverProgram(config.tool.name, target, deps.secrets),
      clock: deps.clock,
      maxBytes: this.#maxBytes(),
      noise: programs.noise,
    });
    this.#links.add(link);
    void link.over.then(() => this.#links.delete(link));
    return link;
  }

  #programFailure(error: unknown, link: ProgramLink): unknown {
    if (error instanceof GatewayError || error instanceof StartFailure) return error;
    // One that was understood and refused is closed from here, and ends then.
    const refused = error instanceof RpcFailure || error instanceof ProtocolError;
    const how = refused ? undefined : endInWords(link.end);
    if (how === undefined) return failureOf(error, link);
    return programEnded(how, link.errors, this.#options.programs.mask, error);
  }

  async #reach(target: RemoteTarget, era: Era | "auto", signal: AbortSignal): Promise<StartedServer> {
    if (target.transport === "sse") return this.#begin(this.#sseLink(), "legacy", signal);
    try {
      return await this.#reachStreamable(era, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (target.transport !== "auto" || era === "modern" || !isOlderServer(error)) throw error;
      return this.#begin(this.#sseLink(), "legacy", signal).catch(() => {
        throw error;
      });
    }
  }

  async #reachStreamable(era: Era | "auto", signal: AbortSignal): Promise<StartedServer> {
    try {
      return await this.#begin(this.#streamableLink(), era, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (era !== "auto" || !speaksLegacyPerhaps(error)) throw error;
      return this.#begin(this.#streamableLink(), "legacy", signal);
    }
  }

  async #begin(link: ServerLink, era: Era | "auto", signal: AbortSignal): Promise<StartedServer> {
    try {
      return await this.#begun(link, era, signal);
    } catch (error) {
      const gaveSession = link instanceof StreamableLink && link.session !== undefined;
      // It speaks streamable HTTP then, and has forgotten the session at once.
      if (gaveSession && isOlderServer(error)) throw failureOf(error, link);
      throw error;
    }
  }

  async #begun(link: ServerLink, era: Era | "auto", signal: AbortSignal): Promise<StartedServer> {
    const session = await this.#session(link, era, this.#options.config.startTimeoutMs).catch(
      async (error: unknown) => {
        const version = link instanceof StreamableLink ? offeredVersion(error) : undefined;
        if (version === undefined) throw error;
        return this.#session(this.#streamableLink(), "legacy", this.#options.config.startTimeoutMs, [version]);
      },
    );
    try {
      const wanted = this.#options.onToolsChanged !== undefined;
      return { session, list: wanted ? await session.list(signal) : NO_TOOLS, eraSure: true };
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  #session(link: ServerLink, era: Era | "auto", timeoutMs: number, versions?: readonly string[]): Promise<Session> {
    const { deps, onToolsChanged } = this.#options;
    const begin = { link, era, clock: deps.clock, timeoutMs, onToolsChanged };
    return Session.begin(versions === undefined ? begin : { ...begin, versions });
  }

  #streamableLink(): StreamableLink {
    return this.#remember(new StreamableLink(this.#remoteOptions()));
  }

  #sseLink(): SseLink {
    return this.#remember(new SseLink(this.#remoteOptions()));
  }

  #remember<L extends ServerLink>(link: L): L {
    this.#links.add(link);
    void link.over.then(() => this.#links.delete(link));
    return link;
  }

  #remoteOptions() {
    const access = this.#access;
    if (access === undefined) throw new Error("a program is not reached over HTTP");
    return { access, clock: this.#options.deps.clock, maxBytes: this.#maxBytes() };
  }

  #maxBytes(): number {
    return Math.max(this.#options.config.settings.maxResponseBytes, MIN_MESSAGE_BYTES);
  }

  async #dropAll(): Promise<void> {
    await Promise.all([...this.#links].map((link) => link.close().catch(() => undefined)));
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;
}

/** Whether the answer may be that of a server that knows HTTP with SSE alone. Source: MCP 2025-11-25, backwards compatibility. */
function isOlderServer(error: unknown): boolean {
  return error instanceof SdkHttpError && [400, 404, 405, 406, 415].includes(error.status ?? 0);
}

/** Whether the server failed at the question, or answered it and does not speak the era after all. */
function speaksLegacyPerhaps(error: unknown): boolean {
  if (error instanceof SdkHttpError) return (error.status ?? 0) >= 500;
  const code = error instanceof RpcFailure ? error.error.code : error instanceof ProtocolError ? error.code : undefined;
  return code === UNSUPPORTED_VERSION;
}

/** A revision that the server names as it refuses the one it was offered. */
function offeredVersion(error: unknown): string | undefined {
  if (!(error instanceof SdkHttpError) || error.status !== 400) return undefined;
  const { text } = error.data;
  const named: readonly string[] = (typeof text === "string" ? text : "").match(/\b\d{4}-\d{2}-\d{2}\b/g) ?? [];
  const [newest] = SUPPORTED_PROTOCOL_VERSIONS;
  return named
    .filter((version) => version !== newest && SUPPORTED_PROTOCOL_VERSIONS.includes(version))
    .toSorted()
    .at(-1);
}
