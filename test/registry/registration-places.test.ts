import { expect, test } from "vitest";
import { createAdapters } from "../../src/adapters/index.ts";
import type { PrivateReach } from "../../src/core/adapter.ts";
import { isJsonObject, type JsonObject, ownValue } from "../../src/core/json.ts";
import { createSchemaChecker } from "../../src/pipeline/schema-checker.ts";
import type { Declaration } from "../../src/registry/declaration.ts";
import { createDeclarationGrammar } from "../../src/registry/declaration-grammar.ts";
import { parseDeclaration } from "../../src/registry/parse-declaration.ts";
import { refuseRegistrar, restrictRegistrations } from "../../src/registry/registration-policy.ts";

const adapters = createAdapters({ environment: { LEAKY: "x" }, folder: "/srv/tools", shell: false });
const checker = createSchemaChecker({ maxCompiled: 10 });
const grammar = createDeclarationGrammar({
  adapters: new Map(adapters.map((adapter) => [adapter.kind, adapter])),
  steps: [],
  schemaProblem: (schema) => checker.problem(schema),
});

interface Rights {
  readonly scripts?: boolean;
  readonly secrets?: readonly string[];
  readonly reach?: PrivateReach;
  readonly roles?: readonly string[];
}

const KNOWN = "https://known.example.com";

/** What comes of a registration by somebody who may register tools of the one host that is known. */
function register(keys: object, rights: Rights = {}): string {
  const { scripts = false, secrets = ["MINE"], reach = "none", roles = [] } = rights;
  const parse = restrictRegistrations({ scripts, secrets }, (text, { format, source }) =>
    parseDeclaration(text, {
      format,
      source,
      grammar,
      reach,
      origins: new Map(),
      defaults: { maxResponseBytes: 1_000_000 },
    }),
  );
  const text = JSON.stringify({ name: "t", description: "查询订单 looks an order up", ...keys });
  const outcome = parse(text, { format: "json", source: "api" });
  if (!outcome.ok) return outcome.problems.map(({ message }) => message).join("; ");
  return registrar(outcome.declaration, roles);
}

function registrar(declaration: Declaration, roles: readonly string[]): string {
  try {
    const registrars = { code: ["code"], hosts: ["hosts"] };
    refuseRegistrar(declaration, { id: "key:r", roles }, registrars, (reached) => reached === KNOWN);
    return "taken";
  } catch (error) {
    return error instanceof Error ? error.message : "?";
  }
}

const http = (more: object = {}) => ({ type: "http", endpoint: `${KNOWN}/x`, ...more });
const server = (more: object = {}) => ({ type: "mcp", mcp: { url: `${KNOWN}/mcp`, ...more } });
const grpc = (more: object = {}) => ({
  type: "grpc",
  grpc: { address: KNOWN, method: "shop.Orders/Get", reflection: true, ...more },
});
const tokens = (more: object) => ({ client_credentials: { client_id: "c", secret_ref: "MINE", ...more } });
const script = (more: object = {}) => ({ type: "script", command: "work", ...more });
const NEW_HOST = /only the role `hosts` may register what reaches a host that no declared tool reaches/;

test("a registration of the known host alone is taken, by HTTP, as a server, and with tokens from there [K-D01]", () => {
  const token_url = `${KNOWN}/token`;
  expect(register(http())).toBe("taken");
  expect(register(http({ auth: tokens({ token_url }) }))).toBe("taken");
  expect(register(server())).toBe("taken");
  expect(register(server({ auth: tokens({ token_url, issuer: KNOWN }) }))).toBe("taken");
  expect(register(grpc())).toBe("taken");
});

