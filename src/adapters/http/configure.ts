import type { AdapterSettings, Configured, PrivateReach } from "../../core/adapter.ts";
import { readEgress } from "../../core/egress.ts";
import { type JsonObject, ownValue } from "../../core/json.ts";
import type { DeclaredTool } from "../../core/tool.ts";
import { VERSION } from "../../core/version.ts";
import { headerBytes } from "../shared/header-rules.ts";
import { hostKind, isFixedHost } from "../shared/network/addresses.ts";
import type { EgressChoice } from "../shared/network/egress.ts";
import { socketTarget } from "../shared/network/socket.ts";
import { allowsNull } from "../shared/param-schema.ts";
import { namesIn, parseBraces, type TextTemplate } from "../shared/text-template.ts";
import { DEADLINE_HEADER, type HttpMethod, METHODS, QUERY_STYLES } from "./config-schema.ts";
import { claimQuery, configureAuth } from "./configure-auth.ts";
import { BodyConfiguration } from "./configure-body.ts";
import { configureSigning } from "./configure-signing.ts";
import { DeclarationChecker } from "./declaration-checker.ts";
import type { HeaderTemplate, HttpConfig } from "./http-config.ts";
import { literalCredentialNotes, literalCredentials } from "./literal-credentials.ts";
import { poolLimits } from "./pool-limits.ts";
import { MAX_HEADER_BYTES, MAX_TARGET_BYTES } from "./request-limits.ts";
import { secretRefsOf } from "./secret-use.ts";
import {
  compileEndpoint,
  compileQueryValue,
  type Endpoint,
  encodePlain,
  type QueryPair,
  queryNamesOf,
} from "./url-template.ts";

/** Compiles the HTTP keys of a declaration, or lists all that is wrong with them. Does no I/O. */
export function configureHttp(keys: JsonObject, tool: DeclaredTool, settings: AdapterSettings): Configured<HttpConfig> {
  const checker = new DeclarationChecker(keys, tool);
  const method = methodOf(checker);
  const endpoint = endpointOf(checker);
  const query = queryOf(checker);
  const queryStyle = QUERY_STYLES.find((style) => style === checker.text("query_style")) ?? "repeat";
  const auth = configureAuth(checker, settings.reach);
  const literals = literalCredentials(keys);
  const signing = configureSigning(checker);
  const headers = headersOf(checker);
  const deadlineHeader = deadlineHeaderOf(checker);
  const bodies = new BodyConfiguration(checker, method);
  const body = bodies.body();
  const contentType = bodies.contentType(body);
  const params = Object.keys(checker.params);
  const unnamed = params.filter((name) => !checker.named.has(name));
  const queryNames = new Set(queryNamesOf([...(endpoint?.query ?? []), ...query], queryStyle));
  claimQuery(checker, auth, queryNames);
  const rest = bodies.rest(body, unnamed);
  if (rest === "query") checkQueryRest(checker, unnamed, queryNames);
  if (endpoint !== undefined) checkEndpoint(checker, endpoint, query, settings.reach);
  const egress = egressOf(checker, settings);
  checker.warnings.push(...literalCredentialNotes(literals));
  const { issues, warnings } = checker;
  if (endpoint === undefined || issues.length > 0) return { ok: false, issues };
  const sent = splitHeaders(headers, checker.headerNames, acceptOf(tool, settings));
  const nullable = params.filter((name) => allowsNull(ownValue(checker.params, name) ?? true));
  const config: HttpConfig = {
    tool,
    settings,
    method,
    endpoint,
    query,
    inUrl: paramsInUrl(endpoint, query),
    queryStyle,
    queryNames: sharedSet(queryNames),
    fixedHeaders: sent.fixedHeaders,
    headers: sent.headers,
    hasContentType: sent.hasContentType,
    body,
    contentType,
    auth,
    signing,
    deadlineHeader,
    redirects: redirectsOf(checker),
    egress,
    pool: poolLimits(keys, settings.pool),
    rest,
    hasRest: unnamed.length > 0,
    named: sharedSet(checker.named),
    keepsNull: nullable.length === 0 ? NO_NAMES : new Set(nullable),
    readOnly: tool.hints.readOnly ?? (method === "GET" || method === "HEAD"),
    literals: literals.map(({ value }) => value),
    declared: keys,
  };
  const secretRefs = secretRefsOf(config);
  return { ok: true, config, warnings, readOnly: config.readOnly, ...reachedBy(endpoint, auth), secretRefs };
}

