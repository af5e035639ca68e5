import { ECHO_FIRST } from "./echo.ts";
import type { ClientKind, LoadPlan } from "./measure.ts";

/** Processes a subject can live in. */
export type ServerName = "connect-echo" | "grpc-js-echo" | "gateway" | "upstream";

/** Something to measure. */
export interface Subject {
  readonly name: string;
  readonly server: ServerName;
  readonly port: "h1" | "h2";
  readonly client: ClientKind;
  /** Tool, or path for a direct call. */
  readonly target: string;
  readonly validateOnly: boolean;
  /** Subjects to compare with. */
  readonly baselines: readonly string[];
}

/** Subjects that are measured in one interleaved run. */
export interface Suite {
  readonly name: string;
  readonly kind: LoadPlan["kind"];
  readonly inFlight: number;
  readonly subjects: readonly Subject[];
}

const PROTOCOLS = [
  { label: "gRPC", client: "grpc", port: "h2" },
  { label: "Connect h1", client: "connect-h1", port: "h1" },
  { label: "Connect h2", client: "connect-h2", port: "h2" },
] as const;

const GRPC_JS = "grpc-js echo, gRPC";

function connectEcho(target: string): Subject[] {
  return PROTOCOLS.map(({ label, client, port }) => ({
    name: `connect-node echo, ${label}`,
    server: "connect-echo",
    port,
    client,
    target,
    validateOnly: false,
    baselines: [],
  }));
}

function grpcJsEcho(target: string): Subject {
  return {
    name: GRPC_JS,
    server: "grpc-js-echo",
    port: "h2",
    client: "grpc",
    target,
    validateOnly: false,
    baselines: [],
  };
}

function direct(target: string): Subject {
  return {
    name: "direct undici",
    server: "upstream",
    port: "h1",
    client: "direct",
    target,
    validateOnly: false,
    baselines: [],
  };
}

/** The gateway by all protocols, against the echo of the same protocol and what else is named. */
function gateway(what: string, target: string, validateOnly: boolean, others: readonly string[]): Subject[] {
  return PROTOCOLS.map(({ label, client, port }) => ({
    name: `${what}, ${label}`,
    server: "gateway",
    port,
    client,
    target,
    validateOnly,
    baselines: [`connect-node echo, ${label}`, ...(client === "grpc" ? [GRPC_JS] : []), ...others],
  }));
}

/** Everything `npm run bench` measures. The no-op tool is an HTTP tool called with `validate_only`. */
export const SUITES: readonly Suite[] = ["loaded", "unloaded"]
  .map<Suite>((load) => ({
    name: `unary-${load}`,
    kind: "unary",
    inFlight: load === "loaded" ? 32 : 1,
    subjects: [
      ...connectEcho("echo"),
      grpcJsEcho("echo"),
      direct("/json"),
      ...gateway("no-op tool", "bench_json", true, []),
      ...gateway("HTTP tool", "bench_json", false, ["direct undici"]),
    ],
  }))
  .concat(
    {
      name: "first-delta",
      kind: "first-delta",
      inFlight: 1,
      subjects: [
        direct("/first"),
        ...connectEcho(ECHO_FIRST),
        grpcJsEcho(ECHO_FIRST),
        ...gateway("HTTP tool", "bench_first", false, ["direct undici"]),
      ],
    },
    {
      name: "stream-1KiB",
      kind: "stream",
      inFlight: 4,
      subjects: [
        direct("/feed"),
        ...connectEcho("echo"),
        grpcJsEcho("echo"),
        ...gateway("HTTP tool", "bench_feed", false, ["direct undici"]),
      ],
    },
  );
