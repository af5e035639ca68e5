import type { Clock } from "../core/clock.ts";

/** How old a connection may become. */
export interface ConnectionAge {
  /** Default: any age. */
  readonly maxConnectionAgeMs?: number;
  /** How long the calls of a connection that is too old may go on. */
  readonly connectionAgeGraceMs: number;
}

/** What a connection is told, and what becomes of it. */
export interface AgeStages {
  /** Its age is reached: it takes no more calls. */
  leave(): void;
  /** Its calls had their time: it is closed with what is left of them. */
  cut(): void;
}

/** Connections that began together, as after a restart of a balancer, are spread by a tenth either way. */
const JITTER = 0.1;

/**
 * Sees to it that a connection does not become too old. A peer that keeps one for good never finds the instances that
 * were added behind a balancer, nor the certificate that was renewed. Source: gRFC A9, "Server-side Connection Management".
 */
export function limitAge(
  connection: { once(event: "close", listener: () => void): unknown },
  { maxConnectionAgeMs: maxMs, connectionAgeGraceMs }: ConnectionAge,
  clock: Clock,
  stages: AgeStages,
): void {
  if (maxMs === undefined) return;
  const spread = 1 + JITTER * (2 * Math.random() - 1);
  let timer = clock.after(maxMs * spread, () => {
    timer = clock.after(connectionAgeGraceMs, () => stages.cut());
    stages.leave();
  });
  connection.once("close", () => timer[Symbol.dispose]());
}
