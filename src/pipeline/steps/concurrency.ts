import type { UpstreamEvent } from "../../core/call.ts";
import type { Clock } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import { type Slot, type SlotLimits, Slots } from "../../core/slots.ts";
import type { Step } from "../../core/step.ts";
import type { ToolDefinition } from "../../core/tool.ts";

/** Most calls that wait for one limit. */
const MAX_WAITING = 1_000;

/** Slots by what they limit, kept while somebody holds or awaits one: a tool's new version goes on with them. */
class SlotTable {
  readonly #clock: Clock;
  readonly #slots = new Map<string, Slots>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async take(key: string, limits: SlotLimits, call: { tool: ToolDefinition; signal: AbortSignal }): Promise<Slot> {
    const slots = this.#slots.get(key) ?? new Slots(limits, this.#clock);
    this.#slots.set(key, slots);
    if (slots.limits.limit !== limits.limit) slots.setLimits(limits);
    try {
      const slot = await slots.take({
        signal: call.signal,
        refused: ({ position }) => lineIsFull(key, limits, call.tool, position),
      });
      return {
        waitedMs: slot.waitedMs,
        [Symbol.dispose]: () => {
          slot[Symbol.dispose]();
          this.#free(key, slots);
        },
      };
    } catch (error) {
      this.#free(key, slots);
      throw error;
    }
  }

  #free(key: string, slots: Slots): void {
    if (slots.held === 0 && slots.waiting === 0 && this.#slots.get(key) === slots) this.#slots.delete(key);
  }
}

/** Lets at most so many calls of a tool, and of its group, run at a time; the others wait in order. */
export function createConcurrencyStep(): Step {
  let table: SlotTable | undefined;
  return {
    name: "concurrency",
    scope: "attempt",
    compile(tool, { concurrencyLimit, group }, { clock }) {
      const limits: (readonly [key: string, limits: SlotLimits])[] = [];
      if (concurrencyLimit !== undefined) {
        limits.push([`tool "${tool.name}"`, { limit: concurrencyLimit, maxWaiting: MAX_WAITING }]);
      }
      if (group?.maxParallelCalls !== undefined) {
        limits.push([`group "${group.name}"`, { limit: group.maxParallelCalls, maxWaiting: MAX_WAITING }]);
      }
      if (limits.length === 0) return undefined;
      table ??= new SlotTable(clock);
      const slots = table;
      return async function* (call, context, next): AsyncGenerator<UpstreamEvent, void, undefined> {
        using held = new DisposableStack();
        if (!call.validateOnly) {
          for (const [key, limit] of limits) {
            held.use(await slots.take(key, limit, { tool, signal: context.signal }));
          }
        }
        yield* next(call, context);
      };
    },
  };
}

function lineIsFull(what: string, { limit, maxWaiting }: SlotLimits, tool: ToolDefinition, position: number): Error {
  const text = `tool "${tool.name}" was not called: ${limit} calls of ${what} run and ${maxWaiting} wait for their turn; call again later`;
  return new GatewayError("CONCURRENCY_LIMIT_REACHED", text, {
    metadata: { tool: tool.name, limit: String(limit), position: String(position) },
  });
}
