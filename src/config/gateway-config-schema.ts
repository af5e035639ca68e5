import type { JsonObject } from "../core/json.ts";
import { stringifyJson } from "../core/json.ts";
import { ACCESS_SETTINGS } from "./access-settings.ts";
import { EGRESS_SETTINGS } from "./egress-settings.ts";
import { FAULT_RULE_SCHEMA } from "./fault-schema.ts";
import { IDENTITY_SETTINGS } from "./identity-settings.ts";
import { GROUP_SECTIONS, GROUP_SETTINGS, POLICY_SECTIONS, POLICY_SETTINGS, type PolicyKey } from "./policy-settings.ts";
import { RATE_PER, rateBurst, rateRequests } from "./rate-limit.ts";
import { RECORD_SETTINGS } from "./record-settings.ts";
import { REGISTRATION_ROLES } from "./registration-roles.ts";
import { RESULT_SETTINGS } from "./result-settings.ts";
import { RESULTS_SETTINGS } from "./results-settings.ts";
import { SECRET_SETTINGS } from "./secret-settings.ts";
import { SERVER_SETTINGS } from "./server-settings.ts";
import { count, duration, type Setting, settingsSchema, size, text } from "./setting.ts";
import { STATE_SETTINGS } from "./state-settings.ts";
import { TELEMETRY_SETTINGS } from "./telemetry-settings.ts";
import { TLS_SETTINGS } from "./tls-settings.ts";
import { EXPOSE, toolsetsSchema } from "./toolset-settings.ts";

const SECOND = 1_000;
const HOUR = 3_600_000;
const KIB = 1_024;
const GIB = 1_073_741_824;

/** How important a log line must be to be written. */
export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;

