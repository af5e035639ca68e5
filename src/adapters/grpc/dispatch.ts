import type { Clock } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import type { SecretSource } from "../../core/secrets.ts";
import { linkSignals } from "../../core/signal.ts";
import { endedCall } from "../shared/ended-call.ts";
import { brokenConnection, spentLimit } from "../shared/lost-call.ts";
import { type Channel, ChannelFull } from "./channel.ts";
import type { Connection } from "./connection.ts";
import { Exchange } from "./exchange.ts";
import type { GrpcConfig } from "./grpc-config.ts";
import { type CallFacts, metadataOf, requestHeaders } from "./request-headers.ts";
import type { GrpcStatus } from "./status.ts";

/** How often a request is sent again that surely nobody looked at. */
const MAX_SENT_AGAIN = 5;

/** What sending requests takes. */
export interface DispatchEnvironment {
  readonly config: GrpcConfig;
  readonly channel: Channel;
  readonly clock: Clock;
  readonly secrets: SecretSource;
}

/** A request and how it is sent. */
export interface OutgoingRequest {
  readonly path: string;
  /** Messages, framed. */
  readonly frame: Buffer;
  /** It changes nothing. */
  readonly readOnly: boolean;
}

/** Sends the requests of one call, one at a time, and ends with it. */
export class Dispatch {
  readonly #environment: DispatchEnvironment;
  readonly #facts: CallFacts;
  /** Ends every wait that is not for an answer. */
  readonly #waiting = new AbortController();
  #exchange: Exchange | undefined;
  #stopped: GatewayError | undefined;

  constructor(environment: DispatchEnvironment, facts: CallFacts) {
    this.#environment = environment;
    this.#facts = facts;
  }

  /** Aborts with the call. */
  get signal(): AbortSignal {
    return this.#waiting.signal;
  }

  /** Why the call was ended; `undefined` while it was not. */
  get stopped(): GatewayError | undefined {
    return this.#stopped;
  }

  /** The exchange of the request that was sent last. */
  get exchange(): Exchange | undefined {
    return this.#exchange;
  }

  /** Ends everything at once with this reason. */
  stop(reason: unknown): void {
    this.#stopped ??= endedCall(reason, this.#exchange?.effect ?? "none", this.#exchange?.spends ?? "connect");
    this.#exchange?.abort(this.#stopped);
    this.#waiting.abort(this.#stopped);
  }

  /** Frees everything. */
  close(): void {
    this.#exchange?.close();
  }

  /**
   * Sends a request, again where surely nobody looked at it. The exchange has its first news when it is given.
   *
   * @throws GatewayError.
   */
  async send({ path, frame, readOnly }: OutgoingRequest): Promise<Exchange> {
    const { config, clock, secrets } = this.#environment;
    const { timeouts, maxResponseBytes } = config.settings;
    for (let again = 0; again <= MAX_SENT_AGAIN; again++) {
      const beganMs = clock.monotonicMs();
      const metadata = metadataOf(config, secrets);
      const connection = await this.connection();
      const exchange = new Exchange({
        connection,
        headers: { ...requestHeaders(config, path, this.#facts, clock), ...metadata },
        frame,
        clock,
        timeouts,
        maxMessageBytes: maxResponseBytes,
        tool: config.tool.name,
        address: config.target.address,
        readOnly,
        connectMs: clock.monotonicMs() - beganMs,
      });
      this.#exchange = exchange;
      await exchange.begun();
      if (!exchange.refused) return exchange;
    }
    const { tool, target } = config;
    const text = `${tool.name}: ${target.address} takes no calls: it refused each attempt`;
    throw new GatewayError("UPSTREAM_UNREACHABLE", text, { metadata: { tool: tool.name, phase: "waiting" } });
  }

  /** Sends messages to a method that changes nothing, and gives the whole answer. @throws GatewayError. */
  async ask(
    path: string,
    frame: Buffer,
  ): Promise<{ readonly status: GrpcStatus; readonly messages: readonly Buffer[] }> {
    const exchange = await this.send({ path, frame, readOnly: true });
    const messages: Buffer[] = [];
    for (let message = await exchange.read(); message !== undefined; message = await exchange.read())
      messages.push(message);
    return { status: exchange.end, messages };
  }

  /** A connection with room for one call, which is to be released. @throws GatewayError. */
  async connection(): Promise<Connection> {
    const { config, channel, clock } = this.#environment;
    const { timeouts } = config.settings;
    const lost = {
      tool: config.tool.name,
      origin: config.target.address,
      effect: "none",
      phase: "connecting",
      receivedBytes: 0,
      timeouts,
    } as const;
    this.#waiting.signal.throwIfAborted();
    let late = false;
    using limit = linkSignals(this.#waiting.signal);
    using _timer = clock.after(timeouts.connectMs, () => {
      late = true;
      limit.abort(new Error("late"));
    });
    try {
      return await channel.take(timeouts.connectMs, limit.signal);
    } catch (error) {
      this.#waiting.signal.throwIfAborted();
      if (error instanceof ChannelFull) throw this.#full(error);
      if (late) throw spentLimit(lost, "connect");
      throw brokenConnection(lost, error instanceof Error ? error : undefined);
    }
  }

  #full({ waiting }: ChannelFull): GatewayError {
    const { tool, target } = this.#environment.config;
    const text = `${tool.name}: ${waiting} calls wait for a connection to ${target.address} already`;
    return new GatewayError("UPSTREAM_POOL_EXHAUSTED", text, { metadata: { tool: tool.name } });
  }
}
