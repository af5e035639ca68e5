import type { CallContext, ToolCall, ToolEvent } from "../core/call.ts";
import type { CallObserver } from "../core/call-observer.ts";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import { canonicalJson } from "../core/json.ts";
import type { LogFields, Logger } from "../core/logger.ts";
import type { AuditEntry, AuditTrail, CallWatch, ShortCall, ToolPath } from "../core/observation.ts";
import { RECORD_LOGS, type RecordLog, recordFileName } from "../core/record-files.ts";
import type { CheckResult } from "../core/registry.ts";
import type { Redactor } from "../core/secrets.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { CallLines, digestOf } from "./call-lines.ts";
import { FloodGate } from "./flood-gate.ts";
import { createPinoLogger } from "./pino-logger.ts";
import { RecordFile, type RecordFileLimits } from "./record-file.ts";

/** What records are made with. */
export interface RecordsOptions {
  readonly folder: string;
  /** Which are kept. */
  readonly keeps: Readonly<Record<RecordLog, boolean>>;
  readonly limits: RecordFileLimits;
  readonly clock: Clock;
  readonly redactor: Redactor;
  /** Hears of records that cannot be written. */
  readonly logger: Logger;
}

/** How a log fares. */
export interface RecordState {
  readonly log: RecordLog;
  /** Whether it cannot be written now. */
  readonly failing: boolean;
  /** Lines lost since the start. */
  readonly lost: number;
}

interface OpenLog {
  readonly file: RecordFile;
  write(message: string, fields: LogFields): void;
}

/** Both hear of the call. */
function chained(first: CallObserver, second: CallObserver | undefined): CallObserver {
  if (second === undefined) return first;
  return {
    validated(args) {
      first.validated(args);
      second.validated(args);
    },
    exchanged(facts) {
      first.exchanged(facts);
      second.exchanged(facts);
    },
  };
}

/** The records of a gateway: its log of calls, its session log and its audit log. */
export class Records implements CallWatch, AuditTrail, AsyncDisposable {
  readonly #options: RecordsOptions;
  readonly #logs = new Map<RecordLog, OpenLog>();
  /** By action. Whoever is refused can write lines at will: not so many that others are pushed out, or not told at all. */
  readonly #floods = new Map<string, FloodGate>();
  /** The task at the disk. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: RecordsOptions) {
    this.#options = options;
    for (const log of RECORD_LOGS) if (options.keeps[log]) this.#logs.set(log, this.#open(log));
  }

  /** Whether calls are watched at all. */
  get watchesCalls(): boolean {
    return this.#logs.has("gateway") || this.#logs.has("session");
  }

  /** How each log fares that is kept. */
  get states(): readonly RecordState[] {
    return [...this.#logs].map(([log, { file }]) => ({ log, failing: file.failing, lost: file.lost }));
  }

  async *run(
    tool: ToolDefinition,
    path: ToolPath,
    call: ToolCall,
    context: CallContext,
  ): AsyncGenerator<ToolEvent, void, undefined> {
    const session = this.#logs.get("session");
    const lines = new CallLines({ tool, call, context, clock: this.#options.clock, session: session !== undefined });
    const explain = context.explain || session !== undefined;
    try {
      for await (const event of path(call, { ...context, explain, observer: chained(lines, context.observer) })) {
        lines.saw(event);
        // Exchanges that only the session log asked for are nobody else's.
        if (event.type !== "exchange" || context.explain) yield event;
      }
    } catch (thrown) {
      const error = GatewayError.from(thrown);
      lines.failed(error);
      throw error;
    } finally {
      this.#logs.get("gateway")?.write("tool-call", lines.gatewayLine());
      session?.write("session-call", lines.sessionLine());
    }
  }

  short({ arguments: args, ms, ...facts }: ShortCall): void {
    const known = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
    const canonical = args === undefined ? undefined : canonicalJson(args);
    const digest = canonical === undefined ? {} : { argumentsDigest: digestOf(canonical) };
    const totalMs = Math.round(ms * 1_000) / 1_000;
    const line = { ...known, ...digest, status: facts.status ?? "OK", totalMs };
    this.#logs.get("gateway")?.write("tool-call", line);
    const said = canonical === undefined ? {} : { arguments: canonical };
    this.#logs.get("session")?.write("session-call", { ...known, ...said, status: line.status });
  }

  note({ action, outcome, actor, facts = {} }: AuditEntry): void {
    const audit = this.#logs.get("audit");
    if (audit === undefined) return;
    const more = outcome === "refused" ? this.#floodOf(action).pass() : {};
    if (more !== undefined) audit.write(action, { outcome, actor, ...facts, ...more });
  }

  /** Actions are words of the gateway's own, so there are few. */
  #floodOf(action: string): FloodGate {
    const known = this.#floods.get(action);
    if (known !== undefined) return known;
    const gate = new FloodGate(this.#options.clock);
    this.#floods.set(action, gate);
    return gate;
  }

  /** How the logs fare, for people. */
  checks(): readonly CheckResult[] {
    return this.states.map(({ log, failing, lost }) => {
      const subject = `records ${recordFileName(log)}`;
      const words = lost === 0 ? "" : `, ${lost} lines were lost`;
      if (!failing && lost === 0) return { subject, status: "ok", message: "are written", mend: "" };
      const mend = `look whether ${this.#options.folder} can be written and its disk has room; calls go on meanwhile`;
      if (failing) return { subject, status: "warning", message: `cannot be written${words}`, mend };
      return { subject, status: "warning", message: `are written again${words}`, mend };
    });
  }

  /** Writes what waits, and closes the files. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const { file } of this.#logs.values()) await file[Symbol.asyncDispose]();
    for (const { log, lost, failing } of this.states) {
      if (failing) this.#options.logger.error("records-lost", { log, lost });
    }
  }

  #open(log: RecordLog): OpenLog {
    const { folder, limits, clock, redactor, logger } = this.#options;
    const file = new RecordFile({
      folder,
      log,
      limits,
      clock,
      turn: (task) => this.#inTurn(task),
      onTrouble: (error) => logger.error("records-not-written", { log, folder, error }),
      onRecovered: (lost) => logger.warn("records-recovered", { log, lost }),
    });
    const lines = createPinoLogger({ level: "info", destination: file, redactor });
    return { file, write: (message, fields) => lines.info(message, fields) };
  }

  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(task);
    this.#turn = done.catch(() => undefined);
    return done;
  }
}