/** Every setting by its dotted key. */
export const SETTINGS = {
  listen: text(
    "127.0.0.1:7433",
    "Address and port of the one port, such as `127.0.0.1:7433` or `[::1]:7433`; port 0: any free one. Only loopback while `identity` tells nobody apart. Or `unix:` and the path of a Unix socket, relative to this file, such as `unix:toolgate.sock`: only the gateway's own user can connect.",
  ),
  ...TLS_SETTINGS,
  ...IDENTITY_SETTINGS,
  ...EGRESS_SETTINGS,
  ...SECRET_SETTINGS,
  "tools.folder": text("tools", "The watched folder of declarations, relative to this file."),
  "tools.include": {
    schema: {
      type: "array",
      minItems: 1,
      items: { type: "string", minLength: 1 },
      description: "Globs relative to the folder. A file that none matches is ignored, with a note in `tool list`.",
    },
    standard: ["**/*.yaml", "**/*.yml", "**/*.json"],
  },
  "tools.settle": duration("100ms", [0, 10 * SECOND], "How long a file must stay unchanged before it is read."),
  "tools.poll": {
    schema: {
      enum: ["auto", "always"],
      description:
        "`auto`: file events, and polling as well, for file systems without events. `always`: polling alone.",
    },
    standard: "auto",
  },
  "tools.poll_interval": duration("1s", [100, HOUR], "Time between two polls of the folder."),
  ...STATE_SETTINGS,
  "defaults.timeout.connect": duration(
    undefined,
    [1, 24 * HOUR],
    "For tools that do not set `timeout.connect`; built in: 5s.",
  ),
  "defaults.timeout.read": duration(
    undefined,
    [1, 24 * HOUR],
    "For tools that do not set `timeout.read`; built in: 30s.",
  ),
  "defaults.timeout.idle": duration(
    undefined,
    [1, 24 * HOUR],
    "For tools that set neither `timeout.idle` nor `timeout.read`; built in: 30s, and 5m for incremental tools.",
  ),
  "defaults.timeout.total": duration(
    undefined,
    [1, 24 * HOUR],
    "For tools that do not set `timeout.total`; built in: 60s, and 10m for incremental tools.",
  ),
  ...policyDefaults(),
  "defaults.allowed_roles": ACCESS_SETTINGS.allowed_roles,
  "defaults.allowed_subjects": ACCESS_SETTINGS.allowed_subjects,
  ...RESULT_SETTINGS,
  "defaults.pool.max_connections": count(
    [1, 65_535],
    "Most connections open to one scheme, host and port at a time, for tools that do not set `pool.max_connections`; built in: 1024.",
  ),
  "defaults.pool.max_waiting": count(
    [0, 65_535],
    "Most calls that wait for one of them, for tools that do not set `pool.max_waiting`; built in: 1024.",
  ),
  "defaults.pool.max_idle": count(
    [0, 65_535],
    "Most of them kept open for later calls, for tools that do not set `pool.max_idle`; built in: 256.",
  ),
  "defaults.pool.idle_timeout": duration(
    "4s",
    [1, HOUR],
    "How long a connection is kept open for later calls, unless its upstream asks for less.",
  ),
  "rate_limit.requests": rateRequests("each caller"),
  "rate_limit.per": RATE_PER,
  "rate_limit.burst": rateBurst(),
  "registration.private_addresses": {
    schema: {
      enum: ["none", "loopback", "all"],
      description:
        "Which addresses that are not public a tool registered over the wire may name: `none`, `loopback` (this machine), or `all`: private networks and `allow_private` too. A file of the watched folder may name any.",
    },
    standard: "loopback",
  },
  "limits.request_bytes": size("4MiB", [KIB, GIB], "Largest request message."),
  "limits.response_bytes": size(
    "16MiB",
    [KIB, GIB],
    "Most bytes read of one conclusive answer of an upstream, after decompression.",
  ),
  "limits.deadline": duration(
    "1h",
    [SECOND, 24 * HOUR],
    "Longest deadline of a call, whatever a caller or a tool asks.",
  ),
  "limits.concurrent_streams": {
    schema: {
      type: "integer",
      minimum: 1,
      maximum: 1_000_000,
      description: "Most calls of one HTTP/2 connection at a time.",
    },
    standard: 1_000,
  },
  "keepalive.interval": duration("30s", [SECOND, HOUR], "Time between two HTTP/2 pings of a connection."),
  "keepalive.timeout": duration(
    "10s",
    [SECOND, HOUR],
    "How long a ping may stay unanswered before the connection is closed.",
  ),
  "keepalive.max_connection_age": duration(
    undefined,
    [SECOND, 24 * HOUR],
    "Age at which a connection is told to go away, a tenth more or less, so that callers spread over the gateways behind a balancer; built in: any age.",
  ),
  "keepalive.max_connection_age_grace": duration(
    "1h",
    [0, 24 * HOUR],
    "How long the calls of a connection that was told to go away may go on. Not below `limits.deadline` no call is cut, only watches, whose callers connect again.",
  ),
  "shutdown.drain": duration("10s", [0, HOUR], "How long running calls may go on after a stop was asked for."),
  "ledger.retention": duration(
    "24h",
    [SECOND, 30 * 24 * HOUR],
    "How long a call with a `request_id` is on record after its end: so long the same one gets the same outcome.",
  ),
  "ledger.max_entries": {
    schema: {
      type: "integer",
      minimum: 1,
      maximum: 100_000_000,
      description: "Most calls on record; over it calls with a `request_id` are refused.",
    },
    standard: 1_000_000,
  },
  "ledger.max_bytes": size(
    "1GiB",
    [KIB, 1_024 * GIB],
    "Most bytes of outcomes on record; over it the oldest outcomes are dropped, and their calls are still not run again.",
  ),
  "resume.window": duration(
    "1m",
    [0, HOUR],
    "Longest time a stream whose connection was lost waits for its caller, for callers that ask for it; `0s`: none does.",
  ),
  "resume.call_memory": size("128KiB", [KIB, GIB], "Output kept in memory of one call that can be resumed or joined."),
  "resume.call_disk": size(
    "16MiB",
    [KIB, 64 * GIB],
    "Output kept on disk of one such call, beyond that in memory; the oldest is dropped over it.",
  ),
  "resume.calls": {
    schema: {
      type: "integer",
      minimum: 1,
      maximum: 1_000_000,
      description: "Most streams at a time that can be resumed; what is streamed beyond that cannot.",
    },
    standard: 1_000,
  },
  ...RECORD_SETTINGS,
  ...RESULTS_SETTINGS,
  ...TELEMETRY_SETTINGS,
  ...REGISTRATION_ROLES,
  "registration.secrets": {
    schema: {
      type: "array",
      maxItems: 1_000,
      items: { type: "string", minLength: 1 },
      description:
        "Secrets that tools registered over the wire may use, by their references; a `*` at the end stands for any rest. In a file of the watched folder every secret can be used.",
      examples: [["ORDER_*"]],
    },
    standard: [],
  },
  "registration.scripts": {
    schema: {
      enum: ["refuse", "allow"],
      description:
        "Whether what runs programs of this machine (tools of type `script`, MCP servers with `command`) can be registered over the wire. In a file of the watched folder they always can be declared.",
    },
    standard: "refuse",
  },
  "scripts.shell": {
    schema: {
      enum: ["refuse", "allow"],
      description: "Whether a declaration may have its command line run by a shell (`shell: true`).",
    },
    standard: "refuse",
  },
  ...SERVER_SETTINGS,
  expose: EXPOSE,
  denied_calls: {
    schema: {
      enum: ["not_found", "permission_denied"],
      description:
        "What who calls a tool that it may not see is told: the very answer of a tool that does not exist, or that it lacks the role. The second tells which names exist.",
    },
    standard: "not_found",
  },
  reflection: { schema: { type: "boolean", description: "Whether gRPC reflection is served." }, standard: true },
  "cors.allowed_origins": {
    schema: {
      type: "array",
      items: {
        type: "string",
        pattern: "^https?://[^/?#@\\s]+$",
        patternErrorMessage: "an origin as browsers send it: scheme, host and port, without a path",
      },
      description:
        "Origins whose pages may call from a browser, such as `https://app.example.com`. A browser's call from anywhere else is refused.",
    },
    standard: [],
  },
  "faults.seed": {
    schema: {
      type: "integer",
      minimum: 0,
      maximum: 2 ** 31,
      description: "The same seed gives the same attempts a fault, in the order they come.",
    },
    standard: 1,
  },
  "faults.rules": {
    schema: {
      type: "array",
      maxItems: 100,
      items: FAULT_RULE_SCHEMA,
      description:
        "Faults put into attempts on purpose, for rehearsals; only `toolgate serve --inject-faults` takes them.",
    },
    standard: [],
  },
  "log.level": {
    schema: { enum: LOG_LEVELS, description: "The least important lines that are written." },
    standard: "info",
  },
} as const satisfies Readonly<Record<string, Setting>>;

