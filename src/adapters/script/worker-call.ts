import type { CallContext, ToolCall, UpstreamEvent, UpstreamResult } from "../../core/call.ts";
import { type JsonObject, type JsonValue, stringifyJson } from "../../core/json.ts";
import type { Slot } from "../../core/slots.ts";
import { textPieces } from "../shared/text-pieces.ts";
import { assembleProgram, type ProgramCall } from "./assemble.ts";
import { CallRun, type ScriptCallEnvironment } from "./call-run.ts";
import { programEnvironment } from "./environment.ts";
import { lostWorkerResult } from "./outcome.ts";
import { Worker } from "./worker.ts";
import { readWorkerMessage } from "./worker-message.ts";
import type { WorkerPool } from "./worker-pool.ts";

/** Most characters of a line that means nothing that are logged. */
const MAX_NOISE = 200;

/** One call of a script tool whose programs keep running: a line to a worker, and lines back. */
export class WorkerCall extends CallRun {
  readonly #pool: WorkerPool;
  #turn: Slot | undefined;
  #noise = 0;

  constructor(environment: ScriptCallEnvironment, pool: WorkerPool, call: ToolCall, context: CallContext) {
    super(environment, call, context);
    this.#pool = pool;
  }

  protected override async *run(): AsyncGenerator<UpstreamEvent, void, undefined> {
    const { config, secrets } = this.environment;
    const input = stringifyJson(this.#request());
    const call = { ...assembleProgram(config, {}), input };
    const program = { ...programEnvironment(config, secrets), TOOLGATE_TOOL: config.tool.name, TOOLGATE_WORKER: "1" };
    const variables = { program, call: {} };
    if (this.call.validateOnly) {
      if (this.context.explain) yield this.report(call, variables);
      yield { type: "upstream-result", result: { content: [], effect: "none" } };
      return;
    }
    this.#turn = await this.#pool.turn(this.stopped);
    const worker = await this.#worker(call, program);
    this.use(worker.program);
    this.took(input);
    worker.ask(input);
    const result = yield* this.#answer(worker);
    if (this.context.explain) yield this.report(call, variables, result);
    // It has nothing to do with this call any more.
    this.use(undefined);
    this.#pool.giveBack(worker);
    yield { type: "upstream-result", result };
  }

  protected override leave(): void {
    super.leave();
    this.#turn?.[Symbol.dispose]();
    this.#turn = undefined;
  }

  async #worker(call: ProgramCall, env: Readonly<Record<string, string>>): Promise<Worker> {
    const environment = JSON.stringify(env);
    const idle = this.#pool.take(environment);
    if (idle !== undefined) return idle;
    const { maxResponseBytes } = this.environment.config.settings;
    // Until it has been asked, it works for nobody.
    const program = await this.start(call, env, true, (begun) => {
      const onStop = (): void => begun.kill();
      this.stopped.addEventListener("abort", onStop, { once: true });
      void begun.started().finally(() => this.stopped.removeEventListener("abort", onStop));
    });
    return new Worker(program, environment, {
      maxLength: maxResponseBytes,
      exceeded: () => this.tooLarge("the worker's answer is longer", `${maxResponseBytes} characters`),
    });
  }

  async *#answer(worker: Worker): AsyncGenerator<UpstreamEvent, UpstreamResult, undefined> {
    const { config } = this.environment;
    while (true) {
      const line = await this.awaitOutput(worker.next());
      if (line === undefined) return lostWorkerResult(config, this.outcomeOf(worker.program));
      this.gave(Buffer.byteLength(line));
      const message = readWorkerMessage(line, this.context.callId);
      switch (message?.kind) {
        case undefined:
          this.#noteNoise(line);
          break;
        case "event":
          yield message.event;
          break;
        case "delta":
          for (const text of textPieces(message.text.toWellFormed())) yield { type: "upstream-delta", text };
          break;
        case "result":
          return { ...this.#output(message.value), effect: config.readOnly ? "none" : "committed" };
        case "error":
          return {
            content: [],
            effect: config.readOnly ? "none" : "unknown",
            failure: {
              reason: "TOOL_FAILED",
              message: `${config.tool.name}: ${message.message}`,
              upstreamCode: undefined,
              retryable: message.retryable,
              upstreamFault: false,
            },
          };
      }
    }
  }

  #output(value: JsonValue): Pick<UpstreamResult, "content" | "value"> {
    if (this.environment.config.settings.format !== "text") return { content: [], value };
    return { content: [{ type: "text", text: typeof value === "string" ? value : stringifyJson(value) }] };
  }

  /** The first of them says enough. */
  #noteNoise(line: string): void {
    this.#noise += 1;
    if (this.#noise > 1) return;
    const { logger, config } = this.environment;
    logger.warn("worker-line-skipped", { tool: config.tool.name, line: line.slice(0, MAX_NOISE) });
  }

  #request(): JsonObject {
    const { tool } = this.environment.config;
    const { callId, attempt, deadlineMs, ...context } = this.context;
    const { sessionId, turnId, taskId, toolCallId, traceparent, tracestate, baggage } = context;
    const told = Object.entries({ sessionId, turnId, taskId, toolCallId, traceparent, tracestate, baggage }).flatMap(
      ([name, value]) =>
        value === undefined ? [] : [[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value] as const],
    );
    return {
      id: callId,
      tool: tool.name,
      arguments: this.call.arguments,
      attempt,
      deadline_ms: Math.floor(deadlineMs),
      timeout_ms: Math.max(0, Math.floor(deadlineMs - this.environment.clock.now())),
      ...Object.fromEntries(told),
    };
  }
}
