import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import type { LedgerKey, LedgerStore, SpillStore } from "../core/store.ts";
import { CallLedger, requestIdReused } from "../ledger/call-ledger.ts";
import { EventLog } from "../ledger/event-log.ts";
import { type CallReader, RunningCall } from "../ledger/running-call.ts";
import { OUTPUT_FORM } from "./call-output-form.ts";
import type { CallEnd, CallOutput } from "./call-record.ts";
import { beyondStream, callNotFound, notResumed, resumeExpired } from "./resume-errors.ts";
import { gatewayStopping } from "./rpc.ts";

/** What can be resumed, and for how long. */
export interface ResumeLimits {
  /** Longest time a lost stream waits for its caller, whatever it asks; 0: none does. */
  readonly windowMs: number;
  /** Of one call's output, in memory and on disk. */
  readonly callMemoryBytes: number;
  readonly callDiskBytes: number;
  /** Streams at a time that can be resumed. */
  readonly calls: number;
}

/** What keeping calls takes. Both stores are disposed with it. */
export interface KeptCallsOptions {
  readonly store: LedgerStore;
  readonly spill: SpillStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly resume: ResumeLimits;
}

/** A call that is to be kept. */
export interface KeptCall {
  readonly callId: string;
  readonly principal: string;
  /** The call's key with the digest of its arguments; `undefined`: it has none. */
  readonly keyed: (LedgerKey & { readonly digest: string }) | undefined;
  /** What was granted by {@link KeptCalls.grant}. */
  readonly windowMs: number | undefined;
  /** What its caller is to see of it. */
  readonly view: CallerView;
  /** Runs it, when the calls of the same key that cannot be joined any more are gone; `undefined`: there are none. */
  run(signal: AbortSignal, before: Promise<void> | undefined): AsyncIterable<CallOutput>;
  /** Resolves when nothing of its run goes on, its record neither. */
  readonly gone: Promise<void>;
}

/** A call as one of its callers sees it. */
export interface CallerView {
  /** The end of a call that this caller joined. */
  joined(end: CallEnd): CallEnd;
  /** What to say where the signal ended the reading. */
  cut(signal: AbortSignal): GatewayError;
}

/** A caller's place at a call. */
export interface Attachment {
  readonly reader: CallReader<CallOutput>;
  readonly run: RunningCall<CallOutput>;
  /** Id of the call that runs, which is another's where this one joined it. */
  readonly runnerId: string;
  /** Whether the call is another's. */
  readonly joins: boolean;
  readonly view: CallerView;
  leave(why: Leaving): void;
}

/** Why a caller goes. */
export interface Leaving {
  /** What the call is ended with where nobody else is left. */
  readonly reason: GatewayError;
  /** What the caller is told where somebody is; default the reason. */
  readonly told?: GatewayError;
  /** It did not ask for it, so it may come back where it asked for that before. Default false. */
  readonly lost?: boolean;
}

/** Ids of calls that cannot be resumed any more, remembered to say so. */
const MAX_EXPIRED = 10_000;

interface Run {
  readonly callId: string;
  readonly digest: string | undefined;
  readonly call: RunningCall<CallOutput>;
  readonly log: EventLog<CallOutput>;
  /** Resolves when nothing of it goes on, nor of those that it waits for. */
  readonly gone: Promise<void>;
  /** Whether its readers have its end. */
  over: boolean;
  /** Readers and streams that need its output. */
  users: number;
}

/** A streamed call that can be resumed. */
interface Stream {
  readonly callId: string;
  readonly principal: string;
  readonly windowMs: number;
  readonly run: Run;
  readonly view: CallerView;
  current: Attachment | undefined;
  hold: { letGo(reason: GatewayError): void } | undefined;
  timer: Disposable | undefined;
}

/**
 * Calls that are more than one caller's or one connection's: those with a key, which others with the same key join, and
 * those whose stream can be resumed. All that is kept is bounded, in number, in size and in time.
 */
export class KeptCalls implements AsyncDisposable {
  readonly ledger: CallLedger;
  readonly #options: KeptCallsOptions;
  readonly #runs = new Set<Run>();
  readonly #byKey = new Map<string, Run>();
  readonly #streams = new Map<string, Stream>();
  /** Call id to principal, oldest first. */
  readonly #expired = new Map<string, string>();

  constructor(options: KeptCallsOptions) {
    this.#options = options;
    this.ledger = new CallLedger(options);
  }

