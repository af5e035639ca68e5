import { resolve } from "node:path";
import type { ConfigIssue } from "../core/adapter.ts";
import { DURATION_SCHEMA, parseDuration } from "../core/durations.ts";
import type { CertificateNameType, CertificateRule, IdentitySettings, JwtIssuer } from "../core/identity.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonArray, isJsonObject, ownValue } from "../core/json.ts";
import { ROLES_SCHEMA } from "./access-settings.ts";
import { isLoopbackHost } from "./listen-address.ts";
import { ownObject, ownText } from "./own-values.ts";
import type { Setting } from "./setting.ts";

/** Signatures by a key pair alone: with a shared key whoever checks tokens could also make them. Source: RFC 8725, 3.1. */
const ALGORITHMS = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split(" ");

const CERTIFICATE_NAMES: readonly CertificateNameType[] = ["uri", "dns", "email", "common_name"];

const ROLES = ROLES_SCHEMA;

const HEADER_NAME: JsonObject = {
  type: "string",
  pattern: "^[A-Za-z0-9-]{1,64}$",
  patternErrorMessage: "expected the name of a header, such as `x-forwarded-user`",
};

const TEXT: JsonObject = { type: "string", minLength: 1, maxLength: 2_048 };

const JWT_ISSUER: JsonObject = {
  type: "object",
  required: ["issuer", "audiences"],
  additionalProperties: false,
  properties: {
    issuer: { ...TEXT, description: "What the claim `iss` has to be, to the letter." },
    audiences: {
      type: "array",
      minItems: 1,
      items: TEXT,
      description: "Of which the claim `aud` has to hold one: names of this gateway.",
      examples: [["toolgate"]],
    },
    jwks_url: { ...TEXT, description: "Where the issuer's public keys are, over https; this or `jwks_file`." },
    allow_private: {
      type: "boolean",
      default: false,
      description: "Whether the name in `jwks_url` may lead to an address that is not public.",
    },
    jwks_file: {
      ...TEXT,
      description: "File with the public keys, relative to this file; read again when it changes.",
    },
    algorithms: {
      type: "array",
      minItems: 1,
      items: { enum: ALGORITHMS },
      default: ["RS256", "PS256", "ES256", "EdDSA"],
      description: "Algorithms that a token may be signed with.",
    },
    clock_skew: { ...DURATION_SCHEMA, default: "30s", description: "How far the clocks may be apart, up to 5m." },
    name: {
      type: "string",
      pattern: "^[a-z][a-z0-9-]{0,31}$",
      patternErrorMessage: "expected small letters, digits and `-`, such as `staff`",
      default: "jwt",
      description: "First part of the callers' ids: `staff` makes `staff:alice`.",
    },
    subject_claim: { ...TEXT, default: "sub", description: "Claim with the second part." },
    roles_claim: {
      ...TEXT,
      default: "roles",
      description: "Claim with the roles, by a dotted path: a list, or words in a text such as `scope`.",
    },
    role_map: {
      type: "object",
      maxProperties: 1_000,
      additionalProperties: ROLES,
      description: "Roles by what that claim says; what is not named here gives none. Absent: it says the roles.",
      examples: [{ "toolgate-admins": ["operator"] }],
    },
    roles: { ...ROLES, default: [], description: "Roles of everybody with a token of this issuer." },
  },
};

const CERTIFICATE_RULE: JsonObject = {
  type: "object",
  additionalProperties: false,
  properties: {
    uri: {
      ...TEXT,
      description: "URI among the alternative names, as SPIFFE ids are.",
      examples: ["spiffe://example.org/ns/prod/*"],
    },
    dns: { ...TEXT, description: "DNS name among the alternative names." },
    email: { ...TEXT, description: "Mail address among the alternative names." },
    common_name: { ...TEXT, description: "Common name of the subject." },
    roles: { ...ROLES, default: [], description: "Roles of who shows such a certificate." },
  },
};

