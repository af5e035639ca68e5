import { GatewayError } from "../core/errors.ts";
import type { EventLog } from "./event-log.ts";

/** How far a call may run ahead of its quickest reader. */
const AHEAD_BYTES = 64 * 1024;

/** An event with its place in the call's output: 1, 2, 3, … without gaps. */
export interface Numbered<T> {
  readonly sequence: number;
  readonly event: T;
}

/** What a running call is made of. */
export interface RunningCallParts<T> {
  /** The work; begun at once, ends with its signal. */
  readonly run: (signal: AbortSignal) => AsyncIterable<T>;
  readonly log: EventLog<T>;
  bytesOf(event: T): number;
  /** Whether this event ends the call well. */
  isLast(event: T): boolean;
  /** Most bytes that pile up while nobody reads. */
  readonly heldBytes: number;
}

/** One reader of a running call. */
export interface CallReader<T> extends AsyncIterable<Numbered<T>> {
  /**
   * The reader goes. If others read or wait, the call goes on and this reader ends with `told`, by default the reason; if
   * not, the call is ended with the reason, and this reader hears how it ended. Called twice, it happens once.
   */
  leave(reason: GatewayError, told?: GatewayError): void;
}

/**
 * A call whose output several readers follow, each from where it likes: it runs once, and ends early when nobody reads
 * or holds it any more. It runs no further than 64 KiB ahead of its quickest reader.
 */
export class RunningCall<T> {
  readonly #parts: RunningCallParts<T>;
  readonly #controller = new AbortController();
  readonly #readers = new Set<Reader<T>>();
  /** Sizes of the events that no reader has taken, in order. */
  readonly #untaken: number[] = [];
  #untakenBytes = 0;
  /** Sequence of the last event that a reader has taken. */
  #taken = 0;
  #holds = 0;
  #end: { readonly error: GatewayError | undefined } | undefined;
  #waiting: (() => void)[] = [];
  /** Resolves when the work is over and nothing of it goes on. */
  readonly done: Promise<void>;

  constructor(parts: RunningCallParts<T>) {
    this.#parts = parts;
    this.done = this.#pump();
  }

  get ended(): boolean {
    return this.#end !== undefined;
  }

  /** Whether it is being ended. */
  get aborted(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Sequence of the oldest event that is kept. */
  get first(): number {
    return this.#parts.log.first;
  }

  /** Reads on after a sequence; 0: from the beginning. Reading begins with the iteration, being counted with this. */
  attach(after: number): CallReader<T> {
    const reader = new Reader(this, after);
    this.#readers.add(reader);
    this.#wake();
    return reader;
  }

  /** Keeps the call running without a reader until it is let go; then the call ends with the reason if nobody is left. */
  hold(): { letGo(reason: GatewayError): void } {
    let held = true;
    this.#holds += 1;
    return {
      letGo: (reason) => {
        if (!held) return;
        held = false;
        this.#holds -= 1;
        if (this.#isAlone()) this.abort(reason);
      },
    };
  }

  /** Ends the call. */
  abort(reason: GatewayError): void {
    this.#controller.abort(reason);
    this.#wake();
  }

  /** Adds an event from outside the work, such as a sign of life, where that is still of use. */
  note(event: T): void {
    if (this.#end !== undefined) return;
    this.#append(event);
    this.#wake();
  }

  /** Whether no one but this reader is left. */
  isAlone(reader: Reader<T>): boolean {
    return this.#holds === 0 && [...this.#readers].every((each) => each === reader);
  }

  remove(reader: Reader<T>): void {
    this.#readers.delete(reader);
    this.#wake();
  }

  /**
   * The next event for a reader, or `undefined` at the end.
   *
   * @throws GatewayError how the call ended, or RESUME_EXPIRED where the event is not kept.
   */
  async nextFor(reader: Reader<T>): Promise<Numbered<T> | undefined> {
    while (true) {
      if (reader.gone !== undefined) throw reader.gone;
      const sequence = reader.after + 1;
      const { log } = this.#parts;
      if (sequence < log.next) {
        const event = sequence < log.first ? undefined : await log.at(sequence);
        if (event === undefined) throw notKept(sequence);
        this.#take(sequence);
        return { sequence, event };
      }
      if (this.#end !== undefined) {
        if (this.#end.error !== undefined) throw this.#end.error;
        return undefined;
      }
      await this.#change();
    }
  }

  #isAlone(): boolean {
    return this.#holds === 0 && this.#readers.size === 0;
  }

  async #pump(): Promise<void> {
    const { signal } = this.#controller;
    const { run, log, isLast } = this.#parts;
    // The maker of the call attaches the first reader before anything happens.
    await Promise.resolve();
    try {
      for await (const event of run(signal)) {
        if (this.#end !== undefined) continue;
        this.#append(event);
        if (isLast(event)) this.#end = { error: undefined };
        this.#wake();
        await log.settle();
        while (this.#isFull()) await this.#change();
      }
      this.#end ??= { error: undefined };
    } catch (error) {
      this.#end ??= { error: GatewayError.from(error) };
    }
    this.#wake();
  }

  #append(event: T): void {
    const bytes = this.#parts.bytesOf(event);
    this.#parts.log.append(event);
    this.#untaken.push(bytes);
    this.#untakenBytes += bytes;
  }

  #isFull(): boolean {
    if (this.#controller.signal.aborted || this.#end !== undefined) return false;
    return this.#untakenBytes >= (this.#readers.size > 0 ? AHEAD_BYTES : this.#parts.heldBytes);
  }

  #take(sequence: number): void {
    if (sequence <= this.#taken) return;
    for (; this.#taken < sequence; this.#taken++) this.#untakenBytes -= this.#untaken.shift() ?? 0;
    this.#wake();
  }

  /** Resolves when something happened. */
  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

class Reader<T> implements CallReader<T> {
  /** Sequence of the last event it was given. */
  after: number;
  /** Why it ends before the call. */
  gone: GatewayError | undefined;
  readonly #call: RunningCall<T>;
  #left = false;

  constructor(call: RunningCall<T>, after: number) {
    this.#call = call;
    this.after = after;
  }

  leave(reason: GatewayError, told = reason): void {
    if (this.#left) return;
    this.#left = true;
    if (!this.#call.ended && this.#call.isAlone(this)) {
      this.#call.abort(reason);
      return;
    }
    this.gone = told;
    this.#call.remove(this);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Numbered<T>, void, undefined> {
    while (true) {
      const next = await this.#call.nextFor(this);
      if (next === undefined) return;
      this.after = next.sequence;
      yield next;
    }
  }
}

function notKept(sequence: number): GatewayError {
  return new GatewayError(
    "RESUME_EXPIRED",
    `message ${sequence} of the stream is no longer kept: the reader is too far behind; \`resume.call_memory\` and \`resume.call_disk\` in gateway.yaml say how much is kept`,
    { effect: "unknown", metadata: { sequence: String(sequence) } },
  );
}
