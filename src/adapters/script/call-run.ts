import { constants } from "node:os";
import type { CallContext, ToolCall, UpstreamEvent, UpstreamExchange, UpstreamResult } from "../../core/call.ts";
import type { Clock } from "../../core/clock.ts";
import type { Effect } from "../../core/effect.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import type { SecretSource } from "../../core/secrets.ts";
import { endedCall } from "../shared/ended-call.ts";
import type { Launcher } from "../shared/launcher/launcher.ts";
import type { RunningProgram } from "../shared/launcher/running-program.ts";
import { Watchdog } from "../shared/watchdog.ts";
import type { ProgramCall } from "./assemble.ts";
import { secretRefsOf } from "./environment.ts";
import { exitCodeOf, type ProgramOutcome } from "./outcome.ts";
import { KILL_GRACE_MS, type ScriptConfig } from "./script-config.ts";
import { noRoom, type StartFailure, startFailure } from "./start-problem.ts";

/** Output that may wait for its reader before the program has to. */
const WINDOW_BYTES = 256 * 1024;

/** What the calls of one tool have in common. */
export interface ScriptCallEnvironment {
  readonly config: ScriptConfig;
  readonly launcher: Launcher;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly secrets: SecretSource;
  /** The calls that run, each from its first event to its last. */
  readonly running: Set<CallRun>;
  /** Programs that are not gone. */
  readonly programs: Set<RunningProgram>;
  /** What came of a start: `undefined` where the program runs. */
  onStart(failure: StartFailure | undefined): void;
}

/** The variables of a program, by what they are from. */
export interface ProgramVariables {
  readonly program: Readonly<Record<string, string>>;
  /** Those that tell it of its call. */
  readonly call: Readonly<Record<string, string>>;
}

/** Limits of time a call watches. */
type TimeLimit = "connect" | "read" | "idle";

const FIND_OUT = "it may have taken effect: find out before calling again";

/** One call of a script tool, whatever way its program is run. */
export abstract class CallRun {
  protected readonly environment: ScriptCallEnvironment;
  protected readonly call: ToolCall;
  protected readonly context: CallContext;
  readonly #watchdog: Watchdog<TimeLimit>;
  readonly #stop = new AbortController();
  #program: RunningProgram | undefined;
  #sentAtMs = 0;
  #beganMs: number | undefined;
  #connectMs: number | undefined;
  #inputBytes = 0;
  #outputBytes = 0;
  #firstOutputMs: number | undefined;

  constructor(environment: ScriptCallEnvironment, call: ToolCall, context: CallContext) {
    this.environment = environment;
    this.call = call;
    this.context = context;
    this.#watchdog = new Watchdog(environment.clock, (limit) => this.#end(this.#spentLimit(limit)));
  }

  /** Ends the call at once with this reason, and the program that works for it. */
  stop(reason: unknown): void {
    this.#end(endedCall(reason, this.effect, this.#spends));
  }

