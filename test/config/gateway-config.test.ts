import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { type GatewayConfig, parseGatewayConfig } from "../../src/config/gateway-config.ts";
import { GATEWAY_CONFIG_SCHEMA, type SettingKey } from "../../src/config/gateway-config-schema.ts";
import { parseListenAddress } from "../../src/config/listen-address.ts";
import { LiveSettings } from "../../src/config/live-settings.ts";
import { isJsonObject, type JsonObject } from "../../src/core/json.ts";

const SOURCE = { file: "gateway.yaml", folder: "/srv/gate" };

function config(text: string | undefined): GatewayConfig {
  const outcome = parseGatewayConfig(text, SOURCE);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.config;
}

const DEFAULTS = config(undefined);

function problems(text: string): string[] {
  const outcome = parseGatewayConfig(text, SOURCE);
  return outcome.ok ? [] : outcome.problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

test("without a file, and with an empty one, the defaults stand", () => {
  const { origins, settings: _settings, ...defaults } = config(undefined);
  expect(defaults).toEqual({
    listen: { host: "127.0.0.1", port: 7433 },
    tools: {
      folder: "/srv/gate/tools",
      include: ["**/*.yaml", "**/*.yml", "**/*.json"],
      settleMs: 100,
      poll: "auto",
      pollIntervalMs: 1_000,
    },
    state: { folder: "/srv/gate/state" },
    defaults: { timeout: {}, result: {}, pool: { idleMs: 4_000 }, policies: new Map() },
    groups: new Map(),
    toolsets: expect.objectContaining({ size: 0 }),
    needsToolset: false,
    registration: {
      privateAddresses: "loopback",
      scripts: false,
      secrets: [],
      roles: ["operator"],
      codeRoles: ["operator"],
      hostRoles: ["operator"],
    },
    limits: { requestBytes: 4_194_304, responseBytes: 16_777_216, deadlineMs: 3_600_000, concurrentStreams: 1_000 },
    keepalive: { intervalMs: 30_000, timeoutMs: 10_000, connectionAgeGraceMs: 3_600_000 },
    shutdown: { drainMs: 10_000 },
    ledger: { retentionMs: 86_400_000, maxEntries: 1_000_000, maxBytes: 1_073_741_824 },
    resume: { windowMs: 60_000, callMemoryBytes: 131_072, callDiskBytes: 16_777_216, calls: 1_000 },
    results: {
      keep: false,
      ttlMs: 3_600_000,
      principalBytes: 268_435_456,
      maxBytes: 1_073_741_824,
      encryptionKey: undefined,
    },
    scripts: { shell: false },
    servers: { starts: { programs: 16, remote: 64 } },
    tellsDenied: false,
    reflection: true,
    cors: { allowedOrigins: [] },
    faults: { seed: 1, rules: [] },
    records: {
      folder: undefined,
      gateway: true,
      session: false,
      audit: true,
      fileBytes: 16_777_216,
      fileAgeMs: 86_400_000,
      retentionMs: 2_592_000_000,
      maxFiles: 100,
      maxBytes: 1_073_741_824,
    },
    telemetry: { prometheus: undefined, maxTools: 200, otlp: undefined },
    log: { level: "info" },
  });
  expect(new Set(origins.values())).toEqual(new Set(["default"]));
  expect(config("# nothing yet\n")).toEqual(config(undefined));
});

/** Each key with a value that is not its default, and where it must show. */
const EACH_KEY: Readonly<Record<SettingKey, readonly [yaml: string, path: string, value: unknown]>> = {
  listen: ["'[::1]:9000'", "listen", { host: "::1", port: 9000 }],
  "tls.cert": ["certs/tls.crt", "tls.certFile", "/srv/gate/certs/tls.crt"],
  "tls.key": ["/etc/tls.key", "tls.keyFile", "/etc/tls.key"],
  "tls.min_version": ["TLSv1.3", "tls.minVersion", "TLSv1.3"],
  "tools.folder": ["/etc/tools", "tools.folder", "/etc/tools"],
  "tools.include": ["['*.yaml']", "tools.include", ["*.yaml"]],
  "tools.settle": ["250ms", "tools.settleMs", 250],
  "tools.poll": ["always", "tools.poll", "always"],
  "tools.poll_interval": ["2s", "tools.pollIntervalMs", 2_000],
  "results.model_window": ["200000", "results.modelWindow", 200_000],
  "results.keep": ["true", "results.keep", true],
  "results.ttl": ["2h", "results.ttlMs", 7_200_000],
  "results.principal_bytes": ["1MiB", "results.principalBytes", 1_048_576],
  "results.max_bytes": ["2MiB", "results.maxBytes", 2_097_152],
  "results.encryption_key": ["RESULT_KEY", "results.encryptionKey", "RESULT_KEY"],
  "state.folder": ["../state", "state.folder", "/srv/state"],
  "state.encryption_key": ["STATE_KEY", "state.encryptionKey", "STATE_KEY"],
  "defaults.timeout.connect": ["1s", "defaults.timeout.connectMs", 1_000],
  "defaults.timeout.read": ["2s", "defaults.timeout.readMs", 2_000],
  "defaults.timeout.idle": ["3s", "defaults.timeout.idleMs", 3_000],
  "defaults.timeout.total": ["1m30s", "defaults.timeout.totalMs", 90_000],
  "defaults.retry.max_retries": ["3", "defaults.policies", new Map([["retry.max_retries", 3]])],
  "defaults.retry.backoff": ["linear", "defaults.policies", new Map([["retry.backoff", "linear"]])],
  "defaults.retry.initial_backoff": ["2s", "defaults.policies", new Map([["retry.initial_backoff", 2_000]])],
  "defaults.retry.max_backoff": ["1m", "defaults.policies", new Map([["retry.max_backoff", 60_000]])],
  "defaults.retry.budget": ["0.5", "defaults.policies", new Map([["retry.budget", 0.5]])],
  "defaults.hedge.after": ["p90", "defaults.policies", new Map([["hedge.after", "p90"]])],
  "defaults.hedge.max": ["2", "defaults.policies", new Map([["hedge.max", 2]])],
  "defaults.circuit_breaker.enabled": ["false", "defaults.policies", new Map([["circuit_breaker.enabled", false]])],
  "defaults.circuit_breaker.failure_threshold": [
    "3",
    "defaults.policies",
    new Map([["circuit_breaker.failure_threshold", 3]]),
  ],
  "defaults.circuit_breaker.reset_timeout": [
    "30s",
    "defaults.policies",
    new Map([["circuit_breaker.reset_timeout", 30_000]]),
  ],
  "defaults.circuit_breaker.scope": ["upstream", "defaults.policies", new Map([["circuit_breaker.scope", "upstream"]])],
  "defaults.concurrency_limit": ["7", "defaults.policies", new Map([["concurrency_limit", 7]])],
  "defaults.concurrency.adaptive": ["true", "defaults.policies", new Map([["concurrency.adaptive", true]])],
  "defaults.queue.max_length": ["9", "defaults.policies", new Map([["queue.max_length", 9]])],
  "defaults.queue.max_wait": ["9s", "defaults.policies", new Map([["queue.max_wait", 9_000]])],
  "defaults.rate_limit.requests": ["9", "defaults.policies", new Map([["rate_limit.requests", 9]])],
  "defaults.rate_limit.per": ["9s", "defaults.policies", new Map([["rate_limit.per", 9_000]])],
  "defaults.rate_limit.burst": ["9", "defaults.policies", new Map([["rate_limit.burst", 9]])],
  "tls.client_ca": ["ca.crt", "tls.client.caFile", "/srv/gate/ca.crt"],
  "tls.client_auth": ["required", "tls.client.required", true],
  "identity.api_keys": ["true", "identity.apiKeys", true],
  "identity.jwt": [
    "[{issuer: i, audiences: [a], jwks_file: k.json, role_map: {boss: [admin]}, clock_skew: 1m}]",
    "identity.jwt",
    [
      {
        name: "jwt",
        issuer: "i",
        audiences: ["a"],
        jwks: { file: "/srv/gate/k.json" },
        algorithms: ["RS256", "PS256", "ES256", "EdDSA"],
        clockSkewMs: 60_000,
        subjectClaim: "sub",
        rolesClaim: "roles",
        roleMap: new Map([["boss", ["admin"]]]),
        roles: [],
      },
    ],
  ],
  "identity.mtls": [
    "[{dns: 'a.example', roles: [caller]}]",
    "identity.certificates",
    [{ type: "dns", name: "a.example", roles: ["caller"] }],
  ],
  "identity.trusted_header.subject": ["X-User", "identity.trustedHeader.subject", "x-user"],
  "identity.trusted_header.roles": ["X-Roles", "identity.trustedHeader.roles", "x-roles"],
  "identity.anonymous_roles": ["[guest]", "identity.anonymousRoles", ["guest"]],
  "defaults.allowed_roles": ["[admin]", "defaults.policies", new Map([["allowed_roles", ["admin"]]])],
  "defaults.allowed_subjects": ["['key:ci']", "defaults.policies", new Map([["allowed_subjects", ["key:ci"]]])],
  expose: ["toolsets", "needsToolset", true],
  denied_calls: ["permission_denied", "tellsDenied", true],
  "defaults.result.max_length": ["1200", "defaults.result.maxLength", 1_200],
  "defaults.result.truncation": ["summary", "defaults.result.truncation", "summary"],
  "defaults.result.hidden_characters": ["keep", "defaults.result.hiddenCharacters", "keep"],
  "defaults.result.trust": ["wrapped", "defaults.result.trust", "wrapped"],
  "defaults.result.redact.tokens": ["false", "defaults.result.redact", { tokens: false, fields: [], patterns: [] }],
  "defaults.result.redact.fields": [
    "[password]",
    "defaults.result.redact",
    { tokens: true, fields: ["password"], patterns: [] },
  ],
  "defaults.result.redact.patterns": [
    "['4\\d{15}']",
    "defaults.result.redact",
    { tokens: true, fields: [], patterns: ["4\\d{15}"] },
  ],
  "defaults.pool.max_connections": ["7", "defaults.pool.maxConnections", 7],
  "defaults.pool.max_waiting": ["0", "defaults.pool.maxWaiting", 0],
  "defaults.pool.max_idle": ["3", "defaults.pool.maxIdle", 3],
  "defaults.pool.idle_timeout": ["20s", "defaults.pool.idleMs", 20_000],
  "rate_limit.requests": ["9", "rateLimit", { requests: 9, perMs: 1_000, burst: 9 }],
  "rate_limit.per": ["9s", "rateLimit", { requests: 5, perMs: 9_000, burst: 5 }],
  "rate_limit.burst": ["9", "rateLimit", { requests: 5, perMs: 1_000, burst: 9 }],
  "egress.allow": ["['*.example.com:443']", "egress.allow.0.text", "*.example.com:443"],
  "egress.deny": ["[10.0.0.0/8]", "egress.deny.0.text", "10.0.0.0/8"],
  "secrets.key_file": ["keys.env", "secrets.keyFile", "/srv/gate/keys.env"],
  "secrets.folder": ["/run/secrets", "secrets.folder", "/run/secrets"],
  "secrets.exec.command": ["[./get, -x]", "secrets.helper.command", ["/srv/gate/get", "-x"]],
  "secrets.exec.timeout": ["2s", "secrets.helper.timeoutMs", 2_000],
  "secrets.exec.cache": ["1m", "secrets.helper.cacheMs", 60_000],
  "registration.private_addresses": ["none", "registration.privateAddresses", "none"],
  "limits.request_bytes": ["64KB", "limits.requestBytes", 64_000],
  "limits.response_bytes": ["1MiB", "limits.responseBytes", 1_048_576],
  "limits.deadline": ["10m", "limits.deadlineMs", 600_000],
  "limits.concurrent_streams": ["64", "limits.concurrentStreams", 64],
  "keepalive.interval": ["5s", "keepalive.intervalMs", 5_000],
  "keepalive.timeout": ["2s", "keepalive.timeoutMs", 2_000],
  "keepalive.max_connection_age": ["30m", "keepalive.maxConnectionAgeMs", 1_800_000],
  "keepalive.max_connection_age_grace": ["5m", "keepalive.connectionAgeGraceMs", 300_000],
  "shutdown.drain": ["0s", "shutdown.drainMs", 0],
  "ledger.retention": ["7m", "ledger.retentionMs", 420_000],
  "ledger.max_entries": ["12", "ledger.maxEntries", 12],
  "ledger.max_bytes": ["2MiB", "ledger.maxBytes", 2_097_152],
  "resume.window": ["0s", "resume.windowMs", 0],
  "resume.call_memory": ["2KiB", "resume.callMemoryBytes", 2_048],
  "resume.call_disk": ["3KiB", "resume.callDiskBytes", 3_072],
  "resume.calls": ["3", "resume.calls", 3],
  "registration.roles": ["[publisher]", "registration.roles", ["publisher"]],
  "registration.code_roles": ["[coder]", "registration.codeRoles", ["coder"]],
  "registration.host_roles": ["[router]", "registration.hostRoles", ["router"]],
  "registration.secrets": ["['ORDER_*']", "registration.secrets", ["ORDER_*"]],
  "registration.scripts": ["allow", "registration.scripts", true],
  "scripts.shell": ["allow", "scripts.shell", true],
  "servers.program_starts": ["3", "servers.starts.programs", 3],
  "servers.remote_starts": ["9", "servers.starts.remote", 9],
  reflection: ["false", "reflection", false],
  "cors.allowed_origins": ["['http://localhost:5173']", "cors.allowedOrigins", ["http://localhost:5173"]],
  "faults.seed": ["7", "faults.seed", 7],
  "faults.rules": [
    "[{tools: [a*], share: 0.5, latency: 2s, outcome: timeout, cut_after: 1KiB}, {tools: [b]}]",
    "faults.rules",
    [
      { tools: ["a*"], share: 0.5, latencyMs: 2_000, outcome: "timeout", cutAfterBytes: 1_024 },
      { tools: ["b"], share: 1, latencyMs: 0, outcome: undefined, cutAfterBytes: undefined },
    ],
  ],
  "records.folder": ["/var/log/gate", "records.folder", "/var/log/gate"],
  "records.gateway": ["false", "records.gateway", false],
  "records.session": ["true", "records.session", true],
  "records.audit": ["false", "records.audit", false],
  "records.file_bytes": ["1MiB", "records.fileBytes", 1_048_576],
  "records.file_age": ["1h", "records.fileAgeMs", 3_600_000],
  "records.retention": ["48h", "records.retentionMs", 172_800_000],
  "records.max_files": ["7", "records.maxFiles", 7],
  "records.max_bytes": ["2MiB", "records.maxBytes", 2_097_152],
  "metrics.prometheus": ["true", "telemetry.prometheus.roles.0", "operator"],
  "metrics.roles": ["[watcher]", "telemetry.prometheus.roles.0", "watcher"],
  "metrics.max_tools": ["7", "telemetry.maxTools", 7],
  "telemetry.endpoint": ["'http://127.0.0.1:4318/'", "telemetry.otlp.endpoint", "http://127.0.0.1:4318"],
  "telemetry.traces": ["false", "telemetry.otlp.traces", false],
  "telemetry.metrics": ["false", "telemetry.otlp.metrics", false],
  "telemetry.sample_ratio": ["0.25", "telemetry.otlp.sampleRatio", 0.25],
  "telemetry.interval": ["5s", "telemetry.otlp.intervalMs", 5_000],
  "log.level": ["debug", "log.level", "debug"],
};

/** Keys that do not come alone, and what they come with. */
const BESIDE: Readonly<Record<string, string>> = {
  "metrics.roles": "  prometheus: true\n",
  "telemetry.traces": "  endpoint: http://127.0.0.1:4318\n",
  "telemetry.metrics": "  endpoint: http://127.0.0.1:4318\n",
  "telemetry.sample_ratio": "  endpoint: http://127.0.0.1:4318\n",
  "telemetry.interval": "  endpoint: http://127.0.0.1:4318\n",
  "tls.cert": "  key: k\n",
  "tls.key": "  cert: c\n",
  "rate_limit.per": "  requests: 5\n",
  "rate_limit.burst": "  requests: 5\n",
  "tls.client_ca": "  cert: c\n  key: k\nidentity: {mtls: [{dns: a}]}\n",
  "tls.client_auth": "  cert: c\n  key: k\n  client_ca: ca\nidentity: {mtls: [{dns: a}]}\n",
  "identity.trusted_header.roles": "    subject: X-User\n",
  "identity.mtls": "tls: {cert: c, key: k, client_ca: ca}\n",
  "identity.anonymous_roles": "  api_keys: true\n",
  "secrets.exec.timeout": "    command: [get]\n",
  "secrets.exec.cache": "    command: [get]\n",
  "tls.min_version": "  cert: c\n  key: k\n",
};

/** Sections whose keys are in force at once; those of all others need a new start. */
const LIVE =
  /^(?:defaults|rate_limit|faults|identity|egress|secrets)\.|^limits\.response_bytes$|^denied_calls$|^expose$/;

for (const [key, [yaml, path, value]] of Object.entries(EACH_KEY)) {
  test(`\`${key}\` has its effect and its origin, and is taken over at once or named as what needs a new start [S2-124]`, () => {
    const names = key.split(".");
    const text = `# one line before\n${names.map((name, i) => `${"  ".repeat(i)}${name}:`).join("\n")} ${yaml}\n${BESIDE[key] ?? ""}`;
    const parsed = config(text);
    let at: unknown = parsed;
    for (const name of path.split(".")) at = (at as Record<string, unknown>)[name];
    expect(at).toEqual(value);
    expect(parsed.origins.get(key)).toBe(`gateway.yaml:${1 + names.length}`);
    const beside = (
      BESIDE[key]?.match(/\b(?:cert|key|client_ca|mtls|subject|requests|api_keys|command|prometheus|endpoint):/g) ?? []
    ).length;
    expect([...parsed.origins].filter(([, origin]) => origin !== "default")).toHaveLength(1 + beside);
    // With it comes what it cannot do without, and what else of its section is there only then.
    const changed = [...parsed.settings.keys()]
      .filter((each) => !isDeepStrictEqual(parsed.settings.get(each), DEFAULTS.settings.get(each)))
      .toSorted();
    expect(changed).toContain(key);
    const { applied, needRestart } = new LiveSettings(DEFAULTS).take(parsed);
    expect({ applied: applied.toSorted(), needRestart: needRestart.toSorted() }).toEqual({
      applied: changed.filter((each) => LIVE.test(each)),
      needRestart: changed.filter((each) => !LIVE.test(each)),
    });
  });
}

test("an entry of `egress` that is no place is refused where it stands, with the mend", () => {
  expect(problems("egress:\n  deny: [10.0.0.0/8, 'http://a']\n")).toEqual([
    expect.stringMatching(/^2:22 `egress\.deny\[1\]` is no place; write one like `api\.example\.com`/),
  ]);
});

test("a changed group is taken over as a whole, and what is as it was at the start needs none", () => {
  const live = new LiveSettings(config("groups: { aws: { max_parallel_calls: 2 }, other: { concurrency_limit: 1 } }"));
  const next = "groups: { aws: { queue: { max_wait: 1s } }, other: { concurrency_limit: 1 } }\nreflection: false";
  expect(live.take(config(next))).toEqual({ applied: ["groups.aws"], needRestart: ["reflection"] });
  expect(live.take(DEFAULTS)).toEqual({ applied: ["groups.aws", "groups.other"], needRestart: [] });
});

test("what belongs to a rate limit needs the limit itself", () => {
  const needs = "has no effect without `requests` beside it: set that, or leave this out";
  expect(problems("rate_limit: { per: 2s }\n")).toEqual([`1:15 \`rate_limit.per\`: ${needs}`]);
  expect(problems("groups: { aws: { shared_rate_limit: { burst: 3 } } }\n")).toEqual([
    expect.stringContaining(`\`groups.aws.shared_rate_limit.burst\`: ${needs}`),
  ]);
  // A tool of the group, or one without such a value, may set the limit that these belong to.
  expect(problems("groups: { aws: { rate_limit: { burst: 3 } } }\ndefaults: { rate_limit: { per: 2s } }\n")).toEqual(
    [],
  );
});

test("only loopback addresses are taken while no authentication is configured", () => {
  for (const [text, host] of [
    ["127.0.0.1:0", "127.0.0.1"],
    ["localhost:7433", "localhost"],
    ["127.8.9.1:1", "127.8.9.1"],
    ["[::1]:65535", "::1"],
    ["[0:0:0:0:0:0:0:1]:1", "0:0:0:0:0:0:0:1"],
  ] as const) {
    expect(parseListenAddress(text, "/srv/gate"), text).toMatchObject({ host });
  }
  for (const text of [
    "0.0.0.0:7433",
    "10.0.0.1:7433",
    "[::]:7433",
    "gateway.internal:7433",
    ":7433",
    "[fe80::1]:1",
    "127.0.0.1.evil.test:1",
    "[::ffff:10.0.0.1]:1",
  ]) {
    expect(problems(`listen: '${text}'`), text).toEqual([
      expect.stringMatching(
        /^1:1 `listen`: .* can be reached from outside, and no authentication is configured: listen on 127\.0\.0\.1:\d+ or /,
      ),
    ]);
  }
  for (const text of ["7433", "127.0.0.1", "127.0.0.1:99999", "::1:7433", "http://127.0.0.1:7433", "127.0.0.1:x"]) {
    expect(problems(`listen: '${text}'`), text).toEqual([
      expect.stringMatching(/expected an address and a port, such as 127\.0\.0\.1:7433/),
    ]);
  }
});

test("an address that can be reached from outside is taken where callers are told apart, but for a trusted header", () => {
  const outside = "listen: 0.0.0.0:7433\n";
  expect(problems(`${outside}identity: {api_keys: true}\n`)).toEqual([]);
  expect(problems(`${outside}identity: {jwt: [{issuer: i, audiences: [a], jwks_file: k}]}\n`)).toEqual([]);
  expect(problems(`${outside}identity: {api_keys: false}\n`)).toEqual([expect.stringContaining("no authentication")]);
  expect(problems(`${outside}identity: {anonymous_roles: [operator]}\n`)).toHaveLength(2);
  expect(problems(`${outside}identity: {api_keys: true, trusted_header: {subject: x-user}}\n`)).toEqual([
    expect.stringMatching(/`identity\.trusted_header` believes whoever reaches it: listen on 127\.0\.0\.1:7433 or /),
  ]);
  expect(problems("listen: unix:a\nidentity: {trusted_header: {subject: x-user}}\n")).toEqual([]);
});

test("ways of identity that cannot work or have no effect are refused with the mend", () => {
  const jwt = (keys: string): string[] => problems(`identity: {jwt: [{issuer: i, audiences: [a], ${keys}}]}\n`);
  expect(jwt("name: x")).toEqual([expect.stringContaining("takes one of `jwks_url` and `jwks_file`")]);
  expect(jwt("jwks_url: 'http://idp.example/'")).toEqual([expect.stringContaining("expected an https URL")]);
  expect(jwt("jwks_url: 'http://127.0.0.1:1/'")).toEqual([]);
  expect(jwt("jwks_file: k, algorithms: [HS256]")).toEqual([expect.stringContaining("HS256")]);
  expect(jwt("jwks_file: k, algorithms: [none]")).toHaveLength(1);
  expect(jwt("jwks_file: k, clock_skew: 6m")).toEqual([expect.stringContaining("at most 5m")]);
  expect(jwt("jwks_file: k, name: key")).toEqual([expect.stringContaining('"key" is taken')]);
  expect(jwt("jwks_file: k}, {issuer: i, audiences: [a], jwks_file: k, name: b")).toEqual([
    expect.stringContaining("stands there twice"),
  ]);
  expect(problems("identity: {mtls: [{dns: a}]}\n")).toEqual([expect.stringContaining("needs `tls.client_ca`")]);
  const tls = "tls: {cert: c, key: k, client_ca: ca}\n";
  expect(problems(`${tls}identity: {mtls: [{dns: a, uri: b}]}\n`)).toEqual([expect.stringContaining("takes one of")]);
  expect(problems("tls: {cert: c, key: k, client_auth: required}\n")).toHaveLength(1);
  expect(problems("identity: {trusted_header: {roles: x-roles}}\n")).toEqual([
    expect.stringContaining("without `subject`"),
  ]);
});

test("what a group sets stands under its name, by dotted key and with its origin", () => {
  const text = "groups:\n  aws.eu:\n    max_parallel_calls: 3\n    concurrency_limit: 2\n  plain: {}\n";
  const { groups, origins } = config(text);
  expect(groups).toEqual(
    new Map([
      [
        "aws.eu",
        new Map([
          ["max_parallel_calls", 3],
          ["concurrency_limit", 2],
        ]),
      ],
      ["plain", new Map()],
    ]),
  );
  expect(origins.get("groups.aws.eu.max_parallel_calls")).toBe("gateway.yaml:3");
  expect(origins.get("groups.plain.max_parallel_calls")).toBe("default");
  expect(problems("groups:\n  aws:\n    max_paralel_calls: 3\n")).toEqual([
    '3:5 unknown key `max_paralel_calls` in `groups.aws`; did you mean "max_parallel_calls"?',
  ]);
  expect(problems("groups: {'a b': {}}\n")).toHaveLength(1);
});

test("a Unix socket is named as in gRPC, relative to the file", () => {
  for (const [text, path] of [
    ["unix:gate.sock", "/srv/gate/gate.sock"],
    ["unix:../run/gate.sock", "/srv/run/gate.sock"],
    ["unix:/run/gate.sock", "/run/gate.sock"],
    ["unix:///run/gate.sock", "/run/gate.sock"],
    [`unix:/${"é".repeat(53)}`, `/${"é".repeat(53)}`],
  ] as const) {
    expect(config(`listen: '${text}'`).listen, text).toEqual({ path });
  }
  for (const text of ["unix:", "unix://run/gate.sock", "unix:/run/", "unix:a\\0b", "unix:////run/gate.sock"]) {
    expect(problems(`listen: "${text}"`), text).toEqual([
      expect.stringMatching(/^1:1 `listen`: expected the path of a socket, such as unix:toolgate\.sock, got /),
    ]);
  }
});

test("a path that a Unix socket has no room for is refused with the mend", () => {
  expect(problems(`listen: 'unix:/${"é".repeat(53)}x'`)).toEqual([
    expect.stringMatching(
      /has 108 bytes, .* has room for 107: take a shorter one, such as unix:\/run\/toolgate\.sock$/,
    ),
  ]);
});

test("a certificate comes with its key, and not on a Unix socket", () => {
  expect(config("listen: 127.0.0.1:1\n").tls).toBeUndefined();
  expect(problems("tls: {cert: tls.crt}\n")).toEqual(["1:1 key `key` is missing in `tls`"]);
  expect(problems("tls: {key: tls.key}\n")).toEqual(["1:1 key `cert` is missing in `tls`"]);
  expect(problems("tls: {cert: c, key: k, min_version: TLSv1.1}\n")).toEqual([
    '1:24 `tls.min_version`: expected one of "TLSv1.2", "TLSv1.3"; got text "TLSv1.1"; did you mean "TLSv1.2", "TLSv1.3"?',
  ]);
  expect(problems("listen: unix:a\ntls: {cert: c, key: k}\n")).toEqual([
    "2:1 `tls`: a Unix socket needs no TLS, since nothing of it leaves the machine: remove it, or listen on an address and a port",
  ]);
  expect(problems("tls: {cert: c, key: k, client_ca: ca}\n")).toEqual([
    "1:24 `tls.client_ca` has no effect without `identity.mtls`, which says whom a certificate means",
  ]);
  expect(problems("listen: 0.0.0.0:1\ntls: {cert: c, key: k}\n")).toEqual([
    expect.stringContaining("can be reached from outside, and no authentication is configured"),
  ]);
});

test("keys of later versions are refused as not supported yet, by name", () => {
  for (const key of ["skills", "proxy"]) {
    expect(problems(`${key}: {a: 1}\n`)).toEqual([`1:1 \`${key}\` is not supported yet: remove it`]);
  }
});

test("all problems of the file come back at once, in order", () => {
  const text =
    "tools:\n  settle: 3\n  setle: 1s\n  poll: never\nlog: {level: inf}\nlimits: {deadline: soon, concurrent_streams: 0}\nreflection: on\nfoo: 1\n";
  expect(problems(text)).toEqual([
    '2:3 `tools.settle`: expected a duration with its unit, such as 500ms, 3s, 1m30s or 2h; got text "3": write 3s',
    '3:3 unknown key `setle` in `tools`; did you mean "settle"?',
    '4:3 `tools.poll`: expected one of "auto", "always"; got text "never"',
    '5:7 `log.level`: expected one of "debug", "info", "warn", "error", "silent"; got text "inf"; did you mean "info"?',
    '6:10 `limits.deadline`: expected a duration with its unit, such as 500ms, 3s, 1m30s or 2h; got text "soon"',
    "6:26 `limits.concurrent_streams`: expected a number >= 1, got number 0",
    '7:1 `reflection`: expected true or false, got text "on": write true',
    '8:1 unknown key `foo`; did you mean "log"?',
  ]);
});

test("values out of range are refused with the range", () => {
  expect(
    problems(
      "keepalive: {interval: 1ms}\nlimits: {request_bytes: 1, deadline: 900h}\ndefaults: {timeout: {read: 0s}}\n",
    ),
  ).toEqual([
    "1:13 `keepalive.interval`: expected 1s to 1h, got 1ms",
    "2:10 `limits.request_bytes`: expected 1024 bytes to 1073741824 bytes, got 1 bytes",
    "2:28 `limits.deadline`: expected 1s to 24h, got 900h",
    "3:22 `defaults.timeout.read`: expected 1ms to 24h, got 0s",
  ]);
});

test("a broken text is told like that of any other file", () => {
  expect(problems("log:\n\tlevel: info\n")).toEqual([
    "2:1 a tab as indentation, which YAML does not allow: use spaces",
  ]);
  expect(problems("- a\n")).toEqual(["1:1 expected a mapping of keys to values, got a list"]);
});

test("anchors have a place under x- keys", () => {
  expect(config("x-waits: &w {interval: 7s}\nkeepalive: {<<: *w}\n").keepalive.intervalMs).toBe(7_000);
});

test("the schema for editors describes every key and says its default", () => {
  const walk = (schema: JsonObject, path: string): void => {
    expect(typeof schema["description"], path).toBe("string");
    for (const [name, member] of Object.entries(isJsonObject(schema["properties"]) ? schema["properties"] : {})) {
      if (isJsonObject(member)) walk(member, `${path}.${name}`);
    }
  };
  walk(GATEWAY_CONFIG_SCHEMA, "gateway");
  expect(GATEWAY_CONFIG_SCHEMA).toMatchObject({
    properties: { tools: { properties: { settle: { default: "100ms" } } } },
  });
});
