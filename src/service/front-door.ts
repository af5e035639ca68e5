import { type Clock, sleep } from "../core/clock.ts";
import type { ListenAddress } from "../core/listen-address.ts";
import type { Logger } from "../core/logger.ts";
import type { AuditTrail, CallWatch } from "../core/observation.ts";
import type { CheckResult, ToolRegistry } from "../core/registry.ts";
import type { ResultReader } from "../core/results.ts";
import { type Authenticate, authenticateNobody } from "./authenticate.ts";
import type { CertificateFiles } from "./certificate.ts";
import { createConnectFront } from "./connect-front.ts";
import { type ConnectionLimits, DEFAULT_CONNECTION_LIMITS } from "./connection-limits.ts";
import type { FrontOptions } from "./front-options.ts";
import { GrpcFront } from "./grpc/grpc-front.ts";
import { ServingState } from "./health.ts";
import { type Answer, createHttpRoutes } from "./http-routes.ts";
import type { KeptCalls } from "./kept-calls.ts";
import type { Listener, NodeRequest } from "./listener.ts";
import { answerMetrics, type MetricsRouteOptions } from "./metrics-route.ts";
import { guardOrigins } from "./origin-guard.ts";
import { createPortListener } from "./port-listener.ts";
import { gatewayStopping, LiveRpcs } from "./rpc.ts";
import { registerServices } from "./services.ts";
import type { Keepalive } from "./sessions.ts";
import { UnreadAnswers } from "./unread-answers.ts";

/** What a front door needs. */
export interface FrontDoorOptions {
  readonly registry: ToolRegistry;
  /** Stays the caller's: the door does not dispose it. */
  readonly kept: KeptCalls;
  /** Absent: no result is ever kept. */
  readonly results?: ResultReader | undefined;
  /** Default: everybody is the anonymous operator. */
  readonly authenticate?: Authenticate;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Watches calls. */
  readonly watch?: CallWatch | undefined;
  /** Takes down what administrators do, and who was refused. */
  readonly audit?: AuditTrail | undefined;
  /** What the gateway finds of itself, besides its tools; `/readyz` tells what is not well. Default: nothing. */
  readonly selfChecks?: () => readonly CheckResult[];
  /** Absent: there is no `/metrics`. */
  readonly metrics?: MetricsRouteOptions["metrics"] | undefined;
  /** Of the gateway. */
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  readonly listen: ListenAddress;
  /** Default: plaintext. Without effect on a Unix socket. */
  readonly tls?: CertificateFiles;
  readonly limits: {
    /** Largest request message. */
    readonly requestBytes: number;
    /** Longest deadline of a call, whatever a caller asks. */
    readonly deadlineMs: number;
    /** Most streams of one HTTP/2 connection at a time. */
    readonly concurrentStreams: number;
  };
  readonly keepalive: Keepalive;
  /** How long running calls may go on after a stop was asked for. */
  readonly drainMs: number;
  /** Whether server reflection is served. */
  readonly reflection: boolean;
  /** Of which a caller needs one to register tools. Default: the operator's. */
  readonly registrationRoles?: readonly string[];
  /** Origins whose pages may call from a browser. Default: none. */
  readonly allowedOrigins?: readonly string[];
  /** Where a connection's bounds differ from the defaults. */
  readonly connection?: Partial<ConnectionLimits>;
}

/** The gateway's one port with everything on it. */
export interface FrontDoor extends AsyncDisposable {
  /** Opens the port; resolves to its real address. @throws GatewayError where port or certificate do not allow it. */
  listen(): Promise<ListenAddress>;
  /** Whether the gateway takes calls: what health and `/readyz` say. Not ready at first. */
  setReady(ready: boolean): void;
  /**
   * Health says not serving; the port closes and peers are told to go away; streams without an end of their own end;
   * calls go on for up to `drainMs`, then end with GATEWAY_STOPPING; every connection is closed. Asked for twice, it
   * happens once.
   */
  stop(): Promise<void>;
}

/** Makes the front door of a gateway; nothing is opened before `listen`. */
export function createFrontDoor(options: FrontDoorOptions): FrontDoor {
  const { clock, logger, limits } = options;
  const connection = { ...DEFAULT_CONNECTION_LIMITS, ...options.connection };
  const state = new ServingState();
  const live = new LiveRpcs(clock, connection);
  const lifetime = new AbortController();
  const fronts: FrontOptions = {
    authenticate: options.authenticate ?? authenticateNobody,
    logger,
    rpcs: { clock, live, resetGraceMs: connection.resetGraceMs },
    requestBytes: limits.requestBytes,
    unread: new UnreadAnswers(connection.unreadAnswerBytes),
    shown: new WeakMap(),
  };
  const grpc = new GrpcFront(fronts);
  const connect = createConnectFront({
    ...fronts,
    routes: (router) =>
      registerServices(
        {
          service(service, implementation) {
            router.service(service, implementation);
            grpc.service(service, implementation);
          },
        },
        { ...options, state, lifetime: lifetime.signal },
      ),
    fallback: createHttpRoutes(state, options.selfChecks, metricsRoute(options, fronts)),
  });
  const listener = createPortListener({
    address: options.listen,
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    handler: guardOrigins(options.allowedOrigins ?? [], connect),
    take: (stream, headers) => grpc.take(stream, headers),
    limits: connection,
    concurrentStreams: limits.concurrentStreams,
    keepalive: options.keepalive,
    clock,
    logger,
  });
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped ??= stopGracefully({ state, listener, live, clock, drainMs: options.drainMs }).finally(() => {
      live[Symbol.dispose]();
      lifetime.abort(gatewayStopping());
    });
    return stopped;
  };
  return {
    listen: () => listener.listen(),
    setReady: (ready) => state.set(ready),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function metricsRoute(
  { metrics, audit }: FrontDoorOptions,
  { authenticate, shown }: FrontOptions,
): ((request: NodeRequest) => Promise<Answer>) | undefined {
  if (metrics === undefined) return undefined;
  return (request) => answerMetrics(request, { metrics, authenticate, shown, audit });
}

interface Running {
  readonly state: ServingState;
  readonly listener: Listener;
  readonly live: LiveRpcs;
  readonly clock: Clock;
  readonly drainMs: number;
}

/** How long ended calls may take to say so, and their connections to close, before they are cut. */
const LAST_WORDS_MS = 500;

async function stopGracefully({ state, listener, live, clock, drainMs }: Running): Promise<void> {
  state.stop();
  const closed = listener.close();
  live.beginStop(gatewayStopping());
  await atMost(live.idle(), drainMs, clock);
  live.abortAll(gatewayStopping());
  await atMost(closed, LAST_WORDS_MS, clock);
  listener.destroy();
  await closed;
}

/** Waits for the work, but no longer than that. */
async function atMost(work: Promise<void>, ms: number, clock: Clock): Promise<void> {
  const over = new AbortController();
  const limit = sleep(clock, ms, over.signal).catch(() => undefined);
  await Promise.race([work, limit]);
  over.abort();
}
