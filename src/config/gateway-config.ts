import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { ConfigIssue, PoolSettings, PrivateReach } from "../core/adapter.ts";
import type { EgressRules } from "../core/egress.ts";
import type { FaultPlan } from "../core/fault.ts";
import type { IdentitySettings } from "../core/identity.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { jsonPointer } from "../core/json.ts";
import type { ListenAddress } from "../core/listen-address.ts";
import type { SecretSettings } from "../core/secrets.ts";
import type { RateLimit } from "../core/step.ts";
import type { Toolsets } from "../core/toolsets.ts";
import { ACCESS_SETTINGS, type AccessKey } from "./access-settings.ts";
import { createDocumentCheck } from "./document-check.ts";
import { readEgressSettings } from "./egress-settings.ts";
import { faultRules } from "./fault-schema.ts";
import {
  GATEWAY_CONFIG_SCHEMA,
  GROUP_MEMBERS,
  LOG_LEVELS,
  SETTINGS,
  type SettingKey,
} from "./gateway-config-schema.ts";
import { readIdentity } from "./identity-settings.ts";
import { exposureProblem, parseListenAddress } from "./listen-address.ts";
import { ownObject } from "./own-values.ts";
import { orderProblems, parseDocument } from "./parse-document.ts";
import { type GroupKey, POLICY_SETTINGS, type PolicyKey } from "./policy-settings.ts";
import { NO_REQUESTS, readRateLimit } from "./rate-limit.ts";
import { namedSettings, readSettings, settingKeys } from "./read-settings.ts";
import { type RecordSettings, readRecords } from "./record-settings.ts";
import { type RegistrationRoles, readRegistrationRoles } from "./registration-roles.ts";
import { type ResultDefaults, readResultDefaults, resultIssues } from "./result-settings.ts";
import { type ResultsSettings, readResults } from "./results-settings.ts";
import { readSecrets } from "./secret-settings.ts";
import { readServerStarts, type ServerStarts } from "./server-settings.ts";
import type { Setting } from "./setting.ts";
import type { SourceDocument, SourceProblem } from "./source-document.ts";
import { readState, type StateSettings } from "./state-settings.ts";
import { readTelemetry, type TelemetrySettings } from "./telemetry-settings.ts";
import { readTls, type TlsSettings, tlsIssues } from "./tls-settings.ts";
import { readToolsets, TOOLSET_SETTINGS, type ToolsetValues } from "./toolset-settings.ts";

