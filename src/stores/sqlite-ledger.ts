import { Worker } from "node:worker_threads";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import type { LedgerEntry, LedgerStore } from "../core/store.ts";
import type { LedgerOperation, LedgerReply } from "./ledger-database.ts";
import { ledgerFull } from "./ledger-full.ts";
import type { LedgerAnswer, LedgerRequest, LedgerWorkerData } from "./sqlite-ledger-worker.ts";

/** What a ledger on disk is made with. */
export interface SqliteLedgerOptions {
  /** Its file; made, with its folder, at the first use. One process at a time may use it. */
  readonly file: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long an entry is kept after its call ended. */
  readonly retentionMs: number;
  readonly maxEntries: number;
  /** Of outcomes; the oldest are dropped over it, their entries stay. */
  readonly maxBytes: number;
}

/**
 * A ledger in an SQLite file: write-ahead log, synced to the disk before an operation resolves, in a thread of its own
 * that is started at the first use. Operations that come while the disk is waited for share the next wait.
 */
export function createSqliteLedger(options: SqliteLedgerOptions): LedgerStore {
  const { clock } = options;
  const thread = new LedgerThread(options);
  const ask = async (operation: LedgerOperation): Promise<LedgerEntry | undefined> => {
    const reply = await thread.ask(operation);
    if (reply === "full") throw ledgerFull(options.maxEntries);
    return reply.entry;
  };
  return {
    // Only what a thread can be sent: a caller may give more than the key.
    find: ({ principal, tool, key }) => ask({ type: "find", key: { principal, tool, key } }),
    claim: (claim) => ask({ type: "claim", claim }),
    async settle(claim, settlement) {
      await ask({ type: "settle", claim: { ...claim, timeMs: clock.now() }, settlement });
    },
    [Symbol.asyncDispose]: () => thread[Symbol.asyncDispose](),
  };
}

interface Waiting {
  resolve(reply: LedgerReply): void;
  reject(error: GatewayError): void;
}

/** The thread with what waits for its answers. One that dies is started anew at the next use. */
class LedgerThread implements AsyncDisposable {
  readonly #options: SqliteLedgerOptions;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #exited: Promise<void> = Promise.resolve();
  #nextId = 0;
  #closed = false;

  constructor(options: SqliteLedgerOptions) {
    this.#options = options;
  }

  ask(operation: LedgerOperation): Promise<LedgerReply> {
    if (this.#closed) return Promise.reject(unavailable("closed"));
    const id = this.#nextId++;
    this.#worker ??= this.#start();
    this.#worker.ref();
    this.#worker.postMessage({ id, operation, nowMs: this.#options.clock.now() } satisfies LedgerRequest, []);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#worker?.postMessage("close" satisfies LedgerRequest, []);
    await this.#exited;
  }

  #start(): Worker {
    const { file, retentionMs, maxEntries, maxBytes, logger } = this.#options;
    const workerData: LedgerWorkerData = { file, limits: { retentionMs, maxEntries, maxBytes } };
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const worker = new Worker(new URL(`./sqlite-ledger-worker.${extension}`, import.meta.url), { workerData });
    worker.on("message", (answer: LedgerAnswer) => this.#take(answer));
    worker.on("error", (error) => logger.error("ledger-thread-failed", { error }));
    this.#exited = new Promise((resolve) => {
      worker.once("exit", () => {
        if (this.#worker === worker) this.#worker = undefined;
        this.#fail([...this.#waiting.keys()], unavailable("its thread ended"));
        resolve();
      });
    });
    return worker;
  }

  #take(answer: LedgerAnswer): void {
    switch (answer.type) {
      case "opened":
        this.#options.logger.info("ledger-opened", { file: this.#options.file, interrupted: answer.interrupted });
        break;
      case "replies":
        for (const [id, reply] of answer.replies) {
          this.#waiting.get(id)?.resolve(reply);
          this.#waiting.delete(id);
        }
        break;
      case "failed":
        this.#options.logger.error("ledger-failed", { code: answer.code, problem: answer.message });
        this.#fail(answer.ids, unavailable(answer.code));
    }
    // Only work in progress keeps the process alive.
    if (this.#waiting.size === 0) this.#worker?.unref();
  }

  #fail(ids: readonly number[], error: GatewayError): void {
    for (const id of ids) {
      this.#waiting.get(id)?.reject(error);
      this.#waiting.delete(id);
    }
  }
}

function unavailable(code: string): GatewayError {
  return new GatewayError(
    "LEDGER_UNAVAILABLE",
    "the record of calls cannot be read or written, so calls with a `request_id` are not made; check the state folder",
    { metadata: code === "" ? {} : { code } },
  );
}
