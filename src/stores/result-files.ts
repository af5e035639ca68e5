import { randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open as openFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import type { Principal } from "../core/principal.ts";
import {
  idOfHandle,
  type KeepOutcome,
  type ResultOrigin,
  type ResultSource,
  type ResultStore,
  type ResultWriter,
  resultGone,
  resultNotFound,
} from "../core/results.ts";
import type { SecretSource } from "../core/secrets.ts";
import { type ChunkCipher, PLAIN_CHUNKS, parseKey, sealedChunks } from "./result-cipher.ts";
import { type IndexedResult, ResultIndex } from "./result-index.ts";
import { factsOf, ResultShelf, type ShelfLimits } from "./result-shelf.ts";
import { openResult } from "./result-source.ts";
import { FileWriter } from "./result-writer.ts";

/** Bytes of an id: 144 bits that nobody guesses. */
const ID_BYTES = 18;

const INDEX = "index.db";

/** What a store of results is made of. */
export interface ResultFilesOptions extends ShelfLimits {
  /** A folder of its own; made at the first use. */
  readonly folder: string;
  readonly ttlMs: number;
  /** Reference of the key that results are sealed with; undefined: they are not sealed. */
  readonly keyRef: string | undefined;
  readonly secrets: Pick<SecretSource, "fresh" | "resolve">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Opens a file to be written. Default: as Node.js does. */
  readonly open?: (path: string, flags: string, mode: number) => Promise<FileHandle>;
}

/**
 * Keeps results in files of a folder, which only the gateway's user can read, and what is on record of them in an index
 * beside them, so that both outlive the process. What the index does not name is removed at the start.
 */
export class ResultFiles implements ResultStore {
  readonly #options: ResultFilesOptions;
  #started: Promise<ResultShelf | undefined> | undefined;
  #index: ResultIndex | undefined;
  #sweep: Disposable | undefined;
  readonly #stop = new AbortController();

  constructor(options: ResultFilesOptions) {
    this.#options = options;
  }

  /** Reads the index and removes what is over. Nothing is read or removed before this or the first use. Never rejects. */
  async start(): Promise<void> {
    await this.#ready;
  }

  create(origin: ResultOrigin): ResultWriter {
    const id = randomBytes(ID_BYTES).toString("base64url");
    const { open = openFile, folder, logger } = this.#options;
    return new FileWriter({
      id,
      logger,
      open: async () => {
        const shelf = await this.#ready;
        if (shelf === undefined || this.#stop.signal.aborted) throw new Error("the store of results is not open");
        await this.#keyAtHand();
        const cipher = this.#cipherFor(id);
        return { file: await open(this.#path(id), "wx", 0o600), cipher };
      },
      take: (bytes) => this.#take(origin.principal, bytes),
      giveBack: (bytes) => void this.#ready.then((shelf) => shelf?.giveBack(origin.principal, bytes)),
      remove: () => rm(join(folder, id), { force: true }).catch(() => undefined),
      finish: (bytes, complete) => this.#finish({ ...origin, id, bytes, complete }),
    });
  }

  async open(handle: string, { id: principal }: Principal): Promise<ResultSource> {
    const id = idOfHandle(handle);
    const shelf = await this.#ready;
    if (id === undefined || shelf === undefined) throw resultNotFound(handle);
    this.#expire(shelf);
    const kept = shelf.find(id);
    const known = kept ?? shelf.findGone(id);
    // Whose it is comes first: to others it must look as if it had never been.
    if (known === undefined || known.principal !== principal) throw resultNotFound(handle);
    if (kept === undefined) throw resultGone(handle, known.tool, known.gone);
    try {
      await this.#keyAtHand();
      const file = await openFile(this.#path(id), "r");
      return openResult(factsOf(kept), file, this.#cipherOf(kept), () => this.#damaged(shelf, kept));
    } catch (error) {
      this.#options.logger.error("result-unreadable", { id, error });
      this.#damaged(shelf, kept);
      throw resultGone(handle, kept.tool, "it cannot be read");
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new GatewayError("GATEWAY_STOPPING", "the gateway is stopping"));
    this.#sweep?.[Symbol.dispose]();
    await this.#started;
    this.#index?.[Symbol.dispose]();
    this.#index = undefined;
  }

  get #ready(): Promise<ResultShelf | undefined> {
    this.#started ??= this.#prepare();
    return this.#started;
  }

  async #prepare(): Promise<ResultShelf | undefined> {
    const { folder, logger } = this.#options;
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      // SQLite gives its other files the mode of the first.
      await openFile(join(folder, INDEX), "a", 0o600).then((file) => file.close());
      this.#index = new ResultIndex(join(folder, INDEX));
      const shelf = new ResultShelf(this.#index, this.#options);
      shelf.expire(this.#options.clock.now());
      await this.#removeStrays(shelf.ids);
      this.#arm(shelf);
      return shelf;
    } catch (error) {
      logger.error("result-store-unusable", { error });
      return undefined;
    }
  }

  /** Removes what the index does not name: what was being written when the process ended, and what is over. */
  async #removeStrays(ids: ReadonlySet<string>): Promise<void> {
    const { folder } = this.#options;
    for (const name of await readdir(folder)) {
      if (!ids.has(name) && !name.startsWith(INDEX)) await rm(join(folder, name), { force: true, recursive: true });
    }
  }

  async #take(principal: string, bytes: number): Promise<boolean> {
    const shelf = await this.#ready;
    if (shelf === undefined || this.#stop.signal.aborted) return false;
    this.#expire(shelf);
    const { taken, evicted } = shelf.take(principal, bytes);
    this.#removeFiles(evicted);
    return taken;
  }

  async #finish(facts: ResultOrigin & Pick<IndexedResult, "id" | "bytes" | "complete">): Promise<KeepOutcome> {
    const shelf = await this.#ready;
    if (shelf === undefined || this.#stop.signal.aborted) throw new Error("the store of results is not open");
    const now = this.#options.clock.now();
    const { ttlMs, keyRef } = this.#options;
    const result = { ...facts, createTimeMs: now, expireTimeMs: now + ttlMs, sealed: keyRef !== undefined, gone: "" };
    shelf.add(result);
    this.#arm(shelf);
    return { ok: true, kept: factsOf(result) };
  }

  #expire(shelf: ResultShelf): void {
    this.#removeFiles(shelf.expire(this.#options.clock.now()));
  }

  #damaged(shelf: ResultShelf, result: IndexedResult): void {
    if (this.#stop.signal.aborted) return;
    shelf.damaged(result);
    this.#removeFiles([result.id]);
  }

  /** Sees to it that what is over goes in time. */
  #arm(shelf: ResultShelf): void {
    const { clock } = this.#options;
    const nextMs = shelf.nextExpiryMs;
    if (this.#stop.signal.aborted || this.#sweep !== undefined || nextMs === undefined) return;
    this.#sweep = clock.after(Math.max(0, nextMs - clock.now()), () => {
      this.#sweep = undefined;
      this.#expire(shelf);
      this.#arm(shelf);
    });
  }

  #removeFiles(ids: readonly string[]): void {
    for (const id of ids) {
      // What cannot be removed now is at the next start.
      void rm(this.#path(id), { force: true }).catch(() => undefined);
    }
  }

  #cipherOf({ id, sealed }: IndexedResult): ChunkCipher {
    return sealed ? this.#sealing(id) : PLAIN_CHUNKS;
  }

  #cipherFor(id: string): ChunkCipher {
    return this.#options.keyRef === undefined ? PLAIN_CHUNKS : this.#sealing(id);
  }

  /** Some secrets take time to get. */
  async #keyAtHand(): Promise<void> {
    const { keyRef, secrets } = this.#options;
    if (keyRef !== undefined) await secrets.fresh([keyRef], this.#stop.signal);
  }

  /** Read each time, so that a key that was missing at the start is found later. */
  #sealing(id: string): ChunkCipher {
    const { keyRef = "", secrets } = this.#options;
    const key = parseKey(secrets.resolve(keyRef));
    if (key === undefined) throw new Error(`secret ${keyRef} is no key: 32 bytes in hexadecimal digits or base64`);
    return sealedChunks(key, id);
  }

  #path(id: string): string {
    return join(this.#options.folder, id);
  }
}