/** What `gateway.yaml` says, with defaults filled in. Durations in milliseconds, sizes in bytes. */
export interface GatewayConfig {
  /**
   * Where the one port is: an address, only loopback while no authentication is configured, or the absolute path of a
   * Unix socket. Default 127.0.0.1:7433.
   */
  readonly listen: ListenAddress;
  /** Absolute paths of PEM files, and the oldest version of TLS spoken. Absent: the port speaks plaintext. */
  readonly tls?: TlsSettings;
  /** How callers are told apart. Absent: every caller is the anonymous operator. */
  readonly identity?: IdentitySettings;
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
  readonly state: StateSettings;
  /** Stand in where a declaration is silent. */
  readonly defaults: {
    readonly timeout: {
      readonly connectMs?: number;
      readonly readMs?: number;
      readonly idleMs?: number;
      readonly totalMs?: number;
    };
    readonly result: ResultDefaults;
    /** By dotted key, durations in milliseconds; what the file does not set is absent. */
    readonly policies: ReadonlyMap<PolicyKey | AccessKey, JsonValue>;
    /** Connections to one origin; kept open for later calls for 4 s where the file does not say. */
    readonly pool: PoolSettings;
  };
  /** Groups by name: what the file sets of each, by dotted key, durations in milliseconds. */
  readonly groups: ReadonlyMap<string, ReadonlyMap<PolicyKey | GroupKey | AccessKey, JsonValue>>;
  /** Named sets of tools. */
  readonly toolsets: Toolsets;
  /** Whether only tools that are in a toolset are there for callers. Default false. */
  readonly needsToolset: boolean;
  /** Where secrets come from besides the environment. Absent: nowhere else. */
  readonly secrets?: SecretSettings;
  /** Where connections may lead. Absent: everywhere. */
  readonly egress?: EgressRules;
  /** Most calls of each caller in a time; `undefined`: no limit. */
  readonly rateLimit: RateLimit | undefined;
  readonly registration: {
    /** Which addresses that are not public a registration over the wire may name. Default: loopback. */
    readonly privateAddresses: PrivateReach;
    /** Whether scripts can be registered over the wire. Default false. */
    readonly scripts: boolean;
    /** Secrets that registrations may use. Default: none. */
    readonly secrets: readonly string[];
  } & RegistrationRoles;
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
  /** HTTP/2 pings that notice a frozen client: one every `intervalMs` (default 30 s), answered within `timeoutMs` (default 10 s). */
  readonly keepalive: {
    readonly intervalMs: number;
    readonly timeoutMs: number;
    /** Age at which a connection is told to go away. Default: none. */
    readonly maxConnectionAgeMs?: number;
    /** How long its calls may go on then. Default 1 h. */
    readonly connectionAgeGraceMs: number;
  };
  readonly shutdown: {
    /** How long running calls may go on after a stop was asked for. Default 10 s. */
    readonly drainMs: number;
  };
  readonly ledger: {
    /** How long a call with a key is on record after its end. Default 24 h. */
    readonly retentionMs: number;
    /** Default 1,000,000. */
    readonly maxEntries: number;
    /** Of outcomes. Default 1 GiB. */
    readonly maxBytes: number;
  };
  readonly resume: {
    /** Longest time a lost stream waits for its caller. Default 1 min; 0: none does. */
    readonly windowMs: number;
    /** Output kept of one call, in memory (default 128 KiB) and on disk (default 16 MiB). */
    readonly callMemoryBytes: number;
    readonly callDiskBytes: number;
    /** Streams at a time that can be resumed. Default 1,000. */
    readonly calls: number;
  };
  /** How results that are too long are kept for reading on. */
  readonly results: ResultsSettings;
  readonly scripts: {
    /** Whether a declaration may have its command line run by a shell. Default false. */
    readonly shell: boolean;
  };
  readonly servers: { readonly starts: ServerStarts };
  /** Whether who calls a tool that it may not see is told so, instead of that there is none. Default false. */
  readonly tellsDenied: boolean;
  /** Whether gRPC reflection is served. Default true. */
  readonly reflection: boolean;
  /** Browsers: origins whose pages may call. Default: none. */
  readonly cors: { readonly allowedOrigins: readonly string[] };
  /** Faults put into calls on purpose; who starts a gateway with any has to want them. */
  readonly faults: FaultPlan;
  /** Which calls and acts are put on record, and where. */
  readonly records: RecordSettings;
  /** What is told of calls to the systems that watch the gateway. */
  readonly telemetry: TelemetrySettings;
  readonly log: { readonly level: "debug" | "info" | "warn" | "error" | "silent" };
  /** Every setting by dotted key, and every group and toolset under `groups.NAME` and `toolsets.NAME`: what {@link changedSettings} compares. */
  readonly settings: ReadonlyMap<string, JsonValue>;
  /** Where each value came from, by dotted key: `gateway.yaml:12` or `default`. */
  readonly origins: ReadonlyMap<string, string>;
}

/** Where the text of a configuration came from. */
export interface GatewayConfigSource {
  /** Name of the file as origins show it, such as `gateway.yaml`. */
  readonly file: string;
  /** Absolute path of the folder that relative paths begin at: the file's own. */
  readonly folder: string;
}

/** Outcome of reading a configuration: the whole of it, or all its problems. */
export type GatewayConfigOutcome =
  | { readonly ok: true; readonly config: GatewayConfig }
  | { readonly ok: false; readonly problems: readonly SourceProblem[] };

/**
 * Reads gateway.yaml; `undefined` and an empty file give the defaults. No key is accepted without effect: an unknown
 * one is refused with the nearest known one, one for later as not supported yet. Never throws for what the text holds.
 */
export function parseGatewayConfig(text: string | undefined, source: GatewayConfigSource): GatewayConfigOutcome {
  const parsed = parseDocument(text ?? "", "yaml", { allowEmpty: true });
  if (!parsed.ok) return parsed;
  const { document } = parsed;
  const { value, issues } = createDocumentCheck(GATEWAY_CONFIG_SCHEMA)(document);
  if (issues.length > 0) return refused(document, issues);
  const settings = readAll(value, document, source.file);
  const toolsets = readToolsets(settings.toolsets, settings.issues);
  const listen = parseListenAddress(textOf(settings.values.get("listen")), source.folder);
  if ("problem" in listen) settings.issues.push({ pointer: "/listen", message: `\`listen\`: ${listen.problem}` });
  const identity = readIdentity(settings.values, source.folder, settings.issues);
  const egress = readEgressSettings(settings.values, settings.issues);
  readTelemetry(settings.values, settings.issues);
  settings.issues.push(...tlsIssues(settings.values, listen), ...resultIssues(settings.values));
  const exposed = "problem" in listen ? undefined : exposureProblem(listen, identity);
  if (exposed !== undefined) settings.issues.push({ pointer: "/listen", message: `\`listen\`: ${exposed}` });
  if ("problem" in listen || settings.issues.length > 0) return refused(document, settings.issues);
  const config = build(settings, listen, source.folder);
  return {
    ok: true,
    config: {
      ...config,
      toolsets,
      ...(identity === undefined ? {} : { identity }),
      ...(egress === undefined ? {} : { egress }),
    },
  };
}

