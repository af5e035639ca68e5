import type { Effect } from "../../src/core/effect.ts";
import type { GatewayError } from "../../src/core/errors.ts";
import type { SimulatedCaller } from "./scenario-parts.ts";

/** How a connection's reading ended: exactly one of these. */
export type LegEnd =
  | {
      readonly type: "completed";
      /** Text of the result's own parts. */
      readonly text: string;
      readonly failure: string | undefined;
      readonly effect: Effect;
      readonly replayed: boolean;
    }
  | { readonly type: "error"; readonly error: GatewayError }
  | { readonly type: "left" };

/** One connection of a caller: its call, or the stream of it that goes on. */
export interface Leg {
  readonly caller: SimulatedCaller;
  /** Of the caller, for people. */
  readonly name: string;
  readonly beganMs: number;
  /** The leg it goes on after, as far as that had come. */
  readonly after: { readonly leg: Leg; readonly sequence: number } | undefined;
  callId: string | undefined;
  /** Pieces of streamed text with their sequences. */
  readonly pieces: { readonly sequence: number; readonly text: string }[];
  /** The last sequence that came. */
  sequence: number;
  leftMs: number | undefined;
  end: LegEnd | undefined;
  endMs: number | undefined;
}

/** What a caller has read, over all connections up to this one. */
export function textOf(leg: Leg): string {
  const before = leg.after === undefined ? "" : textUntil(leg.after.leg, leg.after.sequence);
  return before + leg.pieces.map(({ text }) => text).join("");
}

function textUntil(leg: Leg, sequence: number): string {
  const before = leg.after === undefined ? "" : textUntil(leg.after.leg, Math.min(sequence, leg.after.sequence));
  const own = leg.pieces.filter((piece) => piece.sequence <= sequence);
  return before + own.map(({ text }) => text).join("");
}

/** The operation that a leg is about. */
export function operationOf({ caller, callId }: Leg): string {
  const { principal, tool, requestId } = caller;
  return requestId === undefined ? `call ${callId}` : `${principal} ${tool} ${requestId}`;
}
