import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { LedgerDatabase, type LedgerLimits, type LedgerOperation, type LedgerReply } from "./ledger-database.ts";

/** What the worker is started with. */
export interface LedgerWorkerData {
  readonly file: string;
  readonly limits: LedgerLimits;
}

/** To the worker. */
export type LedgerRequest =
  | { readonly id: number; readonly operation: LedgerOperation; readonly nowMs: number }
  | "close";

/** From the worker: replies of one transaction, or why it failed. */
export type LedgerAnswer =
  | { readonly type: "opened"; readonly interrupted: number }
  | { readonly type: "replies"; readonly replies: readonly (readonly [id: number, reply: LedgerReply])[] }
  | { readonly type: "failed"; readonly ids: readonly number[]; readonly code: string; readonly message: string };

// SQLite waits for the disk, which would hold up every call if it happened in the main thread. What arrives during one
// such wait is done in one transaction after it: however many calls there are, the disk is waited for once.
const port = parentPort;
if (port === null) throw new Error("not a worker");
const { file, limits } = workerData as LedgerWorkerData;
let database: LedgerDatabase | undefined;

function say(answer: LedgerAnswer): void {
  port?.postMessage(answer);
}

function open(nowMs: number): LedgerDatabase {
  if (database !== undefined) return database;
  const opened = new LedgerDatabase(file, limits, nowMs);
  database = opened;
  say({ type: "opened", interrupted: opened.interrupted });
  return opened;
}

/** A file that failed once is opened anew the next time. */
function close(): void {
  try {
    database?.[Symbol.dispose]();
  } finally {
    database = undefined;
  }
}

function waiting(first: LedgerRequest): LedgerRequest[] {
  const requests = [first];
  for (;;) {
    const next = port === null ? undefined : receiveMessageOnPort(port);
    if (next === undefined) return requests;
    requests.push(next.message as LedgerRequest);
  }
}

function serve(requests: readonly Exclude<LedgerRequest, "close">[]): void {
  const nowMs = requests.at(-1)?.nowMs ?? 0;
  try {
    const opened = open(nowMs);
    const operations = requests.map(({ operation }) => operation);
    const replies = opened.run(operations, nowMs);
    say({ type: "replies", replies: requests.flatMap(({ id }, i) => pair(id, replies[i])) });
    opened.tidy(nowMs);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    // A full disk fails one transaction and leaves the file in order; a lock held by another process passes.
    if (code !== "SQLITE_FULL") close();
    say({ type: "failed", ids: requests.map(({ id }) => id), code, message: String(error) });
  }
}

function pair(id: number, reply: LedgerReply | undefined): (readonly [number, LedgerReply])[] {
  return reply === undefined ? [] : [[id, reply]];
}

port.on("message", (first: LedgerRequest) => {
  const requests = waiting(first);
  const work = requests.filter((request) => request !== "close");
  if (work.length > 0) serve(work);
  if (work.length === requests.length) return;
  close();
  port.close();
});
