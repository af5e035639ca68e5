import type { ProbeReport } from "../../core/adapter.ts";
import type { Clock } from "../../core/clock.ts";
import { connectProblem } from "./lost-call.ts";
import { openSocket, readyEvent, socketTarget } from "./socket.ts";

/** What a probe needs. */
export interface ProbeOptions {
  readonly origin: string;
  /** Longest it may take. */
  readonly limitMs: number;
  readonly clock: Clock;
}

/**
 * Connects to an origin, with TLS where it has it, and closes the connection again: no request is made.
 *
 * @throws the signal's reason.
 */
export async function probeOrigin({ origin, limitMs, clock }: ProbeOptions, signal: AbortSignal): Promise<ProbeReport> {
  signal.throwIfAborted();
  const target = socketTarget(origin);
  const socket = openSocket(target, undefined);
  const startedMs = clock.monotonicMs();
  let timer: Disposable | undefined;
  let onAbort: (() => void) | undefined;
  try {
    return await new Promise<ProbeReport>((resolve, reject) => {
      const fail = (why: string): void => resolve(unreachable(origin, why));
      socket.once(readyEvent(target), () => {
        const tookMs = Math.round(clock.monotonicMs() - startedMs);
        resolve({ ok: true, message: `${origin} accepts connections (${tookMs} ms)`, mend: "" });
      });
      socket.once("error", (error: Error) => fail(connectProblem(error)));
      timer = clock.after(limitMs, () => fail(`no answer within ${limitMs} ms`));
      onAbort = () => reject(signal.reason as Error);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  } finally {
    timer?.[Symbol.dispose]();
    if (onAbort !== undefined) signal.removeEventListener("abort", onAbort);
    socket.on("error", () => undefined);
    socket.destroy();
  }
}

function unreachable(origin: string, why: string): ProbeReport {
  return {
    ok: false,
    message: `no connection to ${origin}: ${why}`,
    mend: "Start the upstream, or correct the host and port of `endpoint`.",
  };
}