/** Dotted key of a setting. */
export type SettingKey = keyof typeof SETTINGS;

/** Keys that a later version gives an effect. */
const NOT_YET: Readonly<Record<string, string>> = {
  skills: "Named sets of tools with a prompt.",
  proxy: "How upstreams are reached.",
};

const SECTIONS: Readonly<Record<string, string>> = {
  "": "What is not a tool; a tool stands in a file of its own.",
  ...Object.fromEntries(Object.entries(POLICY_SECTIONS).map(([key, words]) => [`defaults.${key}`, words])),
  tls: "The certificate of the port, and its key. Without them the port speaks plaintext.",
  identity:
    "How callers are told apart. Without it every caller is the anonymous operator, and only loopback is served.",
  "identity.trusted_header": "What a proxy on this machine says of the caller.",
  egress: "Where the connections of HTTP tools, of remote MCP servers and for tokens and their keys may lead.",
  secrets:
    "Where secrets come from besides the environment, which counts first; then the file, the folder, the program.",
  "secrets.exec": "A program that gives secrets.",
  tools: "The watched folder.",
  state: "What the gateway keeps on disk.",
  defaults: "Stand in where a declaration is silent.",
  "defaults.timeout": "Time limits of one call.",
  "defaults.result": "How results are shaped.",
  "defaults.result.redact": "What is masked in results besides the gateway's own secrets.",
  "defaults.pool": "Limits of the connections to the upstreams of one scheme, host and port.",
  rate_limit: "Most calls of each caller in a time, whatever the tool; without authentication all callers are one.",
  registration: "What tools registered over the wire may do.",
  limits: "What no caller and no tool can exceed.",
  keepalive: "Whether connections still have somebody at their other end, and how long they last.",
  shutdown: "The graceful stop.",
  ledger: "The record of calls with a `request_id`.",
  resume: "Streams that go on over a lost connection.",
  results: "What results may take of a model's window, and how those that are too long are kept for reading on.",
  scripts: "Tools that are programs of this machine.",
  servers: "MCP servers.",
  cors: "Calls from browsers.",
  faults: "Faults put into calls on purpose, for rehearsals.",
  log: "The log.",
  metrics: "What can be counted.",
  telemetry: "What is sent to an OpenTelemetry collector.",
  records: "What is put on record, in files of their own.",
};

