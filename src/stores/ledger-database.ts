import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import type { LedgerClaim, LedgerEntry, LedgerKey, LedgerSettlement } from "../core/store.ts";

/** Version of the tables; a file of a newer one is left alone. */
const SCHEMA_VERSION = 1;
/** How long another process may hold the file before an operation fails. */
const BUSY_MS = 1_000;
/** Entries forgotten at a time, so that what waits behind it waits little. */
const PRUNE_ROWS = 500;
/** At most so often, in milliseconds of the retention's clock. */
const PRUNE_INTERVAL_MS = 10_000;

const TABLES = `
  CREATE TABLE IF NOT EXISTS call (
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    key TEXT NOT NULL,
    state TEXT NOT NULL,
    digest TEXT NOT NULL,
    call_id TEXT NOT NULL,
    time_ms REAL NOT NULL,
    bytes INTEGER NOT NULL DEFAULT 0,
    outcome TEXT,
    PRIMARY KEY (principal, tool, key)
  );
  CREATE INDEX IF NOT EXISTS call_time ON call (time_ms) WHERE state <> 'running';
`;

/** What a ledger keeps at most. */
export interface LedgerLimits {
  /** How long an entry is kept after its call ended. */
  readonly retentionMs: number;
  readonly maxEntries: number;
  /** Of outcomes; the oldest are dropped over it, their entries stay. */
  readonly maxBytes: number;
}

/** One operation. */
export type LedgerOperation =
  | { readonly type: "find"; readonly key: LedgerKey }
  | { readonly type: "claim"; readonly claim: LedgerClaim }
  | { readonly type: "settle"; readonly claim: LedgerClaim; readonly settlement: LedgerSettlement };

/** What came of it. `full`: a claim was refused for want of room. */
export type LedgerReply = { readonly entry: LedgerEntry | undefined } | "full";

/** The ledger in an SQLite file: synchronous, so at home in a thread of its own. Throws what SQLite throws. */
export class LedgerDatabase implements Disposable {
  /** Calls that were running when the process before this one ended. */
  readonly interrupted: number;
  readonly #database: Database.Database;
  readonly #statements: Statements;
  readonly #limits: LedgerLimits;
  #entries: number;
  #bytes: number;
  #prunedMs = Number.NEGATIVE_INFINITY;