/** Each key of a declaration that names a place: one that must not get through, and why it does not. */
const PLACES: Readonly<Record<string, readonly (readonly [declaration: object, refusal: RegExp])[]>> = {
  "http endpoint": [
    [http({ endpoint: "https://other.example.com/x" }), NEW_HOST],
    [http({ endpoint: "https://known.example.com:444/x" }), NEW_HOST],
    [http({ endpoint: "http://known.example.com/x" }), NEW_HOST],
    [http({ endpoint: "http://127.0.0.1/x" }), /no public address|loopback|registered over the wire/],
    [http({ endpoint: "https://{h}/x", params: [{ name: "h", type: "string" }] }), /fixed text/],
  ],
  "http headers": [[http({ headers: { Host: "inner" } }), /Host/i]],
  "http auth.client_credentials.token_url": [
    [http({ auth: tokens({ token_url: "https://other.example.com/token" }) }), NEW_HOST],
    [http({ auth: tokens({ token_url: "https://known.example.com:8443/token" }) }), NEW_HOST],
    [http({ auth: tokens({ token_url: "http://10.0.0.1/token" }) }), /no public address/],
    [http({ auth: tokens({ token_url: "https://u:p@known.example.com/" }) }), /name or password/],
  ],
  "http allow_private": [[http({ allow_private: true }), /over the wire/]],
  "http proxy": [[http({ proxy: "http://proxy" }), /not supported yet/]],
  "http tls": [[http({ tls: { ca: "/etc/ca.pem" } }), /not supported yet/]],
  "mcp mcp.url": [
    [server({ url: "https://other.example.com/mcp" }), NEW_HOST],
    [server({ url: "http://10.0.0.1/mcp" }), /no public address/],
  ],
  "mcp mcp.auth.client_credentials.token_url": [
    [server({ auth: tokens({ token_url: "https://other.example.com/token" }) }), NEW_HOST],
    [server({ auth: tokens({ token_url: "http://169.254.169.254/" }) }), /no public address/],
  ],
  "mcp mcp.auth.client_credentials.issuer": [
    [server({ auth: tokens({ issuer: "https://other.example.com" }) }), NEW_HOST],
    [server({ auth: tokens({ issuer: "http://[fd00::1]" }) }), /no public address/],
  ],
  "mcp mcp.headers": [[server({ headers: { Host: "inner" } }), /Host/i]],
  "mcp mcp.allow_private": [[server({ allow_private: true }), /not for servers registered over the wire/]],
  "mcp mcp.command": [[{ type: "mcp", mcp: { command: "work" } }, /runs a program/]],
  "mcp mcp.cwd": [[{ type: "mcp", mcp: { command: "work", cwd: "/" } }, /runs a program/]],
  "mcp cwd": [[{ type: "mcp", mcp: { command: "work" }, cwd: "/" }, /runs a program/]],
  "mcp mcp.auth.oauth.issuer": [
    [server({ auth: { oauth: { issuer: KNOWN } } }), /not for servers registered over the wire/],
  ],
  "mcp mcp.auth.oauth.client_metadata_url": [
    [
      server({ auth: { oauth: { client_metadata_url: `${KNOWN}/client` } } }),
      /not for servers registered over the wire/,
    ],
  ],
  "grpc grpc.address": [
    [grpc({ address: "https://other.example.com" }), NEW_HOST],
    [grpc({ address: "https://known.example.com:444" }), NEW_HOST],
    [grpc({ address: "http://known.example.com" }), NEW_HOST],
    [grpc({ address: "http://127.0.0.1:50051" }), /no public address/],
    [grpc({ address: "unix:/run/inner.sock" }), /a Unix socket is of this machine/],
  ],
  "grpc grpc.allow_private": [[grpc({ allow_private: true }), /over the wire/]],
  "grpc grpc.descriptor": [
    [grpc({ reflection: undefined, descriptor: "../../etc/x.binpb" }), /leads out of the watched folder/],
  ],
  "grpc grpc.tls.ca": [[grpc({ tls: { ca: "/etc/ca.pem" } }), /leads out of the watched folder/]],
  "grpc grpc.tls.cert": [[grpc({ tls: { cert: "/etc/c.pem", key: "k.pem" } }), /leads out of the watched folder/]],
  "grpc grpc.tls.key": [[grpc({ tls: { cert: "c.pem", key: "../k.pem" } }), /leads out of the watched folder/]],
  "script command": [[script(), /runs a program/]],
  "script cwd": [[script({ cwd: "/" }), /runs a program/]],
  "script shell": [[script({ shell: true }), /shell/]],
};

test.each(Object.entries(PLACES))(
  "%s of a registration leads nowhere that its caller may not open [K-D01]",
  (_key, cases) => {
    for (const [declaration, refusal] of cases) expect(register(declaration)).toMatch(refusal);
  },
);