/** Dotted keys of what differs, groups and toolsets as `groups.NAME` and so on; what the command line has set does not. */
export function changedSettings(before: GatewayConfig, after: GatewayConfig): readonly string[] {
  const keys = new Set([...before.settings.keys(), ...after.settings.keys()]);
  return [...keys].filter((key) => {
    if (after.origins.get(key)?.startsWith("--") === true) return false;
    return !isDeepStrictEqual(before.settings.get(key), after.settings.get(key));
  });
}

interface Settings {
  readonly values: ReadonlyMap<string, JsonValue>;
  readonly groups: GatewayConfig["groups"];
  readonly toolsets: ToolsetValues;
  readonly origins: Map<string, string>;
  readonly issues: ConfigIssue[];
}

function refused(document: SourceDocument, issues: readonly ConfigIssue[]): GatewayConfigOutcome {
  const problems = issues.map(({ pointer, message }) => ({ ...document.position(pointer), message }));
  return { ok: false, problems: orderProblems(problems) };
}

function readAll(checked: JsonObject, document: SourceDocument, file: string): Settings {
  const origins = new Map<string, string>();
  const issues: ConfigIssue[] = [];
  const read = <K extends string>(known: Readonly<Record<K, Setting>>, path: readonly string[], fill: boolean) => {
    let from: JsonObject = checked;
    for (const name of path) from = ownObject(from, name) ?? {};
    const { values, problems } = readSettings(known, from, { fill });
    for (const key of settingKeys(known)) {
      const name = [...path, key].join(".");
      const pointer = jsonPointer([...path, ...key.split(".")]);
      const isSet = document.has(pointer);
      origins.set(name, isSet ? `${file}:${document.position(pointer).line}` : "default");
      const problem = problems.get(key) ?? (isSet && isIdleRate(name, values) ? NO_REQUESTS : undefined);
      if (problem !== undefined) issues.push({ pointer, message: `\`${name}\`: ${problem}` });
    }
    return values;
  };
  const readEach = <K extends string>(section: string, known: Readonly<Record<K, Setting>>) => {
    const names = Object.keys(ownObject(checked, section) ?? {});
    for (const name of names) {
      origins.set(`${section}.${name}`, `${file}:${document.position(jsonPointer([section, name])).line}`);
    }
    return new Map(names.map((name) => [name, read(known, [section, name], false)]));
  };
  const named = { groups: readEach("groups", GROUP_MEMBERS), toolsets: readEach("toolsets", TOOLSET_SETTINGS) };
  return { values: read(SETTINGS, [], true), ...named, origins, issues };
}

/** Whether a key belongs to a rate limit that nothing can complete; policies are completed tool by tool. */
function isIdleRate(name: string, values: ReadonlyMap<string, JsonValue>): boolean {
  const [, key = ""] = /^(rate_limit|groups\..+\.shared_rate_limit)\.\w+$/.exec(name) ?? [];
  return key !== "" && !values.has(`${key.slice(key.lastIndexOf(".") + 1)}.requests`);
}

/** Places of what must not be told. */
function secretFiles(values: Settings["values"], folder: string): Pick<GatewayConfig, "tls" | "secrets"> {
  return { ...readTls(values, folder), ...readSecrets(values, folder) };
}

