import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type Health,
  type HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Status,
} from "../../gen/health/v1/health_pb.ts";
import { GatewayError } from "../core/errors.ts";
import { raceSignal } from "../core/signal.ts";
import { rpcOf } from "./connect-context.ts";
import { gatewayStopping, type Rpc } from "./rpc.ts";
import type { Service } from "./service.ts";

/**
 * Whether the gateway takes calls. One status for the whole: an upstream that is down shows in the states of its tools
 * and must not take the gateway out of a balancer's rotation.
 */
export class ServingState {
  #serving = false;
  #stopped = false;
  readonly #watchers = new Set<() => void>();

  get serving(): boolean {
    return this.#serving;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** Calls `watcher` after each change until it is disposed. */
  watch(watcher: () => void): Disposable {
    this.#watchers.add(watcher);
    return { [Symbol.dispose]: () => void this.#watchers.delete(watcher) };
  }

  set(serving: boolean): void {
    if (this.#stopped || serving === this.#serving) return;
    this.#serving = serving;
    this.#announce();
  }

  /** Not serving, for good. */
  stop(): void {
    this.#serving = false;
    this.#stopped = true;
    this.#announce();
  }

  #announce(): void {
    for (const watcher of this.#watchers) watcher();
  }
}

/** grpc.health.v1.Health for the whole gateway (the empty name) and each service of it. */
export function createHealthService(state: ServingState, services: readonly string[]): Service<typeof Health> {
  const names = new Set(["", ...services]);
  return {
    check({ service }) {
      if (!names.has(service)) {
        throw new GatewayError("SERVICE_NOT_FOUND", "`service` names no service of this gateway", {
          metadata: { services: services.join(" ") },
        });
      }
      return { status: statusOf(state) };
    },
    list: () => ({ statuses: Object.fromEntries([...names].map((name) => [name, { status: statusOf(state) }])) }),
    watch: ({ service }, { values }) => watch(rpcOf(values), state, names.has(service)),
  };
}

/** The status now and at each change. An unknown service keeps its stream, as the health protocol wants it. */
async function* watch(
  rpc: Rpc,
  state: ServingState,
  known: boolean,
): AsyncGenerator<MessageInitShape<typeof HealthCheckResponseSchema>, void, undefined> {
  let wake: (() => void) | undefined;
  using _watching = state.watch(() => wake?.());
  let last: Status | undefined;
  while (true) {
    const changed = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const status = known ? statusOf(state) : Status.SERVICE_UNKNOWN;
    if (status !== last) yield { status };
    last = status;
    if (state.stopped) throw gatewayStopping();
    await raceSignal(changed, rpc.signal);
  }
}

function statusOf({ serving }: ServingState): Status {
  return serving ? Status.SERVING : Status.NOT_SERVING;
}
