import { Client, type ClientOptions, type McpSubscription, type PriorDiscovery } from "@modelcontextprotocol/client";
import type { Clock } from "../../core/clock.ts";
import { sleep } from "../../core/clock.ts";
import type { JsonObject } from "../../core/json.ts";
import { VERSION } from "../../core/version.ts";
import { ASKING_CAPABILITIES } from "./input.ts";
import type { RequestWatch, RpcAnswer, RpcError, ServerLink } from "./server-link.ts";
import { allPages, type RawList } from "./tool-list.ts";

/** Era of the protocol: `modern` has no sessions. */
export type Era = "legacy" | "modern";

/** The SDK has limits of time of its own, which are not to come before ours. */
const NEVER_MS = 2 ** 31 - 1;

/** Waits before a subscription that ended is opened again. */
const SUBSCRIBE_MS = { first: 1_000, most: 60_000 } as const;

/** What comes is read by us. */
const AS_IT_COMES = {
  "~standard": { version: 1, vendor: "toolgate", validate: (value: unknown) => ({ value }) },
} as const;

/** How a session is begun. */
export interface SessionOptions {
  readonly link: ServerLink;
  readonly clock: Clock;
  /** Which era: as it is known, or `auto` to ask over this very link. */
  readonly era: Era | "auto";
  /** Revisions to offer, best first; default: all that are known. */
  readonly versions?: readonly string[];
  /** What the gateway can do for the server; default: ask its callers. */
  readonly capabilities?: ClientOptions["capabilities"];
  readonly timeoutMs: number;
  /** The server's tools are others now. Undefined: nobody wants to know. */
  readonly onToolsChanged: (() => void) | undefined;
}

/** The server answered with an error of the protocol. */
export class RpcFailure extends Error {
  readonly error: RpcError;

  constructor(method: string, error: RpcError) {
    super(`the server answered ${method} with error ${error.code}`);
    this.name = "RpcFailure";
    this.error = error;
  }
}

/** A conversation with a server: begun, and ready for requests. */
export class Session {
  readonly link: ServerLink;
  readonly era: Era;
  /** The revision that is spoken. */
  readonly version: string;
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #closed = new AbortController();
  #requests = 0;
  #running = 0;
  readonly #drained = Promise.withResolvers<void>();
  #retired = false;

  private constructor(client: Client, { link, clock }: SessionOptions) {
    this.#client = client;
    this.#clock = clock;
    this.link = link;
    this.era = client.getProtocolEra() ?? "legacy";
    this.version = client.getNegotiatedProtocolVersion() ?? "unknown";
  }

  /** Begins a session over a link that was not started. Fails as the SDK does. */
  static async begin(options: SessionOptions): Promise<Session> {
    const { link, era, versions, capabilities = ASKING_CAPABILITIES, timeoutMs, onToolsChanged } = options;
    const client = new Client(
      { name: "toolgate", version: VERSION },
      {
        capabilities,
        ...(versions === undefined ? {} : { supportedProtocolVersions: [...versions] }),
        versionNegotiation: { mode: era === "modern" ? { pin: "2026-07-28" } : era },
      },
    );
    client.setNotificationHandler("notifications/tools/list_changed", () => onToolsChanged?.());
    const prior: PriorDiscovery | undefined = era === "legacy" ? { kind: "legacy" } : undefined;
    await client.connect(link, { timeout: timeoutMs, ...(prior === undefined ? {} : { prior }) });
    const session = new Session(client, options);
    const tells = session.era === "modern" && client.getServerCapabilities()?.tools?.listChanged === true;
    if (tells && onToolsChanged !== undefined) void session.#subscribe(onToolsChanged);
    return session;
  }

  /** Name and version of the server, by its own words. */
  get server(): string {
    const about = this.#client.getServerVersion();
    return about === undefined ? "" : `${about.name} ${about.version}`;
  }

  /** The server's list of tools, all pages of it. @throws RpcFailure; as the link does. */
  async list(signal: AbortSignal): Promise<RawList> {
    if (this.#client.getServerCapabilities()?.tools === undefined) {
      return { tools: [], notes: ["the server says that it has no tools"] };
    }
    return allPages(async (cursor) => {
      const answer = await this.#ask("tools/list", cursor === undefined ? {} : { cursor }, signal);
      if ("error" in answer) throw new RpcFailure("tools/list", answer.error);
      return answer.result;
    });
  }

  /** A name for one more request, by which the server tells of its progress. */
  nextToken(callId: string): string {
    this.#requests += 1;
    return `${callId}.${this.#requests}`;
  }

  /**
   * Sends a request and follows it. Resolves when it is answered, which the watch has been told before. Aborting the
   * signal cancels it by the protocol; its reason is told to the server.
   */
  async request(
    request: {
      readonly method: string;
      readonly params: JsonObject;
      readonly headers?: Readonly<Record<string, string>>;
    },
    watch: RequestWatch,
    signal: AbortSignal,
  ): Promise<void> {
    const headers = { ...request.headers };
    this.link.watch(headers, watch);
    this.#running += 1;
    try {
      await this.#client.request({ method: request.method, params: { ...request.params } }, AS_IT_COMES, {
        headers,
        signal,
        timeout: NEVER_MS,
      });
    } finally {
      this.link.forget(watch);
      this.#running -= 1;
      this.#lookWhetherDrained();
    }
  }

  /** Ends it once nothing runs in it any more. Nobody may begin anything from now on. Never rejects. */
  async retire(): Promise<void> {
    this.#retired = true;
    this.#lookWhetherDrained();
    await this.#drained.promise;
    await this.close();
  }

  /** Ends it. Never rejects. */
  async close(): Promise<void> {
    this.#closed.abort(new Error("the session was closed"));
    await this.link.close().catch(() => undefined);
  }

  #lookWhetherDrained(): void {
    if (this.#retired && this.#running === 0) this.#drained.resolve();
  }

  async #ask(method: string, params: JsonObject, signal: AbortSignal): Promise<RpcAnswer> {
    let answer: RpcAnswer | undefined;
    const watch: RequestWatch = {
      sent: () => undefined,
      progress: () => undefined,
      log: () => undefined,
      lost: () => undefined,
      answered: (came) => {
        answer = came;
      },
    };
    await this.request({ method, params }, watch, signal);
    if (answer === undefined) throw new Error(`the connection ended before the answer to ${method}`);
    return answer;
  }

  /** Keeps the stream open by which a server of the stateless era tells that its tools changed. */
  async #subscribe(onToolsChanged: () => void): Promise<void> {
    const { signal } = this.#closed;
    for (let waitMs: number = SUBSCRIBE_MS.first; !signal.aborted; waitMs = Math.min(waitMs * 2, SUBSCRIBE_MS.most)) {
      const open = await this.#client.listen({ toolsListChanged: true }).catch(() => undefined);
      const subscription: McpSubscription | undefined = open;
      if (subscription !== undefined) {
        const startedMs = this.#clock.monotonicMs();
        await subscription.closed;
        if (this.#clock.monotonicMs() - startedMs > SUBSCRIBE_MS.most) waitMs = SUBSCRIBE_MS.first;
      }
      const slept = await sleep(this.#clock, waitMs, signal).then(
        () => true,
        () => false,
      );
      // What happened in between was not told.
      if (slept && subscription !== undefined) onToolsChanged();
    }
  }
}