/** How callers are told apart, by dotted key. */
export const IDENTITY_SETTINGS = {
  "identity.api_keys": {
    schema: {
      type: "boolean",
      description:
        "Whether the keys of `toolgate key create` are taken, as `authorization: Bearer tg_…` or `x-api-key: tg_…`. They stand, as hashes, in `api-keys.json` of the state folder; a key that was made or revoked counts within a second.",
    },
    standard: false,
  },
  "identity.jwt": {
    schema: {
      type: "array",
      maxItems: 20,
      items: JWT_ISSUER,
      description: "Issuers whose JSON Web Tokens are taken, as `authorization: Bearer …`.",
    },
    standard: [],
  },
  "identity.mtls": {
    schema: {
      type: "array",
      maxItems: 1_000,
      items: CERTIFICATE_RULE,
      description:
        "Whom a caller's certificate makes it, each entry by one of `uri`, `dns`, `email` and `common_name`, in which `*` stands for any characters; the first that fits counts. The id is `cert:` and the name. Needs `tls.client_ca`.",
    },
    standard: [],
  },
  "identity.trusted_header.subject": {
    schema: {
      ...HEADER_NAME,
      description:
        "Header in which a proxy on this machine says who calls; the id is `header:` and its value. Only on loopback and Unix sockets, since whoever reaches the port can send it.",
    },
  },
  "identity.trusted_header.roles": {
    schema: { ...HEADER_NAME, description: "Header in which it says the caller's roles, separated by commas." },
  },
  "identity.anonymous_roles": {
    schema: {
      ...ROLES,
      description:
        "Roles of callers that show no credential at all; `[]`: they may call what is open to everybody. Absent: they are refused, unless no identity is configured.",
    },
  },
} as const satisfies Readonly<Record<string, Setting>>;

/** Reads what `identity` says; undefined where it tells nobody apart. Its problems go to `issues`. */
export function readIdentity(
  values: ReadonlyMap<string, JsonValue>,
  folder: string,
  issues: ConfigIssue[],
): IdentitySettings | undefined {
  const at = (key: keyof typeof IDENTITY_SETTINGS): JsonValue | undefined => values.get(key);
  const subject = textOf(at("identity.trusted_header.subject"));
  const roles = textOf(at("identity.trusted_header.roles"));
  if (subject === undefined && roles !== undefined) {
    const message =
      "`identity.trusted_header.roles` has no effect without `subject` beside it: set that, or leave this out";
    issues.push({ pointer: "/identity/trusted_header/roles", message });
  }
  const anonymous = at("identity.anonymous_roles");
  const settings: IdentitySettings = {
    apiKeys: at("identity.api_keys") === true,
    jwt: objectsOf(at("identity.jwt")).map((issuer, i) => readIssuer(issuer, i, folder, issues)),
    certificates: objectsOf(at("identity.mtls")).flatMap((rule, i) => readCertificateRule(rule, i, issues)),
    trustedHeader: subject === undefined ? undefined : { subject: subject.toLowerCase(), roles: roles?.toLowerCase() },
    anonymousRoles: anonymous === undefined ? undefined : textsOf(anonymous),
  };
  refuseTwice(settings.jwt, issues);
  if (tellsCallersApart(settings)) return settings;
  if (settings.anonymousRoles !== undefined) {
    const message =
      "`identity.anonymous_roles` has no effect where every caller is anonymous: configure another way of `identity`, or leave this out";
    issues.push({ pointer: "/identity/anonymous_roles", message });
  }
  return undefined;
}

/** Whether there is any way to tell callers apart. */
function tellsCallersApart({ apiKeys, jwt, certificates, trustedHeader }: IdentitySettings): boolean {
  return apiKeys || jwt.length > 0 || certificates.length > 0 || trustedHeader !== undefined;
}