  /** Opens the file, or makes it, at that moment. No other process can open it until this one ends. */
  constructor(file: string, limits: LedgerLimits, nowMs: number) {
    // Outcomes are nobody else's to read.
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    this.#limits = limits;
    this.#database = new Database(file, { timeout: BUSY_MS });
    try {
      this.#prepareFile();
      this.#statements = prepareStatements(this.#database);
      // Whoever ran them is gone, and nobody knows how far they came.
      this.interrupted = this.#statements.interrupt.run(nowMs).changes;
      const [entries, bytes] = numbers(this.#statements.totals.get());
      this.#entries = entries ?? 0;
      this.#bytes = bytes ?? 0;
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /** How many calls are on record. */
  get entries(): number {
    return this.#entries;
  }

  /** Lets the file grow to so many pages, as on a disk that is full then. */
  limitPages(pages: number): void {
    this.#database.pragma(`max_page_count = ${pages}`);
  }

  /** Does all or nothing, durably when it returns. */
  run(operations: readonly LedgerOperation[], nowMs: number): LedgerReply[] {
    const cutoffMs = this.#cutoffMs(nowMs);
    const { type: first } = operations[0] ?? { type: "find" };
    if (operations.length === 1 && first === "find")
      return operations.map((operation) => this.#apply(operation, cutoffMs));
    const before = [this.#entries, this.#bytes] as const;
    try {
      return this.#database
        .transaction(() => operations.map((operation) => this.#apply(operation, cutoffMs)))
        .immediate();
    } catch (error) {
      [this.#entries, this.#bytes] = before;
      throw error;
    }
  }

  /** Forgets some of what is too old or too much; cheap where there is nothing to do. */
  tidy(nowMs: number): void {
    const cutoffMs = this.#cutoffMs(nowMs);
    if (cutoffMs - this.#prunedMs >= PRUNE_INTERVAL_MS) {
      if (this.#forget(cutoffMs) < PRUNE_ROWS) this.#prunedMs = cutoffMs;
    }
    if (this.#bytes <= this.#limits.maxBytes) return;
    this.#database.transaction(() => {
      for (const row of this.#statements.oldest.all()) {
        if (this.#bytes <= this.#limits.maxBytes) return;
        const [id = 0, bytes = 0] = numbers(row);
        this.#statements.drop.run(id);
        this.#bytes -= bytes;
      }
    })();
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  /** What ended before counts as absent. */
  #cutoffMs(nowMs: number): number {
    return nowMs - this.#limits.retentionMs;
  }

  #prepareFile(): void {
    const database = this.#database;
    // Two gateways on one file would each take the other's running calls for interrupted ones.
    database.pragma("locking_mode = EXCLUSIVE");
    database.pragma("journal_mode = WAL");
    database.pragma("synchronous = FULL");
    const version: unknown = database.pragma("user_version", { simple: true });
    if (typeof version === "number" && version > SCHEMA_VERSION) {
      throw new Error(`the ledger has tables of version ${version}, this gateway knows ${SCHEMA_VERSION}`);
    }
    database.exec(TABLES);
    database.pragma(`user_version = ${SCHEMA_VERSION}`);
  }

  #apply(operation: LedgerOperation, cutoffMs: number): LedgerReply {
    switch (operation.type) {
      case "find":
        return { entry: this.#find(operation.key, cutoffMs) };
      case "claim":
        return this.#claim(operation.claim, cutoffMs);
      case "settle":
        this.#settle(operation.claim, operation.settlement);
        return { entry: undefined };
    }
  }

  #find({ principal, tool, key }: LedgerKey, cutoffMs: number): LedgerEntry | undefined {
    return entryOf(this.#statements.find.get({ principal, tool, key, cutoffMs }));
  }

  #claim(claim: LedgerClaim, cutoffMs: number): LedgerReply {
    const entry = this.#find(claim, cutoffMs);
    if (entry !== undefined && entry.callId !== claim.over) return { entry };
    this.#remove(claim);
    if (this.#entries >= this.#limits.maxEntries && this.#forget(cutoffMs) === 0) return "full";
    this.#insert(claim, "running", undefined);
    return { entry: undefined };
  }

  #settle(claim: LedgerClaim, settlement: LedgerSettlement): void {
    this.#remove(claim);
    if (settlement.state === "failed-no-effect") return;
    this.#insert(claim, settlement.state, settlement.state === "committed" ? settlement.outcome : undefined);
  }

  #insert({ principal, tool, key, digest, callId, timeMs }: LedgerClaim, state: string, outcome?: string): void {
    const bytes = outcome === undefined ? 0 : Buffer.byteLength(outcome);
    const row = { principal, tool, key, digest, callId, timeMs, state, bytes, outcome: outcome ?? null };
    this.#statements.insert.run(row);
    this.#entries += 1;
    this.#bytes += bytes;
  }

  #remove({ principal, tool, key }: LedgerKey): void {
    const removed = this.#statements.remove.get({ principal, tool, key });
    if (removed === undefined) return;
    this.#entries -= 1;
    this.#bytes -= numbers(removed)[0] ?? 0;
  }

  #forget(cutoffMs: number): number {
    const forgotten = this.#statements.forget.all(cutoffMs, PRUNE_ROWS);
    this.#entries -= forgotten.length;
    for (const row of forgotten) this.#bytes -= numbers(row)[0] ?? 0;
    return forgotten.length;
  }
}

type Statements = ReturnType<typeof prepareStatements>;

function prepareStatements(database: Database.Database) {
  const named = "principal = @principal AND tool = @tool AND key = @key";
  return {
    interrupt: database.prepare("UPDATE call SET state = 'unknown', time_ms = ? WHERE state = 'running'"),
    totals: database.prepare("SELECT count(*), coalesce(sum(bytes), 0) FROM call").raw(),
    find: database.prepare(
      `SELECT state, digest, call_id, time_ms, outcome FROM call
       WHERE ${named} AND (state = 'running' OR time_ms > @cutoffMs)`,
    ),
    insert: database.prepare(
      `INSERT INTO call (principal, tool, key, state, digest, call_id, time_ms, bytes, outcome)
       VALUES (@principal, @tool, @key, @state, @digest, @callId, @timeMs, @bytes, @outcome)`,
    ),
    remove: database.prepare(`DELETE FROM call WHERE ${named} RETURNING bytes`).raw(),
    forget: database
      .prepare(
        `DELETE FROM call WHERE rowid IN
         (SELECT rowid FROM call WHERE state <> 'running' AND time_ms <= ? ORDER BY time_ms LIMIT ?) RETURNING bytes`,
      )
      .raw(),
    oldest: database
      .prepare(
        `SELECT rowid, bytes FROM call WHERE state <> 'running' AND outcome IS NOT NULL
         ORDER BY time_ms LIMIT ${PRUNE_ROWS}`,
      )
      .raw(),
    drop: database.prepare("UPDATE call SET outcome = NULL, bytes = 0 WHERE rowid = ?"),
  };
}

function numbers(row: unknown): readonly number[] {
  return Array.isArray(row) ? row.map(Number) : [];
}

function entryOf(row: unknown): LedgerEntry | undefined {
  if (typeof row !== "object" || row === null) return undefined;
  const { state, digest, call_id: callId, time_ms: timeMs, outcome } = row as Readonly<Record<string, unknown>>;
  if (state !== "running" && state !== "unknown" && state !== "committed") throw new Error("an entry has no state");
  const known: LedgerEntry = { state, digest: String(digest), callId: String(callId), timeMs: Number(timeMs) };
  return typeof outcome === "string" ? { ...known, outcome } : known;
}
