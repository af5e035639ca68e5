import type { AdapterDeps, ProbeReport, Upstream } from "../../core/adapter.ts";
import type { CallContext, ToolCall, UpstreamEvent } from "../../core/call.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Availability } from "../../core/tool.ts";
import { cancellable } from "../shared/cancellable.ts";
import { SecretWatch } from "../shared/secret-watch.ts";
import { referencesIn } from "../shared/value-template.ts";
import type { ChannelLease } from "./channels.ts";
import type { DescriptorFiles } from "./descriptor-files.ts";
import { Dispatch } from "./dispatch.ts";
import { GrpcCall, type GrpcCallEnvironment } from "./grpc-call.ts";
import type { GrpcConfig } from "./grpc-config.ts";
import { MethodSource } from "./method-source.ts";
import { DescriptorProblem } from "./services.ts";

/** What an upstream is made from. It owns the lease. */
export interface GrpcUpstreamParts {
  readonly deps: AdapterDeps;
  readonly lease: ChannelLease;
  readonly files: DescriptorFiles;
}

/** A gRPC tool. */
export class GrpcUpstream implements Upstream {
  readonly #config: GrpcConfig;
  readonly #lease: ChannelLease;
  readonly #environment: GrpcCallEnvironment;
  readonly #secrets: SecretWatch;
  #closed = false;

  constructor(config: GrpcConfig, { deps, lease, files }: GrpcUpstreamParts) {
    this.#config = config;
    this.#lease = lease;
    this.#secrets = new SecretWatch(referencesIn(config.metadata), deps);
    const { channel } = lease;
    const { clock, secrets } = deps;
    const source = new MethodSource(config, { deps, channel, files });
    this.#environment = { config, channel, clock, secrets, source, running: new Set() };
  }

  /** Reads what can be read without asking the server. Never throws: what is wrong shows in `availability`. */
  async prepare(): Promise<void> {
    try {
      await this.#environment.source.method(undefined);
    } catch (error) {
      if (!(error instanceof DescriptorProblem)) throw error;
    }
  }

  availability(): Availability {
    const found = this.#secrets.unavailable() ?? this.#environment.source.unavailable();
    const { refusal } = this.#lease.channel;
    if (found !== undefined || refusal === undefined) return found ?? { state: "ready", reason: "" };
    return { state: "unavailable", reason: refusal.message, mend: refusal.mend };
  }

  invoke(call: ToolCall, context: CallContext): AsyncIterable<UpstreamEvent> {
    this.#secrets.look();
    const run = new GrpcCall(this.#environment, call, context);
    if (this.#closed) run.stop(this.#stopping());
    return cancellable(run.events(), () => run.stop(this.#cancelled()));
  }

  /** Connects, and asks for the method where the server knows it by reflection. No call is made. */
  async probe(signal: AbortSignal): Promise<ProbeReport> {
    signal.throwIfAborted();
    const { config, channel, source, clock } = this.#environment;
    const { address } = config.target;
    const { connectMs } = config.settings.timeouts;
    const dispatch = new Dispatch(this.#environment, { deadlineMs: clock.now() + connectMs, traceparent: undefined });
    const onAbort = (): void => dispatch.stop(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const method = await source.method((path, frame) => dispatch.ask(path, frame));
      (await dispatch.connection()).release();
      const kind = method?.desc.methodKind === "server_streaming" ? "a stream" : "one message";
      const message = `${address} speaks HTTP/2, and ${method?.path.slice(1) ?? "its method"} gives ${kind}`;
      return { ok: true, message, mend: "" };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof DescriptorProblem) return { ok: false, message: error.message, mend: error.mend };
      const { message } = GatewayError.from(error);
      const mend = channel.refusal?.mend ?? "Start the server, or correct `grpc.address` and `grpc.tls`.";
      return { ok: false, message, mend };
    } finally {
      signal.removeEventListener("abort", onAbort);
      dispatch.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#secrets.close();
    this.#environment.source[Symbol.dispose]();
    for (const call of this.#environment.running) call.stop(this.#stopping());
    await this.#lease[Symbol.asyncDispose]();
  }

  #cancelled(): GatewayError {
    return new GatewayError("CALL_CANCELLED", `${this.#config.tool.name}: the call was cancelled`);
  }

  #stopping(): GatewayError {
    return new GatewayError("GATEWAY_STOPPING", `${this.#config.tool.name}: the tool was closed while it was called`);
  }
}