/** What a group of gateway.yaml may hold: what its tools share, and policies for each of them. */
export const GROUP_MEMBERS = { ...GROUP_SETTINGS, ...ACCESS_SETTINGS, ...POLICY_SETTINGS } as const;

const SECTIONS_OF_GROUP: Readonly<Record<string, string>> = {
  "": "A group: what its tools share, and policies for each of them that does not set its own.",
  ...GROUP_SECTIONS,
  ...POLICY_SECTIONS,
};

/** Names of groups, as of tools. */
const GROUP_NAME = "^[A-Za-z0-9_.-]{1,64}$";

/** JSON Schema of gateway.yaml. */
export const GATEWAY_CONFIG_SCHEMA: JsonObject = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "Toolgate gateway configuration",
  ...gatewaySchema(),
  patternProperties: { "^x-": { description: "A place for YAML anchors; has no meaning of its own." } },
};

function gatewaySchema(): JsonObject {
  const { properties, ...rest } = settingsSchema(SETTINGS, "", { sections: SECTIONS, defaults: true });
  const groups: JsonObject = {
    type: "object",
    description: "Groups of tools by name, for tools that share an upstream; a tool joins with `group: NAME`.",
    patternProperties: {
      [GROUP_NAME]: settingsSchema(GROUP_MEMBERS, "", { sections: SECTIONS_OF_GROUP, defaults: false }),
    },
    additionalProperties: false,
  };
  return {
    ...rest,
    properties: { ...properties, tls: tlsSchema(), groups, toolsets: toolsetsSchema(), ...notYet(NOT_YET) },
  };
}

type PolicyDefaults = { readonly [K in PolicyKey as `defaults.${K}`]: Setting };

/** A policy under `defaults`: what is built in stands in for it last. */
function policyDefaults(): PolicyDefaults {
  const defaults: Record<string, Setting> = {};
  for (const [key, { standard, schema, ...setting }] of Object.entries<Setting>(POLICY_SETTINGS)) {
    const builtIn = standard === undefined ? "nothing" : stringifyJson(standard);
    const description = `For tools that do not set \`${key}\`, nor does their group; built in: ${builtIn}.`;
    defaults[`defaults.${key}`] = { ...setting, schema: { ...schema, description } };
  }
  // The loop has made exactly these keys, which the type system cannot see.
  return defaults as PolicyDefaults;
}

/** The section of certificates: neither file comes alone. */
function tlsSchema(): JsonObject {
  const { properties, ...rest } = settingsSchema(SETTINGS, "tls.", { sections: SECTIONS, defaults: true });
  return { ...rest, properties, required: ["cert", "key"] };
}

function notYet(keys: Readonly<Record<string, string>>): Record<string, JsonObject> {
  const entries = Object.entries(keys).map(([name, description]): [string, JsonObject] => {
    return [
      name,
      { not: {}, "x-not-supported": true, doNotSuggest: true, description: `Not supported yet. ${description}` },
    ];
  });
  return Object.fromEntries(entries);
}
