import type { ToolCall, ToolEvent, ToolResult, UpstreamEvent, UpstreamResult } from "../../src/core/call.ts";
import type { Redactor } from "../../src/core/secrets.ts";
import type { ResultRules } from "../../src/core/shaper.ts";
import { createResultShaper } from "../../src/shaping/result-shaper.ts";

export const SECRET = "hunter22";

/** Masks one secret, in pieces too. */
export const redactor: Redactor = {
  text: (value) => value.replaceAll(SECRET, "***"),
  stream() {
    let held = "";
    return {
      push(piece) {
        held = (held + piece).replaceAll(SECRET, "***");
        const keep = Array.from({ length: SECRET.length - 1 }, (_, i) => SECRET.length - 1 - i).find((n) =>
          held.endsWith(SECRET.slice(0, n)),
        );
        const out = held.slice(0, held.length - (keep ?? 0));
        held = held.slice(out.length);
        return out;
      },
      end() {
        const rest = held;
        held = "";
        return rest;
      },
    };
  },
};

export function makeRules(changes: Partial<ResultRules> = {}): ResultRules {
  return {
    format: "auto",
    successField: undefined,
    successValue: null,
    dataField: undefined,
    maxLength: 700_000,
    truncation: "head",
    ...changes,
  };
}

export function makeCall(changes: Partial<ToolCall> = {}): ToolCall {
  return { tool: "order_status", arguments: {}, validateOnly: false, maxLength: undefined, ...changes };
}

export async function* source(...events: readonly UpstreamEvent[]): AsyncGenerator<UpstreamEvent, void, undefined> {
  yield* events;
}

export function resultEvent(result: Partial<UpstreamResult>): UpstreamEvent {
  return { type: "upstream-result", result: { content: [], effect: "none", ...result } };
}

export interface ShapeOptions {
  readonly rules?: Partial<ResultRules>;
  readonly call?: Partial<ToolCall>;
  readonly readOnly?: boolean;
}

export async function shapeAll(
  events: AsyncIterable<UpstreamEvent>,
  { rules, call, readOnly = false }: ShapeOptions = {},
): Promise<ToolEvent[]> {
  const shaper = createResultShaper({ tool: "order_status", rules: makeRules(rules), redactor, readOnly });
  const all: ToolEvent[] = [];
  for await (const event of shaper.shape(events, makeCall(call))) all.push(event);
  return all;
}

/** What a call comes to whose upstream gives this result. */
export async function shapeOne(
  result: Partial<UpstreamResult>,
  options: ShapeOptions = {},
): Promise<ToolResult & { readonly effect: string }> {
  const last = (await shapeAll(source(resultEvent(result)), options)).at(-1);
  if (last?.type !== "completed") throw new Error("not completed");
  return { ...last.result, effect: last.effect };
}
