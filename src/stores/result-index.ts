import Database from "better-sqlite3";
import type { KeptResult } from "../core/results.ts";

/** Version of the table; a file of another one is begun anew, and its results are forgotten. */
const SCHEMA_VERSION = 1;

/** Results that are kept, and gone ones that are remembered, at most. */
export const MAX_RESULTS = 20_000;
export const MAX_GONE = 20_000;

/** A result on record: kept, or why it is gone. */
export interface IndexedResult extends KeptResult {
  /** Whether its bytes are sealed. */
  readonly sealed: boolean;
  /** Empty: it is kept. */
  readonly gone: string;
}

const TABLE = `
  CREATE TABLE IF NOT EXISTS result (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    media_type TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    complete INTEGER NOT NULL,
    create_time_ms REAL NOT NULL,
    expire_time_ms REAL NOT NULL,
    sealed INTEGER NOT NULL,
    gone TEXT NOT NULL
  ) WITHOUT ROWID;
`;

/**
 * What is on record of results, in an SQLite file. It is not flushed to the disk at each change: after a power cut the
 * last handles may name nothing. Throws what SQLite throws.
 */
export class ResultIndex implements Disposable {
  readonly #database: Database.Database;
  readonly #put: Database.Statement;
  readonly #remove: Database.Statement;

  constructor(file: string) {
    this.#database = new Database(file);
    try {
      this.#database.pragma("journal_mode = WAL");
      this.#database.pragma("synchronous = OFF");
      if (this.#database.pragma("user_version", { simple: true }) !== SCHEMA_VERSION) {
        this.#database.exec("DROP TABLE IF EXISTS result");
      }
      this.#database.exec(TABLE);
      this.#database.pragma(`user_version = ${SCHEMA_VERSION}`);
      this.#put = this.#database.prepare("INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
      this.#remove = this.#database.prepare("DELETE FROM result WHERE id = ?");
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /** All of them, oldest first. */
  load(): readonly IndexedResult[] {
    return this.#database.prepare("SELECT * FROM result ORDER BY create_time_ms, id").all().map(readRow);
  }

  put(result: IndexedResult): void {
    const { id, principal, tool, mediaType, bytes, complete, createTimeMs, expireTimeMs, sealed, gone } = result;
    const flags = { complete: complete ? 1 : 0, sealed: sealed ? 1 : 0 };
    this.#put.run(
      id,
      principal,
      tool,
      mediaType,
      bytes,
      flags.complete,
      createTimeMs,
      expireTimeMs,
      flags.sealed,
      gone,
    );
  }

  remove(id: string): void {
    this.#remove.run(id);
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }
}

function readRow(row: unknown): IndexedResult {
  const value = (name: string): unknown =>
    typeof row === "object" && row !== null ? Object.getOwnPropertyDescriptor(row, name)?.value : undefined;
  return {
    id: String(value("id")),
    principal: String(value("principal")),
    tool: String(value("tool")),
    mediaType: String(value("media_type")),
    bytes: Number(value("bytes")),
    complete: value("complete") === 1,
    createTimeMs: Number(value("create_time_ms")),
    expireTimeMs: Number(value("expire_time_ms")),
    sealed: value("sealed") === 1,
    gone: String(value("gone")),
  };
}
