/** What `gateway.yaml` says, with defaults filled in. Durations in milliseconds, sizes in bytes. */
export interface GatewayConfig {
  /** Where the one port is. Only loopback while no authentication is configured. Default 127.0.0.1:7433. */
  readonly listen: { readonly host: string; readonly port: number };
  readonly tools: {
    /** Absolute path of the watched folder. */
    readonly folder: string;
    /** Globs relative to the folder; a file that none matches is ignored, with a note. */
    readonly include: readonly string[];
    /** How long a file must stay unchanged before it is read. Default 100 ms. */
    readonly settleMs: number;
    /** `auto`: by file events, and by polling as well, for file systems without events. `always`: polling alone. */
    readonly poll: "auto" | "always";
    /** Time between two polls. Default 1 s. */
    readonly pollIntervalMs: number;
  };
  readonly state: {
    /** Absolute path of the folder for registrations made over the wire. */
    readonly folder: string;
  };
  /** Stand in where a declaration is silent. */
  readonly defaults: {
    readonly timeout: {
      readonly connectMs?: number;
      readonly readMs?: number;
      readonly idleMs?: number;
      readonly totalMs?: number;
    };
    readonly result: { readonly maxLength?: number };
  };
  readonly limits: {
    /** Largest request message. Default 4 MiB. */
    readonly requestBytes: number;
    /** Most bytes read of one conclusive answer. Default 16 MiB. */
    readonly responseBytes: number;
    /** Longest deadline of a call, whatever a caller asks. Default 1 h. */
    readonly deadlineMs: number;
    /** Most streams of one HTTP/2 connection at a time. Default 1,000. */
    readonly concurrentStreams: number;
  };
  /** HTTP/2 pings that notice a frozen client. */
  readonly keepalive: { readonly intervalMs: number; readonly timeoutMs: number };
  readonly shutdown: {
    /** How long running calls may go on after a stop was asked for. Default 10 s. */
    readonly drainMs: number;
  };
  /** Whether gRPC reflection is served. Default true. */
  readonly reflection: boolean;
  readonly log: { readonly level: "debug" | "info" | "warn" | "error" | "silent" };
  /** Where each value came from, by dotted key: `gateway.yaml:12` or `default`. */
  readonly origins: ReadonlyMap<string, string>;
}
