import type { JsonObject } from "./json.ts";

/** What an adapter knows of its exchange with an upstream. Times in milliseconds from its beginning. */
export interface ExchangeFacts {
  /** Until there was a connection, or a program that runs. `undefined`: there never was. */
  readonly connectMs: number | undefined;
  /** Until something of the answer was there. `undefined`: nothing came. */
  readonly firstByteMs: number | undefined;
  /** Of the request's body. `undefined`: not known. */
  readonly requestBytes: number | undefined;
  /** Of the answer's body as it came, before decompression. */
  readonly responseBytes: number | undefined;
  /** HTTP status or exit code. */
  readonly code: number | undefined;
}

/** Hears of a call on its way. Never throws, and never waits. */
export interface CallObserver {
  /** These arguments passed validation; defaults are filled in. */
  validated(args: JsonObject): void;
  /** An exchange with the upstream is over, however it ended. */
  exchanged(facts: ExchangeFacts): void;
}
