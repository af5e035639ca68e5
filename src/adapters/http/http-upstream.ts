import type { AdapterDeps, ProbeReport, Upstream } from "../../core/adapter.ts";
import type { CallContext, ToolCall, UpstreamEvent } from "../../core/call.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Availability } from "../../core/tool.ts";
import { cancellable } from "../shared/cancellable.ts";
import { SecretWatch } from "../shared/secret-watch.ts";
import { HttpCall, type HttpCallEnvironment } from "./http-call.ts";
import type { HttpConfig } from "./http-config.ts";
import type { OriginAccess } from "./origin-pools.ts";
import { probeOrigin } from "./probe.ts";
import { secretRefsOf } from "./secret-use.ts";
import type { ToolTokens } from "./token-pool.ts";

/** An HTTP tool. */
export class HttpUpstream implements Upstream {
  readonly #config: HttpConfig;
  readonly #deps: AdapterDeps;
  readonly #access: OriginAccess;
  readonly #tokens: ToolTokens | undefined;
  /** Made at the first call: most tools are never called. */
  #calls: HttpCallEnvironment | undefined;
  readonly #secrets: SecretWatch;
  #closed = false;

  /** `access`: to the connections of its origin; the upstream owns it, and its tokens. */
  constructor(config: HttpConfig, deps: AdapterDeps, access: OriginAccess, tokens?: ToolTokens) {
    this.#config = config;
    this.#deps = deps;
    this.#access = access;
    this.#tokens = tokens;
    this.#secrets = new SecretWatch(secretRefsOf(config), deps);
  }

  /** Tells the registry too when a secret came or went since it was looked last. */
  availability(): Availability {
    const missing = this.#secrets.unavailable();
    const { refusal } = this.#access.connector;
    if (missing !== undefined || refusal === undefined) return missing ?? { state: "ready", reason: "" };
    return { state: "unavailable", reason: refusal.message, mend: refusal.mend };
  }

  invoke(call: ToolCall, context: CallContext): AsyncIterable<UpstreamEvent> {
    this.#secrets.look();
    const run = new HttpCall(this.#environment(), call, context);
    if (this.#closed) run.stop(this.#stopping());
    return cancellable(run.events(), () => run.stop(this.#cancelled()));
  }

  probe(signal: AbortSignal): Promise<ProbeReport> {
    const { connectMs } = this.#config.settings.timeouts;
    const options = { connector: this.#access.connector, limitMs: connectMs, clock: this.#deps.clock };
    return probeOrigin(options, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#secrets.close();
    for (const call of this.#calls?.running ?? []) call.stop(this.#stopping());
    await Promise.all([this.#access[Symbol.asyncDispose](), this.#tokens?.[Symbol.asyncDispose]()]);
  }

  #environment(): HttpCallEnvironment {
    const { clock, secrets } = this.#deps;
    const tokens = this.#tokens?.tokens;
    this.#calls ??= { config: this.#config, access: this.#access, tokens, clock, secrets, running: new Set() };
    return this.#calls;
  }

  #cancelled(): GatewayError {
    return new GatewayError("CALL_CANCELLED", `${this.#config.tool.name}: the call was cancelled`);
  }

  #stopping(): GatewayError {
    return new GatewayError("GATEWAY_STOPPING", `${this.#config.tool.name}: the tool was closed while it was called`);
  }
}
