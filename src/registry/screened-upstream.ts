import type { Offer, ProbeReport, Upstream } from "../core/adapter.ts";
import type { CallContext, Invoke, ToolCall } from "../core/call.ts";
import type { Availability } from "../core/tool.ts";

/**
 * An upstream whose words are fit to be shown: why it is down, and what a probe found. What its calls give goes through
 * shaping instead, and what it says of its tools, which may be much, is screened tool by tool when they are read.
 */
export class ScreenedUpstream implements Upstream {
  readonly #upstream: Upstream;
  readonly #screen: (text: string) => string;
  #told: Availability | undefined;
  #shown: Availability | undefined;

  constructor(upstream: Upstream, screen: (text: string) => string) {
    this.#upstream = upstream;
    this.#screen = screen;
  }

  availability(): Availability {
    const told = this.#upstream.availability();
    if (told.reason === "" && told.mend === undefined) return told;
    if (told !== this.#told || this.#shown === undefined) {
      const { mend } = told;
      this.#told = told;
      this.#shown = {
        ...told,
        reason: this.#screen(told.reason),
        ...(mend === undefined ? {} : { mend: this.#screen(mend) }),
      };
    }
    return this.#shown;
  }

  offer(): Offer | undefined {
    return this.#upstream.offer?.();
  }

  invoke(call: ToolCall, context: CallContext): ReturnType<Invoke> {
    return this.#upstream.invoke(call, context);
  }

  async probe(signal: AbortSignal): Promise<ProbeReport> {
    const report = await this.#upstream.probe(signal);
    return { ok: report.ok, message: this.#screen(report.message), mend: this.#screen(report.mend) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#upstream[Symbol.asyncDispose]();
  }
}