function reachedBy(
  { origin }: Endpoint,
  auth: HttpConfig["auth"],
): { readonly upstream: string; readonly alsoReaches: readonly string[] } {
  return { upstream: origin, alsoReaches: auth?.place === "token" ? [new URL(auth.client.tokenUrl).origin] : [] };
}

function redirectsOf(checker: DeclarationChecker): HttpConfig["redirects"] {
  return checker.text("redirects") === "none" ? "none" : "same_origin";
}

/** Thousands of tools have the same nothing. */
const NO_NAMES: ReadonlySet<string> = new Set();

function sharedSet(names: ReadonlySet<string>): ReadonlySet<string> {
  return names.size === 0 ? NO_NAMES : names;
}

function paramsInUrl({ path, query }: Endpoint, pairs: readonly QueryPair[]): readonly string[] {
  const filled = [...path, ...query, ...pairs].flatMap((piece) => (typeof piece === "string" ? [] : piece.parts));
  return [...new Set(namesIn(filled))];
}

function methodOf(checker: DeclarationChecker): HttpMethod {
  const declared = checker.text("method") ?? "GET";
  const method = METHODS.find((name) => name === declared);
  if (method === undefined) checker.issue("/method", `\`${declared}\` is no method; allowed: ${METHODS.join(", ")}`);
  return method ?? "GET";
}

function endpointOf(checker: DeclarationChecker): Endpoint | undefined {
  const compiled = compileEndpoint(checker.text("endpoint") ?? "");
  if (!compiled.ok) {
    checker.issue("/endpoint", compiled.problem);
    return undefined;
  }
  const { endpoint } = compiled;
  for (const piece of endpoint.path) {
    if (typeof piece === "string") continue;
    checker.refer(piece.parts, "/endpoint");
    checker.checkScalars(piece.parts, "/endpoint", "the path");
    checker.checkAlwaysGiven(piece.parts, "/endpoint", "the path");
  }
  for (const pair of endpoint.query) {
    if (typeof pair === "string") continue;
    checker.refer(pair.parts, "/endpoint");
    checker.checkPair(pair.parts, "/endpoint", "query");
  }
  return endpoint;
}

function queryOf(checker: DeclarationChecker): QueryPair[] {
  return checker.entries("query").map(([name, text, pointer]) => {
    const parts = checker.template(compileQueryValue(text), text, pointer);
    checker.checkPair(parts, pointer, "query");
    return { name: encodePlain(name), parts };
  });
}

function headersOf(checker: DeclarationChecker): HeaderTemplate[] {
  return checker.entries("headers").map(([name, text, pointer]) => {
    checker.claimHeader(pointer, name, text);
    const parts = checker.template(parseBraces(text), text, pointer);
    checker.checkScalars(parts, pointer, "a header");
    if (Buffer.byteLength(parts.filter(isText).join("")) > MAX_HEADER_BYTES) {
      checker.issue(pointer, `is too long: a header takes at most ${MAX_HEADER_BYTES} bytes`);
    }
    return { name, parts };
  });
}

/** To be asked when all other headers are known. */
function deadlineHeaderOf(checker: DeclarationChecker): string | undefined {
  const declared = checker.text("deadline_header");
  if (declared === undefined) return checker.headerNames.has(DEADLINE_HEADER) ? undefined : DEADLINE_HEADER;
  if (declared === "none") return undefined;
  checker.claimHeader("/deadline_header", declared, "");
  return declared;
}

/** What is asked for where the declaration does not say. */
function acceptOf(tool: DeclaredTool, settings: AdapterSettings): string {
  if (tool.delivery === "incremental") {
    return "text/event-stream, application/x-ndjson, application/json;q=0.9, */*;q=0.5";
  }
  if (settings.format === "json") return "application/json";
  if (settings.format === "text") return "text/plain, */*;q=0.5";
  return "application/json, */*;q=0.5";
}

