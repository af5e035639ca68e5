import { GatewayError } from "../core/errors.ts";
import { eventsUntil } from "../core/signal.ts";
import type { CallRequestFacts } from "../wire/call-codec.ts";
import { openCall } from "./call-context.ts";
import type { CallEvent, CallOutput } from "./call-record.ts";
import type { Attachment } from "./kept-calls.ts";
import { type KeptCallDeps, KeptWork } from "./kept-work.ts";
import type { Rpc } from "./rpc.ts";
import { ABORT_GRACE_MS, leaseFor } from "./run-call.ts";
import { TICK, withTicks } from "./ticks.ts";

/** How a stream is to be sent. */
export interface StreamWishes {
  /** Silence before a heartbeat; `undefined`: never one. */
  readonly heartbeatMs: number | undefined;
  /** How long to wait for the caller when the connection is lost; `undefined`: the call ends with it. */
  readonly resumeWindowMs: number | undefined;
}

/** How much longer a reader waits than the call it ended may take, so that it hears what became of it. */
const READER_GRACE_MS = ABORT_GRACE_MS * 2;
/** How long it may take until it is known whether a stream that is no longer read was cancelled or lost. */
const WHY_MS = 1_000;

/** Whether a call is one caller's and one connection's alone: then nothing of it is kept. */
export function isPlain(request: CallRequestFacts, { resumeWindowMs }: StreamWishes): boolean {
  return request.validateOnly || (request.requestId === undefined && resumeWindowMs === undefined);
}

/**
 * Runs a call that has a key or whose stream can be resumed, or joins the one that runs with the same key. The call
 * has the deadline of the caller that began it, and ends early when no caller is left.
 *
 * @throws GatewayError, also for what the call met on its way.
 */
export async function* keptCall(
  request: CallRequestFacts,
  { heartbeatMs, resumeWindowMs }: StreamWishes,
  rpc: Rpc,
  deps: KeptCallDeps,
): AsyncGenerator<CallEvent, void, undefined> {
  const lease = leaseFor(request, rpc, deps);
  let runs = false;
  try {
    using opened = openCall(request, lease.definition, rpc, deps);
    using work = new KeptWork({ request, lease, opened, deps });
    const windowMs = deps.kept.grant(resumeWindowMs);
    const attachment = work.enter(windowMs);
    if (!attachment.joins) {
      // A call in flight keeps its version of the tool, whoever reads it.
      runs = true;
      void attachment.run.done.then(() => lease[Symbol.dispose]());
    }
    const { callId, deadlineMs } = opened.context;
    yield* work.noted(
      startedWith(
        { type: "started", callId, deadlineMs, resumeWindowMs: windowMs },
        follow(attachment, heartbeatMs, rpc, deps),
      ),
    );
  } finally {
    if (!runs) lease[Symbol.dispose]();
  }
}

/**
 * Goes on with a stream after the message of that sequence.
 *
 * @throws GatewayError CALL_NOT_FOUND, RESUME_EXPIRED, and what the call meets.
 */
export async function* resumeCall(
  { callId, after }: { readonly callId: string; readonly after: number },
  heartbeatMs: number | undefined,
  rpc: Rpc,
  deps: KeptCallDeps,
): AsyncGenerator<CallEvent, void, undefined> {
  const attachment = deps.kept.resume(callId, rpc.principal.id, after);
  rpc.accept(callId);
  deps.logger.info("tool-call-resumed", { callId, principal: rpc.principal.id, after });
  yield* follow(attachment, heartbeatMs, rpc, deps);
}

/** The first event and the rest, which is left even where it was not begun. */
async function* startedWith(
  started: CallEvent,
  rest: AsyncGenerator<CallOutput, void, undefined>,
): AsyncGenerator<CallEvent, void, undefined> {
  const first = rest.next();
  // Its error is met when it is waited for.
  first.catch(() => undefined);
  try {
    yield started;
    for (let step = await first; step.done !== true; step = await rest.next()) yield step.value;
  } finally {
    await rest.return();
  }
}

/** What a caller gets of a call, until it ends or the caller goes. */
async function* follow(
  attachment: Attachment,
  heartbeatMs: number | undefined,
  rpc: Rpc,
  { clock }: KeptCallDeps,
): AsyncGenerator<CallOutput, void, undefined> {
  const { reader, run, view, joins } = attachment;
  const leave = (): void => {
    const { signal, lost } = rpc;
    attachment.leave({ reason: GatewayError.from(signal.reason), told: view.cut(signal), lost });
  };
  rpc.signal.addEventListener("abort", leave, { once: true });
  if (rpc.signal.aborted) leave();
  const cutError = (): GatewayError => view.cut(rpc.signal);
  let over = false;
  try {
    const source = heartbeatMs === undefined ? reader : withTicks(reader, heartbeatMs, clock);
    for await (const item of eventsUntil(source, rpc.signal, clock, { graceMs: READER_GRACE_MS, cutError })) {
      if (item === TICK) {
        // Numbered like all else, so that a resumed stream has no gap; the reader finds it next.
        run.note({ type: "heartbeat" });
        continue;
      }
      const { event } = item;
      if (event.type !== "completed") {
        yield event;
        continue;
      }
      over = true;
      yield joins ? view.joined(event) : event;
      return;
    }
    // It was slow to come for the end, and nothing is kept for those who had to leave.
    if (rpc.signal.aborted) throw cutError();
  } catch (error) {
    over = true;
    throw error;
  } finally {
    if (over) {
      rpc.signal.removeEventListener("abort", leave);
      attachment.leave({ reason: new GatewayError("CALL_CANCELLED", "the stream is over") });
    } else leaveWhenKnown(attachment, rpc, leave, clock);
  }
}

/** The reader was stopped before anybody told why: its transport will. */
function leaveWhenKnown(attachment: Attachment, rpc: Rpc, leave: () => void, clock: KeptCallDeps["clock"]): void {
  if (rpc.signal.aborted) return;
  const timer = clock.after(WHY_MS, () => {
    rpc.signal.removeEventListener("abort", leave);
    attachment.leave({ reason: new GatewayError("CALL_CANCELLED", "the caller stopped reading") });
  });
  rpc.signal.addEventListener("abort", () => timer[Symbol.dispose](), { once: true });
}
