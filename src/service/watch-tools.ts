import type { MessageInitShape } from "@bufbuild/protobuf";
import type { WatchRequest, WatchResponseSchema } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { RegistryEvent, ToolRegistry } from "../core/registry.ts";
import { eventsUntil } from "../core/signal.ts";
import { type ToolSelection, toolSelection } from "../wire/filter.ts";
import { encodeProblems } from "../wire/registry-codec.ts";
import { type ListedSchemas, listedSchemas } from "../wire/schema-form.ts";
import type { ToolCodec } from "../wire/tool-codec.ts";
import { refuseChanged } from "./authenticate.ts";
import type { Rpc } from "./rpc.ts";
import { TICK, withTicks } from "./ticks.ts";
import type { Turns } from "./turns.ts";

/** Time without events after which a watch says that it is up to date. */
const SYNCED_AFTER_MS = 30_000;

/** How often it is looked whether a watcher is still who it was: as often as files of keys are. */
const LOOK_MS = 1_000;

/** How long a reader may take nothing while there is something for it: what waits for it is held as long. */
const STALLED_AFTER_MS = 5 * 60_000;

/** What watching takes. */
export interface WatchDeps {
  readonly registry: ToolRegistry;
  readonly tools: ToolCodec;
  readonly clock: Clock;
  readonly turns: Turns;
}

type WatchMessage = MessageInitShape<typeof WatchResponseSchema>;

/**
 * Changes of the tools a caller may see and asked for. Ends with the RPC's signal; a gateway that stops ends it at
 * once, so that the caller goes on elsewhere, and a reader that takes nothing for five minutes is cut off.
 *
 * @throws GatewayError REQUEST_INVALID, CALLER_CHANGED, what authentication throws by then, and the signal's reason.
 */
export async function* watchTools(
  request: WatchRequest,
  rpc: Rpc,
  { registry, tools, clock, turns }: WatchDeps,
): AsyncGenerator<WatchMessage, void, undefined> {
  const selection = toolSelection(request.filter);
  // Never rounded down to a revision that exists: one too large is unknown to the registry, which then begins anew.
  const after = Number(request.afterRevision);
  rpc.endWithGateway();
  const watcher = new Watcher(selection, { tools, schemas: listedSchemas(request) }, after === 0);
  const events = registry.watch(after, rpc.principal, rpc.signal);
  const messages = watcher.messages(eventsUntil(events, rpc.signal, clock));
  let saidMs = clock.monotonicMs();
  const tickMs = rpc.reauthenticate === undefined ? SYNCED_AFTER_MS : LOOK_MS;
  for await (const message of withTicks(messages, tickMs, clock)) {
    // A watch may outlive the key or token it began with.
    if (rpc.reauthenticate !== undefined) refuseChanged(rpc.principal, await rpc.reauthenticate());
    const nowMs = clock.monotonicMs();
    if (message === TICK && (!watcher.synced || nowMs - saidMs < SYNCED_AFTER_MS)) continue;
    saidMs = nowMs;
    const turn = turns.next();
    if (turn !== undefined) await turn;
    // Comes to rest only once the transport has room for the message, as each message read makes.
    using _stalled = clock.after(STALLED_AFTER_MS, () => rpc.abort(watchStalled()));
    yield message === TICK ? { revision: BigInt(watcher.revision), event: { case: "synced", value: {} } } : message;
  }
}

function watchStalled(): GatewayError {
  const text = `the reader took nothing for ${STALLED_AFTER_MS / 60_000} minutes; watch again after the last revision seen`;
  return new GatewayError("WATCH_STALLED", text);
}

/** How tools are written for a watcher. */
interface WrittenTools {
  readonly tools: ToolCodec;
  readonly schemas: ListedSchemas;
}

/** Turns what happens in the registry into what one watcher is to know. */
class Watcher {
  /** Last revision seen, passed on or not. */
  revision = 0;
  /** Whether everything up to a revision has been sent: before that, a mark would hide what is still to come. */
  synced = false;
  readonly #selection: ToolSelection;
  readonly #written: WrittenTools;
  /** Names the watcher holds; `undefined` where it came with a state of its own. */
  #held: Set<string> | undefined;

  constructor(selection: ToolSelection, written: WrittenTools, fromNothing: boolean) {
    this.#selection = selection;
    this.#written = written;
    this.#held = fromNothing ? new Set() : undefined;
  }

  async *messages(events: AsyncIterable<RegistryEvent>): AsyncGenerator<WatchMessage, void, undefined> {
    for await (const event of events) {
      this.revision = event.revision;
      const change = this.#change(event);
      if (change !== undefined) yield { revision: BigInt(event.revision), event: change };
    }
  }

  #change(event: RegistryEvent): WatchMessage["event"] {
    switch (event.type) {
      case "upserted":
        if (!this.#selection.matches(event.view)) return this.#removed(event.view.definition.name);
        this.#held?.add(event.view.definition.name);
        return { case: "upserted", value: this.#written.tools.message(event.view, this.#written.schemas) };
      case "removed":
        return this.#removed(event.name);
      case "problems":
        return { case: "problems", value: { source: event.source, problems: encodeProblems(event.problems) } };
      case "synced":
        this.synced = true;
        return { case: "synced", value: {} };
      case "reset":
        this.#held = new Set();
        this.synced = false;
        return { case: "reset", value: {} };
    }
  }

  /** A tool that is gone or does not match; of no interest to a watcher that never had it. */
  #removed(name: string): WatchMessage["event"] {
    if (this.#held !== undefined && !this.#held.delete(name)) return undefined;
    return { case: "removed", value: { name } };
  }
}