  /** How long a stream can be kept whose caller asks for so long; `undefined`: not at all. */
  grant(askedMs: number | undefined): number | undefined {
    const { windowMs, calls } = this.#options.resume;
    if (askedMs === undefined || windowMs === 0) return undefined;
    if (this.#streams.size >= calls) this.#forgetEnded();
    return this.#streams.size >= calls ? undefined : Math.min(askedMs, windowMs);
  }

  /**
   * Joins the running call of the same key, or runs this one: after that one, where it is being ended or its beginning
   * is not kept.
   *
   * @throws GatewayError REQUEST_ID_REUSED.
   */
  enter(call: KeptCall): Attachment {
    const { keyed } = call;
    const before = keyed === undefined ? undefined : this.#byKey.get(idOf(keyed));
    if (keyed !== undefined && before !== undefined && before.digest !== keyed.digest) throw requestIdReused(keyed);
    const run = before !== undefined && isJoinable(before) ? before : this.#start(call, before?.gone);
    const attachment = this.#attach(run, call, 0);
    if (call.windowMs === undefined) return attachment;
    const { callId, principal, windowMs, view } = call;
    run.users += 1;
    const idle = { current: undefined, hold: undefined, timer: undefined };
    const stream: Stream = { callId, principal, windowMs, run, view, ...idle };
    this.#streams.set(callId, stream);
    return this.#watched(stream, attachment);
  }

  /**
   * Goes on with a stream after a sequence. Whoever reads it still is sent away.
   *
   * @throws GatewayError CALL_NOT_FOUND, RESUME_EXPIRED.
   */
  resume(callId: string, principal: string, after: number): Attachment {
    const stream = this.#streams.get(callId);
    if (stream === undefined || stream.principal !== principal) {
      throw this.#expired.get(callId) === principal ? resumeExpired(callId) : callNotFound(callId);
    }
    const { run } = stream;
    if (after >= run.log.next) throw beyondStream(run.log.next - 1);
    if (after + 1 < run.call.first) throw resumeExpired(callId);
    stream.timer?.[Symbol.dispose]();
    const before = stream.current;
    const attachment = this.#watched(stream, this.#attach(run, stream, after));
    const reason = new GatewayError("CALL_CANCELLED", "the stream was resumed on another connection");
    // The call goes on, so its old reader cannot know what it does.
    before?.leave({ reason, told: stream.view.cut(AbortSignal.abort(reason)) });
    stream.hold?.letGo(notResumed(stream.windowMs));
    stream.hold = undefined;
    return attachment;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { call } of this.#runs) call.abort(gatewayStopping());
    await Promise.all([...this.#runs].map(({ call }) => call.done));
    for (const stream of this.#streams.values()) this.#forget(stream, notResumed(stream.windowMs));
    await Promise.all([...this.#runs].map(({ log }) => log[Symbol.asyncDispose]()));
    await this.#options.spill[Symbol.asyncDispose]();
    await this.#options.store[Symbol.asyncDispose]();
  }

  #start(call: KeptCall, before: Promise<void> | undefined): Run {
    const { resume, spill, logger } = this.#options;
    const limits = { memoryBytes: resume.callMemoryBytes, diskBytes: resume.callDiskBytes };
    const log = new EventLog<CallOutput>({ ...limits, form: OUTPUT_FORM, spill, logger });
    const running = new RunningCall<CallOutput>({
      run: (signal) => call.run(signal, before),
      log,
      bytesOf: OUTPUT_FORM.bytesOf,
      isLast: ({ type }) => type === "completed",
      heldBytes: (limits.memoryBytes + limits.diskBytes) / 2,
    });
    const { callId, keyed } = call;
    const gone = Promise.all([before, call.gone]).then(() => undefined);
    const run: Run = { callId, digest: keyed?.digest, call: running, log, gone, over: false, users: 1 };
    this.#runs.add(run);
    void running.done.then(() => {
      run.over = true;
      this.#release(run);
    });
    if (keyed !== undefined) this.#takeKey(idOf(keyed), run);
    return run;
  }

  #takeKey(id: string, run: Run): void {
    this.#byKey.set(id, run);
    void run.gone.then(() => {
      // Another may wait for it under the same key by now.
      if (this.#byKey.get(id) === run) this.#byKey.delete(id);
    });
  }

  #attach(run: Run, { callId, view }: Pick<KeptCall, "callId" | "view">, after: number): Attachment {
    const reader = run.call.attach(after);
    run.users += 1;
    let left = false;
    return {
      reader,
      run: run.call,
      runnerId: run.callId,
      joins: run.callId !== callId,
      view,
      leave: ({ reason, told }) => {
        if (left) return;
        left = true;
        reader.leave(reason, told);
        this.#release(run);
      },
    };
  }

  /** The attachment of a stream that waits for its caller when the connection is lost, and a while after its end. */
  #watched(stream: Stream, attachment: Attachment): Attachment {
    const watched: Attachment = {
      ...attachment,
      leave: (why) => {
        const { reason, lost = false } = why;
        if (stream.current === watched) {
          stream.current = undefined;
          if (lost && !attachment.run.ended) stream.hold = attachment.run.hold();
          if (lost || attachment.run.ended) this.#forgetLater(stream);
          else this.#forget(stream, reason);
        }
        attachment.leave(why);
      },
    };
    stream.current = watched;
    return watched;
  }

  #forgetLater(stream: Stream): void {
    const { windowMs } = stream;
    stream.timer = this.#options.clock.after(windowMs, () => this.#forget(stream, notResumed(windowMs)));
  }

  #forget(stream: Stream, reason: GatewayError): void {
    stream.timer?.[Symbol.dispose]();
    if (!this.#streams.delete(stream.callId)) return;
    this.#expired.set(stream.callId, stream.principal);
    for (const oldest of this.#expired.keys()) {
      if (this.#expired.size <= MAX_EXPIRED) break;
      this.#expired.delete(oldest);
    }
    stream.hold?.letGo(reason);
    this.#release(stream.run);
  }

  /** Makes room: a call that ended and is kept for a caller that most likely has read it. */
  #forgetEnded(): void {
    for (const stream of this.#streams.values()) {
      if (!stream.run.call.ended || stream.current !== undefined) continue;
      this.#forget(stream, notResumed(stream.windowMs));
      return;
    }
  }

  #release(run: Run): void {
    run.users -= 1;
    if (run.users > 0 || !this.#runs.delete(run)) return;
    void run.log[Symbol.asyncDispose]();
  }
}

/** Whether a caller that joins it gets the whole output, and an end that is not that of those who left it. */
function isJoinable({ call, over }: Run): boolean {
  return !over && !call.aborted && call.first === 1;
}

function idOf({ principal, tool, key }: LedgerKey): string {
  return JSON.stringify([principal, tool, key]);
}
