import type { CallContext, Invoke, ToolCall, UpstreamEvent } from "../../../src/core/call.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import type { Interceptor, Step, ToolPolicy } from "../../../src/core/step.ts";
import type { Availability } from "../../../src/core/tool.ts";
import { createFakeClock, type FakeClock } from "../../core/fake-clock.ts";
import { makeCall, makeContext, makeTool, POLICY, RESULT } from "../fixtures.ts";

/** A call that was begun. */
export interface BegunCall {
  /** All events it gave so far. */
  readonly events: UpstreamEvent[];
  readonly controller: AbortController;
  /** Its error; `undefined` where it ended well. */
  readonly outcome: Promise<GatewayError | undefined>;
}

/** Calls through one step, to an upstream that answers when it is told to. */
export class LimitedCalls {
  readonly clock: FakeClock = createFakeClock();
  readonly #step: Step;
  readonly #policies = new Map<Interceptor, { readonly name: string; readonly policy: ToolPolicy }>();
  /** Names of the tools whose calls run, in the order they began, and what ends each. */
  readonly running: { readonly tool: string; readonly end: (error?: GatewayError) => void }[] = [];
  most = 0;

  constructor(step: Step) {
    this.#step = step;
  }

  /** The step in the path of a tool. */
  path(policy: Partial<ToolPolicy>, name = "orders"): Interceptor {
    const compiled = this.#step.compile(makeTool({ name }), { ...POLICY, ...policy }, { clock: this.clock }, undefined);
    if (compiled === undefined) throw new Error(`step ${this.#step.name} is not in the path`);
    this.#policies.set(compiled, { name, policy: { ...POLICY, ...policy } });
    return compiled;
  }

  /** What the step says of the tool of a path. */
  availabilityOf(path: Interceptor): Availability | undefined {
    const of = this.#policies.get(path);
    return of === undefined ? undefined : this.#step.availability?.(of.name, of.policy);
  }

  /** Begins a call; its upstream is reached once nothing holds it. */
  begin(path: Interceptor, changes: Partial<ToolCall> & { readonly context?: Partial<CallContext> } = {}): BegunCall {
    const { context = {}, ...call } = changes;
    const controller = new AbortController();
    const events: UpstreamEvent[] = [];
    const made = makeCall({}, call);
    const outcome = (async () => {
      for await (const event of path(made, makeContext({ signal: controller.signal, ...context }), this.#upstream)) {
        events.push(event);
      }
    })().then(
      () => undefined,
      (error: unknown) => GatewayError.from(error),
    );
    return { events, controller, outcome };
  }

  /** Ends the call that has run the longest. */
  async endOne(error?: GatewayError): Promise<void> {
    this.running[0]?.end(error);
    await this.settle();
  }

  /** Lets everything go on that waits for nothing but its turn on the event loop. */
  settle(): Promise<void> {
    return this.clock.advance(0);
  }

  readonly #upstream: Invoke = (call, { signal }) => this.#answer(call, signal);

  async *#answer({ tool }: ToolCall, signal: AbortSignal): AsyncGenerator<UpstreamEvent, void, undefined> {
    const ended = Promise.withResolvers<void>();
    const entry = {
      tool,
      end: (error?: GatewayError) => (error === undefined ? ended.resolve() : ended.reject(error)),
    };
    const onAbort = (): void => ended.reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    this.running.push(entry);
    this.most = Math.max(this.most, this.running.length);
    try {
      await ended.promise;
      yield RESULT;
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.running.splice(this.running.indexOf(entry), 1);
    }
  }
}