/** Arguments that go to the query by their own name must not meddle with what the declaration puts there. */
function checkQueryRest(
  checker: DeclarationChecker,
  unnamed: readonly string[],
  queryNames: ReadonlySet<string>,
): void {
  for (const param of unnamed) {
    checker.checkPair([{ param }], "/endpoint", "query");
    if (!queryNames.has(param)) continue;
    const message = `the declaration sets query parameter \`${param}\`, and parameter \`${param}\` would set it too; write \`${param}={${param}}\``;
    checker.issue("/endpoint", message);
  }
}

function checkEndpoint(
  checker: DeclarationChecker,
  endpoint: Endpoint,
  query: readonly QueryPair[],
  reach: PrivateReach,
): void {
  checkAllowPrivate(checker, endpoint, reach);
  checkUrlLength(checker, endpoint, query);
}

function checkAllowPrivate(checker: DeclarationChecker, { origin }: Endpoint, reach: PrivateReach): void {
  if (reach === "all" && ownValue(checker.keys, "allow_private") === undefined) return;
  const { host } = socketTarget(origin);
  checkReach(checker, host, reach);
  if (ownValue(checker.keys, "allow_private") === undefined || !isFixedHost(host)) return;
  checker.warn("/allow_private", `has no effect: \`${host}\` is reached as it is written, only names are checked`);
}

/** Over the wire lists only narrow down where a tool leads, as `allow_private` opens nothing there. */
function egressOf(checker: DeclarationChecker, { egress, reach }: AdapterSettings): EgressChoice {
  return {
    allowPrivate: ownValue(checker.keys, "allow_private") === true,
    gateway: egress,
    own: readEgress(ownValue(checker.keys, "egress"), (list, i, message) =>
      checker.issue(`/egress/${list}/${i}`, message),
    ),
    ownOpens: reach === "all",
  };
}

/** Who registers over the wire must not open a door to the inside that no operator opened. */
function checkReach(checker: DeclarationChecker, host: string, reach: PrivateReach): void {
  if (reach === "all") return;
  const mend = "declare it in a file, or set `registration.private_addresses` in gateway.yaml";
  const kind = hostKind(host);
  if (kind === "private" || (kind === "loopback" && reach === "none")) {
    checker.issue(
      "/endpoint",
      `\`${host}\` is no public address, and a tool registered over the wire may not reach it; ${mend}`,
    );
  }
  if (kind === "name" && ownValue(checker.keys, "allow_private") === true) {
    checker.issue("/allow_private", `is not for tools registered over the wire; ${mend}`);
  }
}

/** What is declared alone must leave room for a request that can be sent. */
function checkUrlLength(checker: DeclarationChecker, { path, query }: Endpoint, pairs: readonly QueryPair[]): void {
  let length = -1;
  for (const piece of [...path, ...query, ...pairs]) {
    const parts = typeof piece === "string" ? [piece] : piece.parts;
    for (const part of parts) if (isText(part)) length += part.length + 1;
  }
  if (length <= MAX_TARGET_BYTES) return;
  checker.issue("/endpoint", `is too long: path and query take at most ${MAX_TARGET_BYTES} bytes, encoded`);
}

/** Headers that are the same for every request, apart from those that take arguments. `names`: all that are set. */
function splitHeaders(
  headers: readonly HeaderTemplate[],
  names: ReadonlySet<string>,
  accept: string,
): Pick<HttpConfig, "fixedHeaders" | "headers" | "hasContentType"> {
  const fixed: string[] = [];
  if (!names.has("user-agent")) fixed.push("user-agent", `toolgate/${VERSION}`);
  if (!names.has("accept")) fixed.push("accept", accept);
  for (const { name, parts } of headers) if (isFixed(parts)) fixed.push(name, headerBytes(parts.join("")));
  const filled = headers.filter((header) => !isFixed(header.parts));
  return { fixedHeaders: fixed, headers: filled, hasContentType: names.has("content-type") };
}

function isFixed(parts: TextTemplate): parts is readonly string[] {
  return parts.every(isText);
}

function isText(part: unknown): part is string {
  return typeof part === "string";
}