function readIssuer(issuer: JsonObject, i: number, folder: string, issues: ConfigIssue[]): JwtIssuer {
  const or = (key: string, standard: string): string => textOf(ownValue(issuer, key)) ?? standard;
  const skewMs = parseDuration(ownText(issuer, "clock_skew")) ?? 30_000;
  if (skewMs > MAX_SKEW_MS) {
    const message = `\`identity.jwt[${i}].clock_skew\`: expected at most 5m`;
    issues.push({ pointer: `/identity/jwt/${i}/clock_skew`, message });
  }
  const map = ownObject(issuer, "role_map");
  const algorithms = textsOf(ownValue(issuer, "algorithms"));
  return {
    name: or("name", "jwt"),
    issuer: or("issuer", ""),
    audiences: textsOf(ownValue(issuer, "audiences")),
    jwks: readKeyPlace(issuer, i, folder, issues),
    algorithms: algorithms.length > 0 ? algorithms : ["RS256", "PS256", "ES256", "EdDSA"],
    clockSkewMs: skewMs,
    subjectClaim: or("subject_claim", "sub"),
    rolesClaim: or("roles_claim", "roles"),
    roleMap: map === undefined ? undefined : new Map(Object.entries(map).map(([word, list]) => [word, textsOf(list)])),
    roles: textsOf(ownValue(issuer, "roles")),
  };
}

function readKeyPlace(issuer: JsonObject, i: number, folder: string, issues: ConfigIssue[]): JwtIssuer["jwks"] {
  const pointer = `/identity/jwt/${i}`;
  const url = textOf(ownValue(issuer, "jwks_url"));
  const file = textOf(ownValue(issuer, "jwks_file"));
  if ((url === undefined) === (file === undefined)) {
    const message = `\`identity.jwt[${i}]\` takes one of \`jwks_url\` and \`jwks_file\`: where the keys are`;
    issues.push({ pointer, message });
  }
  if (url !== undefined && !isSafeUrl(url)) {
    const message = `\`identity.jwt[${i}].jwks_url\`: expected an https URL, since who can change the keys on their way can make tokens; got ${JSON.stringify(url)}`;
    issues.push({ pointer: `${pointer}/jwks_url`, message });
  }
  const allowed = ownValue(issuer, "allow_private");
  if (url === undefined && allowed !== undefined) {
    const message = `\`identity.jwt[${i}].allow_private\` has no effect without \`jwks_url\`: leave it out`;
    issues.push({ pointer: `${pointer}/allow_private`, message });
  }
  return url === undefined ? { file: resolve(folder, file ?? "") } : { url, allowPrivate: allowed === true };
}

const MAX_SKEW_MS = 300_000;

/** Prefixes of ids that other ways of identity have. */
const TAKEN_NAMES = ["key", "cert", "header", "anonymous"];

function refuseTwice(issuers: readonly JwtIssuer[], issues: ConfigIssue[]): void {
  for (const [i, { name, issuer }] of issuers.entries()) {
    const before = issuers.slice(0, i);
    if (before.some((other) => other.issuer === issuer)) {
      const message = `\`identity.jwt[${i}].issuer\` stands there twice: give one entry all its audiences`;
      issues.push({ pointer: `/identity/jwt/${i}/issuer`, message });
    }
    if (TAKEN_NAMES.includes(name) || before.some((other) => other.name === name)) {
      const message = `\`identity.jwt[${i}].name\`: ${JSON.stringify(name)} is taken, and ids would mean two callers: choose another`;
      issues.push({ pointer: `/identity/jwt/${i}/name`, message });
    }
  }
}

function readCertificateRule(rule: JsonObject, i: number, issues: ConfigIssue[]): readonly CertificateRule[] {
  const named = CERTIFICATE_NAMES.flatMap((type) => {
    const name = textOf(ownValue(rule, type));
    return name === undefined ? [] : [{ type, name, roles: textsOf(ownValue(rule, "roles")) }];
  });
  if (named.length === 1) return named;
  const message = `\`identity.mtls[${i}]\` takes one of \`uri\`, \`dns\`, \`email\` and \`common_name\`: whom it is about`;
  issues.push({ pointer: `/identity/mtls/${i}`, message });
  return [];
}

/** Over plain http only this machine can be asked. */
function isSafeUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== "") return false;
  return (
    url.protocol === "https:" || (url.protocol === "http:" && isLoopbackHost(url.hostname.replace(/^\[|\]$/g, "")))
  );
}

function objectsOf(value: JsonValue | undefined): readonly JsonObject[] {
  return isJsonArray(value) ? value.filter(isJsonObject) : [];
}

function textsOf(value: JsonValue | undefined): readonly string[] {
  return isJsonArray(value) ? value.filter((text) => typeof text === "string") : [];
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}
