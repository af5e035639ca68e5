import type { AdapterDeps, ProbeReport, Upstream, UpstreamTool } from "../../core/adapter.ts";
import type { CallContext, ToolCall, UpstreamEvent } from "../../core/call.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Availability } from "../../core/tool.ts";
import { cancellable } from "../shared/cancellable.ts";
import { Connections } from "./connections.ts";
import { HttpCall, type HttpCallEnvironment } from "./http-call.ts";
import type { HttpConfig } from "./http-config.ts";
import { probeOrigin } from "./probe.ts";

/** An HTTP tool, with connections of its own. */
export class HttpUpstream implements Upstream {
  readonly #config: HttpConfig;
  readonly #deps: AdapterDeps;
  readonly #environment: HttpCallEnvironment;
  #hadSecret: boolean;
  #closed = false;

  constructor(config: HttpConfig, deps: AdapterDeps) {
    this.#config = config;
    this.#deps = deps;
    const { clock, secrets } = deps;
    const connections = new Connections(config.endpoint.origin);
    this.#environment = { config, connections, clock, secrets, running: new Set() };
    this.#hadSecret = this.#hasSecret();
  }

  /** Tells the registry too when the secret came or went since it was looked at last. */
  availability(): Availability {
    const has = this.#lookForSecret();
    const { auth } = this.#config;
    return has || auth === undefined
      ? { state: "ready", reason: "" }
      : { state: "unavailable", reason: `secret ${auth.secretRef} is not set` };
  }

  discover(): Promise<readonly UpstreamTool[]> {
    const { name, description, inputSchema, outputSchema, hints } = this.#config.tool;
    return Promise.resolve([{ name, description, inputSchema, outputSchema, hints }]);
  }

  readonly invoke = (call: ToolCall, context: CallContext): AsyncIterable<UpstreamEvent> => {
    this.#lookForSecret();
    const run = new HttpCall(this.#environment, call, context);
    if (this.#closed) run.stop(this.#stopping());
    return cancellable(run.events(), () => run.stop(this.#cancelled()));
  };

  probe(signal: AbortSignal): Promise<ProbeReport> {
    const { endpoint, settings } = this.#config;
    const options = { origin: endpoint.origin, limitMs: settings.timeouts.connectMs, clock: this.#deps.clock };
    return probeOrigin(options, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const call of this.#environment.running) call.stop(this.#stopping());
    await this.#environment.connections[Symbol.asyncDispose]();
  }

  #hasSecret(): boolean {
    const { auth } = this.#config;
    return auth === undefined || this.#deps.secrets.has(auth.secretRef);
  }

  #lookForSecret(): boolean {
    const has = this.#hasSecret();
    if (has !== this.#hadSecret) {
      this.#hadSecret = has;
      // Later, since the registry may be in the middle of asking.
      queueMicrotask(() => {
        if (!this.#closed) this.#deps.changed();
      });
    }
    return has;
  }

  #cancelled(): GatewayError {
    return new GatewayError("CALL_CANCELLED", `${this.#config.tool.name}: the call was cancelled`);
  }

  #stopping(): GatewayError {
    return new GatewayError("GATEWAY_STOPPING", `${this.#config.tool.name}: the tool was closed while it was called`);
  }
}
