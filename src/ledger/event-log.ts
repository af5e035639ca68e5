import type { Logger } from "../core/logger.ts";
import type { SpillFile, SpillStore } from "../core/store.ts";

/** What a log keeps of one call's output. */
export interface EventLogLimits {
  /** Kept in memory; over it the older half goes to disk. At least the last event stays in memory, however large. */
  readonly memoryBytes: number;
  /** Kept on disk; over it the oldest is dropped. */
  readonly diskBytes: number;
}

/** How events are measured and written down. */
export interface EventForm<T> {
  /** About what an event takes. */
  bytesOf(event: T): number;
  encode(events: readonly T[]): Uint8Array;
  decode(bytes: Uint8Array): readonly T[];
}

/** What a log is made of. */
export interface EventLogParts<T> extends EventLogLimits {
  readonly form: EventForm<T>;
  readonly spill: SpillStore;
  readonly logger: Logger;
}

/** Events on disk, in one piece. */
interface Chunk {
  /** Sequence of its first event. */
  readonly from: number;
  readonly count: number;
  readonly offset: number;
  readonly length: number;
}

/**
 * The last events of a call, numbered 1, 2, 3, … without gaps: the latest in memory, older ones in a ring on disk, the
 * oldest dropped. Disposing frees both.
 */
export class EventLog<T> implements AsyncDisposable {
  readonly #parts: EventLogParts<T>;
  /** The latest events, without a gap up to the last. */
  #recent: T[] = [];
  #recentBytes = 0;
  #firstRecent = 1;
  /** On disk, in order; those before the recent ones. */
  readonly #chunks: Chunk[] = [];
  #writeOffset = 0;
  #file: SpillFile | undefined;
  #spilling: Promise<void> | undefined;
  #disposed = false;
  /** The chunk that was read last: readers go through one event by event. */
  #readChunk: { readonly chunk: Chunk; readonly events: readonly T[] } | undefined;

  constructor(parts: EventLogParts<T>) {
    this.#parts = parts;
  }

  /** Sequence of the oldest event that is kept; that of the next one where none is. */
  get first(): number {
    return this.#chunks[0]?.from ?? this.#firstRecent;
  }

  /** Sequence the next event gets. */
  get next(): number {
    return this.#firstRecent + this.#recent.length;
  }

  /** Adds an event and returns its sequence. Call {@link settle} before adding many more. */
  append(event: T): number {
    const sequence = this.next;
    this.#recent.push(event);
    this.#recentBytes += this.#parts.form.bytesOf(event);
    return sequence;
  }

  /** Resolves when no more is in memory than there may be. Never rejects: what the disk does not take is dropped. */
  async settle(): Promise<void> {
    while (this.#recentBytes > this.#parts.memoryBytes && this.#recent.length > 1 && !this.#disposed) {
      this.#spilling ??= this.#spillHalf().finally(() => {
        this.#spilling = undefined;
      });
      await this.#spilling;
    }
  }

  /** The event of a sequence from {@link first} on and before {@link next}; `undefined`: it is not kept, or the disk does not give it back. */
  at(sequence: number): T | undefined | Promise<T | undefined> {
    if (sequence >= this.#firstRecent) return this.#recent[sequence - this.#firstRecent];
    const cached = this.#readChunk;
    if (cached !== undefined && holds(cached.chunk, sequence)) return cached.events[sequence - cached.chunk.from];
    return this.#fromDisk(sequence).catch((error: unknown) => {
      this.#parts.logger.warn("call-output-not-read", { error });
      return undefined;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await this.#spilling;
    this.#recent = [];
    this.#chunks.length = 0;
    this.#readChunk = undefined;
    await this.#file?.[Symbol.asyncDispose]();
  }

  async #fromDisk(sequence: number): Promise<T | undefined> {
    const chunk = this.#chunks.find((each) => holds(each, sequence));
    if (chunk === undefined || this.#file === undefined) return undefined;
    const bytes = await this.#file.read(chunk.offset, chunk.length);
    // While it was read, the ring may have come round to it.
    if (bytes.byteLength < chunk.length || !this.#chunks.includes(chunk)) return undefined;
    const events = this.#parts.form.decode(bytes);
    this.#readChunk = { chunk, events };
    return events[sequence - chunk.from];
  }

  async #spillHalf(): Promise<void> {
    const { form, memoryBytes } = this.#parts;
    let bytes = 0;
    let count = 0;
    for (const event of this.#recent.slice(0, -1)) {
      bytes += form.bytesOf(event);
      count += 1;
      if (bytes >= memoryBytes / 2) break;
    }
    const chunk = await this.#write(this.#recent.slice(0, count)).catch((error: unknown) => {
      this.#parts.logger.warn("call-output-not-kept", { error });
      return undefined;
    });
    if (chunk === undefined) this.#chunks.length = 0;
    else this.#chunks.push(chunk);
    this.#recent = this.#recent.slice(count);
    this.#firstRecent += count;
    this.#recentBytes -= bytes;
  }

  /** Writes events into the ring; `undefined`: they are more than it holds. */
  async #write(events: readonly T[]): Promise<Chunk | undefined> {
    const { form, spill, diskBytes } = this.#parts;
    const encoded = form.encode(events);
    const length = encoded.byteLength;
    if (length > diskBytes) return undefined;
    if (this.#writeOffset + length > diskBytes) this.#writeOffset = 0;
    const offset = this.#writeOffset;
    while (this.#chunks[0] !== undefined && this.#isInTheWay(offset, length)) this.#chunks.shift();
    this.#file ??= await spill.open();
    await this.#file.write(encoded, offset);
    this.#writeOffset = offset + length;
    return { from: this.#firstRecent, count: events.length, offset, length };
  }

  /** Whether any chunk has bytes there: then the oldest goes, until none has. */
  #isInTheWay(offset: number, length: number): boolean {
    return this.#chunks.some((chunk) => chunk.offset < offset + length && offset < chunk.offset + chunk.length);
  }
}

function holds({ from, count }: Chunk, sequence: number): boolean {
  return sequence >= from && sequence < from + count;
}
