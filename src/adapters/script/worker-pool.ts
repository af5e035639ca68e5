import type { Clock } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import { type Slot, Slots } from "../../core/slots.ts";
import type { WorkerConfig } from "./script-config.ts";
import type { Worker } from "./worker.ts";

/** Most calls that wait for a worker. */
const MAX_WAITING = 1_000;

/** The workers of one tool. One that is given back is used again while it lives and is not worn out. */
export class WorkerPool {
  readonly #tool: string;
  readonly #config: WorkerConfig;
  readonly #slots: Slots;
  /** The one used last is used first. */
  readonly #idle: Worker[] = [];
  #closed = false;

  constructor(tool: string, config: WorkerConfig, clock: Clock) {
    this.#tool = tool;
    this.#config = config;
    this.#slots = new Slots({ limit: config.processes, maxWaiting: MAX_WAITING }, clock);
  }

  /**
   * The right to have a worker run, in turn.
   *
   * @throws the signal's reason; GatewayError UPSTREAM_UNREACHABLE where too many wait.
   */
  async turn(signal: AbortSignal): Promise<Slot> {
    return this.#slots.take({ signal, refused: () => this.#busy() });
  }

  /** A worker that lives and was started with this environment; who has the turn starts one where there is none. */
  take(environment: string): Worker | undefined {
    for (let worker = this.#idle.pop(); worker !== undefined; worker = this.#idle.pop()) {
      if (worker.program.end === undefined && worker.environment === environment) return worker;
      if (worker.program.end === undefined) worker.program.kill();
    }
    return undefined;
  }

  /** Takes a worker back that has answered. */
  giveBack(worker: Worker): void {
    const { end } = worker.program;
    if (end !== undefined) return;
    if (this.#closed || worker.calls >= this.#config.maxCalls) worker.program.kill();
    else this.#idle.push(worker);
  }

  /** Ends the workers that have nothing to do, and those that are given back later. */
  close(): void {
    this.#closed = true;
    for (const worker of this.#idle.splice(0)) worker.program.kill();
  }

  #busy(): GatewayError {
    const text = `${this.#tool}: all ${this.#config.processes} workers are busy and ${MAX_WAITING} calls wait for one; call again later`;
    return new GatewayError("UPSTREAM_UNREACHABLE", text, { metadata: { tool: this.#tool, code: "BUSY" } });
  }
}
