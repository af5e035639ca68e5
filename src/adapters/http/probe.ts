import type { Socket } from "node:net";
import type { buildConnector } from "undici";
import type { ProbeReport } from "../../core/adapter.ts";
import type { Clock } from "../../core/clock.ts";
import { ConnectProblem, connectProblem } from "../shared/network/connect-problem.ts";
import type { Connector } from "../shared/network/connector.ts";

/** What a probe needs. */
export interface ProbeOptions {
  readonly connector: Connector;
  /** Longest it may take. */
  readonly limitMs: number;
  readonly clock: Clock;
}

const START_OR_CORRECT = "Start the upstream, or correct the host and port of `endpoint`.";

/**
 * Connects to an origin, with TLS where it has it, and closes the connection again: no request is made. Behind a proxy
 * that forwards requests, that is a connection to the proxy alone.
 *
 * @throws the signal's reason.
 */
export async function probeOrigin(options: ProbeOptions, signal: AbortSignal): Promise<ProbeReport> {
  const { connector, limitMs, clock } = options;
  signal.throwIfAborted();
  const startedMs = clock.monotonicMs();
  let top: Socket | undefined;
  let timer: Disposable | undefined;
  let onAbort: (() => void) | undefined;
  try {
    return await new Promise<ProbeReport>((resolve, reject) => {
      const fail = (why: string, mend: string): void =>
        resolve({ ok: false, message: `no connection to ${connector.origin}: ${why}`, mend });
      const onOpen: buildConnector.Callback = (...[error, socket]) => {
        if (socket !== null)
          resolve({ ok: true, message: reachable(connector, Math.round(clock.monotonicMs() - startedMs)), mend: "" });
        else fail(connectProblem(error), error instanceof ConnectProblem ? error.mend : START_OR_CORRECT);
      };
      connector.open(onOpen, (socket) => {
        top = socket.on("error", () => undefined);
      });
      timer = clock.after(limitMs, () => fail(`no answer within ${limitMs} ms`, START_OR_CORRECT));
      onAbort = () => reject(signal.reason as Error);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  } finally {
    timer?.[Symbol.dispose]();
    if (onAbort !== undefined) signal.removeEventListener("abort", onAbort);
    top?.destroy();
  }
}

function reachable({ origin, proxy, forwardingProxy, exception }: Connector, tookMs: number): string {
  if (forwardingProxy !== undefined) {
    const { origin: shown, variable } = forwardingProxy;
    return `proxy ${shown} (${variable}) accepts connections (${tookMs} ms); whether it reaches ${origin} shows a call`;
  }
  const direct = exception === undefined ? "" : ` directly (${exception})`;
  const through = proxy === undefined ? direct : ` through proxy ${proxy.origin} (${proxy.variable})`;
  return `${origin} accepts connections${through} (${tookMs} ms)`;
}