function build(settings: Settings, listen: ListenAddress, folder: string): Omit<GatewayConfig, "toolsets"> {
  const { values, groups, toolsets, origins } = settings;
  const number = (key: SettingKey): number => Number(values.get(key));
  const text = (key: SettingKey): string => textOf(values.get(key));
  const texts = (key: SettingKey): string[] => {
    const list = values.get(key);
    return Array.isArray(list) ? list.map(textOf) : [];
  };
  return {
    listen,
    ...secretFiles(values, folder),
    tools: {
      folder: resolve(folder, text("tools.folder")),
      include: texts("tools.include"),
      settleMs: number("tools.settle"),
      poll: text("tools.poll") === "always" ? "always" : "auto",
      pollIntervalMs: number("tools.poll_interval"),
    },
    state: readState(values, folder),
    defaults: defaultsOf(values),
    rateLimit: readRateLimit(values, "rate_limit"),
    registration: {
      privateAddresses: reachOf(text("registration.private_addresses")),
      scripts: text("registration.scripts") === "allow",
      secrets: texts("registration.secrets"),
      ...readRegistrationRoles(values),
    },
    limits: {
      requestBytes: number("limits.request_bytes"),
      responseBytes: number("limits.response_bytes"),
      deadlineMs: number("limits.deadline"),
      concurrentStreams: number("limits.concurrent_streams"),
    },
    keepalive: keepaliveOf(number, values.has("keepalive.max_connection_age")),
    shutdown: { drainMs: number("shutdown.drain") },
    ...keptSettings(number),
    results: readResults(values),
    scripts: { shell: text("scripts.shell") === "allow" },
    servers: { starts: readServerStarts(values) },
    needsToolset: text("expose") === "toolsets",
    tellsDenied: text("denied_calls") === "permission_denied",
    reflection: values.get("reflection") === true,
    cors: { allowedOrigins: texts("cors.allowed_origins") },
    faults: { seed: number("faults.seed"), rules: faultRules(values.get("faults.rules")) },
    ...readWatching(values, folder),
    log: { level: logLevel(text("log.level")) },
    groups,
    settings: new Map([...values, ...namedSettings("groups", groups), ...namedSettings("toolsets", toolsets)]),
    origins,
  };
}

function keepaliveOf(number: (key: SettingKey) => number, rotates: boolean): GatewayConfig["keepalive"] {
  return {
    intervalMs: number("keepalive.interval"),
    timeoutMs: number("keepalive.timeout"),
    ...(rotates ? { maxConnectionAgeMs: number("keepalive.max_connection_age") } : {}),
    connectionAgeGraceMs: number("keepalive.max_connection_age_grace"),
  };
}

function reachOf(word: string): PrivateReach {
  return word === "none" || word === "all" ? word : "loopback";
}

/** Stand in where a declaration is silent; what the file does not set is absent. */
function defaultsOf(values: Settings["values"]): GatewayConfig["defaults"] {
  const given = <N extends string>(name: N, key: SettingKey): { readonly [K in N]?: number } => {
    const value = values.get(key);
    return typeof value === "number" ? ({ [name]: value } as { readonly [K in N]?: number }) : {};
  };
  return {
    timeout: {
      ...given("connectMs", "defaults.timeout.connect"),
      ...given("readMs", "defaults.timeout.read"),
      ...given("idleMs", "defaults.timeout.idle"),
      ...given("totalMs", "defaults.timeout.total"),
    },
    result: readResultDefaults(values),
    policies: new Map(
      settingKeys<PolicyKey | AccessKey>({ ...POLICY_SETTINGS, ...ACCESS_SETTINGS }).flatMap((key) => {
        const value = values.get(`defaults.${key}`);
        return value === undefined ? [] : [[key, value] as const];
      }),
    ),
    pool: {
      ...given("maxConnections", "defaults.pool.max_connections"),
      ...given("maxWaiting", "defaults.pool.max_waiting"),
      ...given("maxIdle", "defaults.pool.max_idle"),
      ...given("idleMs", "defaults.pool.idle_timeout"),
    },
  };
}

/** What is on record, counted and traced. */
function readWatching(values: Settings["values"], folder: string): Pick<GatewayConfig, "records" | "telemetry"> {
  return { records: readRecords(values, folder), telemetry: readTelemetry(values) };
}

/** What says how calls are kept. */
function keptSettings(number: (key: SettingKey) => number): Pick<GatewayConfig, "ledger" | "resume"> {
  return {
    ledger: {
      retentionMs: number("ledger.retention"),
      maxEntries: number("ledger.max_entries"),
      maxBytes: number("ledger.max_bytes"),
    },
    resume: {
      windowMs: number("resume.window"),
      callMemoryBytes: number("resume.call_memory"),
      callDiskBytes: number("resume.call_disk"),
      calls: number("resume.calls"),
    },
  };
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

function logLevel(word: string): GatewayConfig["log"]["level"] {
  return LOG_LEVELS.find((level) => level === word) ?? "info";
}
