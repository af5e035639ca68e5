import type { AdapterDeps, ProbeReport, Upstream } from "../../core/adapter.ts";
import type { CallContext, ToolCall, UpstreamEvent } from "../../core/call.ts";
import { GatewayError } from "../../core/errors.ts";
import { raceSignal } from "../../core/signal.ts";
import type { Availability } from "../../core/tool.ts";
import { cancellable } from "../shared/cancellable.ts";
import { findProgramProblem, type ProgramProblem } from "../shared/launcher/examine.ts";
import type { Launcher } from "../shared/launcher/launcher.ts";
import { SecretWatch } from "../shared/secret-watch.ts";
import type { ScriptCallEnvironment } from "./call-run.ts";
import { secretRefsOf, startedProgram } from "./environment.ts";
import { ScriptCall } from "./script-call.ts";
import type { ScriptConfig } from "./script-config.ts";
import { WorkerCall } from "./worker-call.ts";
import { WorkerPool } from "./worker-pool.ts";

/** A script tool. */
export class ScriptUpstream implements Upstream {
  readonly #config: ScriptConfig;
  readonly #deps: AdapterDeps;
  readonly #launcher: Launcher;
  readonly #secrets: SecretWatch;
  readonly #environment: ScriptCallEnvironment;
  readonly #workers: WorkerPool | undefined;
  #problem: ProgramProblem | undefined;
  #closing: Promise<void> | undefined;

  /** `problem` is what keeps the program from starting, as far as that is known. */
  constructor(config: ScriptConfig, deps: AdapterDeps, launcher: Launcher, problem: ProgramProblem | undefined) {
    this.#config = config;
    this.#deps = deps;
    this.#launcher = launcher;
    this.#problem = problem;
    this.#secrets = new SecretWatch(secretRefsOf(config), deps);
    const { clock, logger, secrets } = deps;
    this.#environment = {
      config,
      launcher,
      clock,
      logger,
      secrets,
      running: new Set(),
      programs: new Set(),
      onStart: (failure) => {
        if (failure === undefined || failure.problem !== undefined) this.#note(failure?.problem);
      },
    };
    this.#workers = config.worker === undefined ? undefined : new WorkerPool(config.tool.name, config.worker, clock);
    launcher.retain();
  }

  availability(): Availability {
    const missing = this.#secrets.unavailable();
    if (missing !== undefined || this.#problem === undefined) return missing ?? { state: "ready", reason: "" };
    const { message, mend } = this.#problem;
    return { state: "unavailable", reason: `the program cannot be started: ${message}`, mend };
  }

  readonly invoke = (call: ToolCall, context: CallContext): AsyncIterable<UpstreamEvent> => {
    this.#secrets.look();
    const workers = this.#workers;
    const run =
      workers === undefined
        ? new ScriptCall(this.#environment, call, context)
        : new WorkerCall(this.#environment, workers, call, context);
    if (this.#closing !== undefined) run.stop(this.#stopping());
    return cancellable(run.events(), () => run.stop(this.#cancelled()));
  };

  async probe(signal: AbortSignal): Promise<ProbeReport> {
    signal.throwIfAborted();
    const problem = await raceSignal(findProgramProblem(startedProgram(this.#config)), signal);
    this.#note(problem);
    if (problem === undefined) return { ok: true, message: "the program can be started", mend: "" };
    return { ok: false, message: `the program cannot be started: ${problem.message}`, mend: problem.mend };
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#secrets.close();
    const { running, programs } = this.#environment;
    for (const call of running) call.stop(this.#stopping());
    this.#workers?.close();
    await Promise.all([...programs].map((program) => program.gone));
    await this.#launcher.release();
  }

  #note(problem: ProgramProblem | undefined): void {
    if (problem?.message === this.#problem?.message) return;
    this.#problem = problem;
    // Later, since the registry may be in the middle of asking.
    queueMicrotask(() => {
      if (this.#closing === undefined) this.#deps.changed();
    });
  }

  #cancelled(): GatewayError {
    return new GatewayError("CALL_CANCELLED", `${this.#config.tool.name}: the call was cancelled`);
  }

  #stopping(): GatewayError {
    return new GatewayError("GATEWAY_STOPPING", `${this.#config.tool.name}: the tool was closed while it was called`);
  }
}
