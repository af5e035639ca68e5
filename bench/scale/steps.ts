import type { Usage } from "./meter.ts";

/**
 * What the measured process is asked to do: load the gateway, tell what it used, tell it and measure nothing but CPU
 * time from now on, since looking at the loop costs some itself, or make pages without a network.
 */
export type ScaleStep = "load" | "read" | "quiet" | "pages";

/** What it says then. */
export interface ScaleReply {
  /** Since the last reply. */
  readonly usage: Usage;
  /** Of the gateway, once it has loaded. */
  readonly port: number | undefined;
}

/** Pages of a List that make one figure. */
export const PAGES = 1_000;

/** Tools on a page. */
export const PAGE_SIZE = 100;