  /** Runs the call. Throws GatewayError only. */
  async *events(): AsyncGenerator<UpstreamEvent, void, undefined> {
    const { signal } = this.context;
    const { running } = this.environment;
    const onAbort = (): void => this.stop(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    running.add(this);
    try {
      if (signal.aborted) onAbort();
      this.stopped.throwIfAborted();
      const { config, secrets } = this.environment;
      await secrets.fresh(secretRefsOf(config), this.stopped);
      yield* this.run();
    } catch (error) {
      throw GatewayError.from(error);
    } finally {
      signal.removeEventListener("abort", onAbort);
      running.delete(this);
      this.#watchdog[Symbol.dispose]();
      this.#tell();
      this.leave();
    }
  }

  /** What the call's program took in, for who watches the call. */
  protected took(input: string | Uint8Array): void {
    this.#inputBytes += Buffer.byteLength(input);
  }

  /** What it gave. */
  protected gave(bytes: number): void {
    this.#outputBytes += bytes;
  }

  /** What came of the program, for who watches the call. */
  #tell(): void {
    if (this.#beganMs === undefined) return;
    const end = this.#program?.end;
    this.context.observer?.exchanged({
      connectMs: this.#connectMs,
      firstByteMs: this.#firstOutputMs,
      requestBytes: this.#inputBytes,
      responseBytes: this.#outputBytes,
      code: end?.kind === "exited" ? exitCodeOf(end.exit, constants.signals) : undefined,
    });
  }

  /** The call itself. */
  protected abstract run(): AsyncGenerator<UpstreamEvent, void, undefined>;

  /** What is done when nobody waits for the call any more, however it ended. */
  protected leave(): void {
    if (this.#program?.end === undefined) this.#program?.kill();
    this.#program = undefined;
  }

  /** Aborts when the call is stopped; its reason is the error to end with. */
  protected get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  /** The limit that the call's time goes to now. */
  get #spends(): TimeLimit {
    if (this.#program?.pid === undefined) return "connect";
    return this.#firstOutputMs === undefined ? "read" : "idle";
  }

  /** What the call may have changed so far. */
  protected get effect(): Effect {
    if (this.environment.config.readOnly || this.#program === undefined) return "none";
    return this.#program.end?.kind === "refused" ? "none" : "unknown";
  }

  /** From now on this program works for the call. */
  protected use(program: RunningProgram | undefined): void {
    this.#program = program;
    this.#beganMs ??= this.environment.clock.monotonicMs();
    this.#sentAtMs = this.environment.clock.monotonicMs();
  }

  /** Starts a program; `begun` is called with it at once, before it runs. */
  protected async start(
    { file, args }: Pick<ProgramCall, "file" | "args">,
    env: Readonly<Record<string, string>>,
    input: boolean,
    begun: (program: RunningProgram) => void,
  ): Promise<RunningProgram> {
    const { config, launcher, programs } = this.environment;
    if (!launcher.hasRoom) throw noRoom(config, "LIMIT");
    this.#watchdog.watch("connect", config.settings.timeouts.connectMs);
    const limits = { graceMs: KILL_GRACE_MS, windowBytes: WINDOW_BYTES };
    const startedMs = this.environment.clock.monotonicMs();
    const program = launcher.start({ file, args, cwd: config.cwd, env, input, ...limits });
    programs.add(program);
    void program.gone.then(() => programs.delete(program));
    begun(program);
    await program.started();
    this.#connectMs = this.environment.clock.monotonicMs() - startedMs;
    this.#watchdog.rest();
    const { end } = program;
    const failure = end?.kind === "refused" ? await startFailure(config, end.code, args) : undefined;
    this.environment.onStart(failure);
    this.stopped.throwIfAborted();
    if (failure !== undefined) throw failure.error;
    return program;
  }

  /** Waits for output, within the limits of time. Throws where the call was stopped meanwhile. */
  protected async awaitOutput<T>(output: Promise<T>): Promise<T> {
    const { readMs, idleMs } = this.environment.config.settings.timeouts;
    if (this.#firstOutputMs === undefined) this.#watchdog.watch("read", readMs);
    else this.#watchdog.watch("idle", idleMs);
    const piece = await output;
    this.#watchdog.rest();
    this.stopped.throwIfAborted();
    this.#firstOutputMs ??= this.environment.clock.monotonicMs() - this.#sentAtMs;
    return piece;
  }

  /** How a program ended that was not stopped from here. */
  protected outcomeOf({ end }: RunningProgram): ProgramOutcome {
    if (end?.kind === "exited") return end;
    const { name } = this.environment.config.tool;
    const what = `${name}: the process that runs the tool's programs ended, and the program with it`;
    const { effect } = this;
    if (effect === "none") throw new GatewayError("UPSTREAM_UNREACHABLE", what, { metadata: { tool: name } });
    throw new GatewayError("UPSTREAM_ANSWER_LOST", `${what}; ${FIND_OUT}`, { effect, metadata: { tool: name } });
  }

  /** The error for output over a limit. `what` goes on with "than the limit". */
  protected tooLarge(what: string, limit: string): GatewayError {
    const { name } = this.environment.config.tool;
    return new GatewayError("RESULT_TOO_LARGE", `${name}: ${what} than the limit of ${limit}`, {
      effect: this.effect,
      metadata: { tool: name, limit },
    });
  }

  /** What was run, for people. `result` is absent where nothing was. */
  protected report(call: ProgramCall, variables: ProgramVariables, result?: UpstreamResult): UpstreamEvent {
    const { env, declared } = this.environment.config;
    const secret = new Set(env.flatMap((entry) => ("secretRef" in entry ? [entry.name] : [])));
    const own = typeof declared["env"] === "object" && declared["env"] !== null ? declared["env"] : {};
    const end = this.#program?.end;
    const exchange: UpstreamExchange = {
      method: "RUN",
      url: [call.file, ...call.args].map(shellWord).join(" "),
      requestHeaders: [
        ...Object.entries(variables.program)
          .filter(([name]) => Object.hasOwn(own, name))
          .map(([name, value]): [string, string] => [name, secret.has(name) ? "***" : value]),
        ...Object.entries(variables.call),
      ],
      requestBody: (call.input ?? "").slice(0, 8_192).toWellFormed(),
      status: result === undefined || end?.kind !== "exited" ? undefined : exitCodeOf(end.exit, constants.signals),
      responseHeaders: [],
      firstByteMs: this.#firstOutputMs,
    };
    return { type: "exchange", exchange };
  }

  #end(error: GatewayError): void {
    if (!this.stopped.aborted) this.#stop.abort(error);
    this.#watchdog.rest();
    if (this.#program?.end === undefined) this.#program?.kill();
  }

  #spentLimit(limit: TimeLimit): GatewayError {
    const { tool, settings } = this.environment.config;
    const what = {
      connect: "was not started",
      read: "gave no output",
      idle: "stopped in the middle of its output",
    }[limit];
    const { effect } = this;
    const end = effect === "unknown" ? `; ${FIND_OUT}` : "";
    const text = `${tool.name}: the program ${what} for ${settings.timeouts[`${limit}Ms`]} ms (timeout.${limit})${end}`;
    return new GatewayError("UPSTREAM_TIMEOUT", text, {
      effect,
      retryable: effect === "none",
      metadata: { tool: tool.name, limit },
    });
  }
}

/** The way a person would type it. */
function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