/** Keys that name no place: words, templates below a fixed host, limits, and lists that only narrow down. */
const NO_PLACE: Readonly<Record<string, readonly string[]>> = {
  http: [
    "method query query_style body request_body content_type form multipart auth.type auth.secret_ref auth.by_role",
    "auth.header_name auth.prefix auth.query_name auth.client_credentials.client_id",
    "auth.client_credentials.secret_ref auth.client_credentials.scopes auth.client_credentials.client_auth",
    "auth.client_credentials.resource auth.client_credentials.audience signing.algorithm signing.secret_ref",
    "signing.header_name signing.prefix signing.encoding signing.content signing.timestamp_header",
    "signing.timestamp_format signing.nonce_header signing.key_id redirects egress.allow egress.deny",
    "deadline_header pool.max_connections pool.max_waiting pool.max_idle",
  ],
  script: ["args env inherit_env stdin encoding success_codes allow_dash stream worker.processes worker.max_calls"],
  mcp: [
    "mcp.args mcp.env mcp.inherit_env mcp.auth.bearer.secret_ref mcp.auth.bearer.by_role mcp.auth.client_credentials.client_id",
    "mcp.auth.client_credentials.secret_ref mcp.auth.client_credentials.scopes",
    "mcp.auth.client_credentials.client_auth mcp.auth.client_credentials.resource mcp.egress.allow",
    "mcp.egress.deny mcp.transport mcp.protocol mcp.start mcp.start_timeout mcp.idle_timeout",
    "mcp.restart.first mcp.restart.max mcp.restart.attempts mcp.auth.oauth.client_id mcp.auth.oauth.secret_ref",
    "mcp.auth.oauth.client_auth mcp.auth.oauth.scopes mcp.auth.oauth.resource mcp.auth.oauth.redirect_port",
  ],
  grpc: [
    "grpc.method grpc.reflection grpc.request grpc.metadata grpc.tls.server_name grpc.egress.allow grpc.egress.deny",
  ],
};

function leaves(schema: JsonObject, path: string): string[] {
  const properties = ownValue(schema, "properties");
  if (!isJsonObject(properties)) return [path];
  return Object.entries(properties).flatMap(([name, inner]) =>
    leaves(isJsonObject(inner) ? inner : {}, path === "" ? name : `${path}.${name}`),
  );
}

test("every key of every kind is known to name a place or none", () => {
  const found = adapters.flatMap(({ kind, configSchema }) => leaves(configSchema, "").map((key) => `${kind} ${key}`));
  const none = Object.entries(NO_PLACE).flatMap(([kind, lines]) =>
    lines.flatMap((line) => line.split(" ").map((key) => `${kind} ${key}`)),
  );
  expect(found.toSorted()).toEqual([...Object.keys(PLACES), ...none].toSorted());
});

test("what opens each door is its own role or setting, and no other", () => {
  const elsewhere = http({ auth: tokens({ token_url: "https://other.example.com/token" }) });
  expect(register(elsewhere, { roles: ["hosts"] })).toBe("taken");
  expect(register(elsewhere, { roles: ["code", "operator"] })).toMatch(NEW_HOST);
  expect(register(script(), { scripts: true, roles: ["hosts"] })).toMatch(/only the role `code`/);
  expect(register(script(), { scripts: true, roles: ["code"] })).toBe("taken");
  expect(register(http({ endpoint: "http://127.0.0.1/x" }), { reach: "loopback", roles: ["hosts"] })).toBe("taken");
});

test("every key that names a secret is held to `registration.secrets` [K-D01]", () => {
  const header = { header_name: "X-Key", secret_ref: "MINE" };
  for (const declaration of [
    http({ auth: { ...header, secret_ref: "LEAKY" } }),
    http({ auth: { ...header, by_role: { admin: "LEAKY" } } }),
    http({ auth: tokens({ token_url: `${KNOWN}/token`, secret_ref: "LEAKY" }) }),
    http({ signing: { algorithm: "hmac-sha256", secret_ref: "LEAKY", header_name: "X-Sign", content: "{path}" } }),
    server({ headers: { "X-Key": "${LEAKY}" } }),
    server({ headers: { "X-Key": { secret_ref: "LEAKY" } } }),
    server({ auth: { bearer: { secret_ref: "LEAKY" } } }),
    server({ auth: { bearer: { secret_ref: "MINE", by_role: { admin: "LEAKY" } } } }),
    server({ auth: tokens({ secret_ref: "LEAKY" }) }),
    grpc({ metadata: { "x-key": "${LEAKY}" } }),
  ]) {
    expect(register(declaration)).toMatch(/may not use the secret `LEAKY`: /);
  }
});

test("a registered program gets no variable of the gateway that `registration.secrets` does not name [K-D01]", () => {
  const may = { scripts: true, roles: ["code"] };
  const programs = (names: readonly string[]) => [
    script({ inherit_env: names }),
    { type: "mcp", mcp: { command: "work", inherit_env: names } },
  ];
  for (const program of programs(["LEAKY", "MINE"])) {
    expect(register(program, may)).toMatch(/may not use the secret `LEAKY`: /);
    expect(register(program, { ...may, secrets: ["LEAKY", "M*"] })).toBe("taken");
  }
  for (const program of programs(["MINE"])) expect(register(program, may)).toBe("taken");
});
