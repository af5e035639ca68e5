import { GatewayError } from "../../core/errors.ts";
import { type JsonObject, type JsonValue, jsonPointer, stringifyJson } from "../../core/json.ts";
import type { SecretSource } from "../../core/secrets.ts";
import { bodyValue, fillBody } from "../shared/body-template.ts";
import { headerBytes, holdsControl } from "../shared/header-rules.ts";
import { secretRefFor } from "../shared/secret-choice.ts";
import { secretValue, unusableSecret } from "../shared/secret-value.ts";
import { fillText, namesIn, ValueRefused } from "../shared/text-template.ts";
import type { HttpConfig, RequestBody } from "./http-config.ts";
import { fillMultipart } from "./multipart-body.ts";
import { checkLength, lengthOfAll, MAX_HEADER_BYTES, MAX_TARGET_BYTES } from "./request-limits.ts";
import type { RequestPayload } from "./streamed-body.ts";
import { fillTextBody } from "./text-body.ts";
import { encodePlain, fillPath, fillQuery, queryValue } from "./url-template.ts";

/** A request ready to be sent. */
export interface HttpRequest {
  /** Path and query, encoded, without the secret. */
  readonly target: string;
  /** Query pair with the secret, encoded: goes with every request, a redirected one too. */
  readonly secretPair: string | undefined;
  /** Name and value in turn. */
  readonly headers: string[];
  readonly body: RequestPayload | undefined;
  /** What is masked where the request is shown: secrets, and what was made of them. */
  readonly masked: readonly string[];
}

/** What a request is made of besides the arguments. */
export interface RequestSources {
  readonly secrets: SecretSource;
  readonly traceparent: string | undefined;
  readonly tracestate?: string | undefined;
  readonly baggage?: string | undefined;
  /** Of the caller. Default: none. */
  readonly roles?: readonly string[];
  /** Where the tool gets tokens: the present one. */
  readonly token?: string | undefined;
}

/** Source: https://www.w3.org/TR/trace-context/#traceparent-header. What looks otherwise is not passed on. */
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * Fills in everything a request needs.
 *
 * @throws GatewayError TEMPLATE_VALUE_REFUSED for an argument that cannot stand where it belongs; SECRET_MISSING.
 */
export function assembleRequest(config: HttpConfig, args: JsonObject, sources: RequestSources): HttpRequest {
  try {
    const target = fillTarget(config, args);
    const body = fillRequestBody(config, args);
    const headers = fillHeaders(config, args);
    if (typeof body === "object") {
      headers.push("content-type", body.contentType, "content-length", String(body.length));
    } else if (body !== undefined && !config.hasContentType) headers.push("content-type", config.contentType);
    headers.push(...traceHeaders(config, sources));
    return { target, headers, body, ...placeSecret(config, sources, headers) };
  } catch (error) {
    if (!(error instanceof ValueRefused)) throw error;
    const text = `${config.tool.name}: argument \`${error.param}\` ${error.message}; the upstream was not reached`;
    throw new GatewayError("TEMPLATE_VALUE_REFUSED", text, {
      violations: [{ field: jsonPointer([error.param]), description: error.message, reason: "REFUSED_BY_TEMPLATE" }],
      metadata: { tool: config.tool.name, param: error.param },
    });
  }
}

/**
 * The request with what is left of its call, in whole milliseconds, as it goes out now. A header takes no part in what
 * is signed.
 */
export function withDeadline({ deadlineHeader }: HttpConfig, request: HttpRequest, leftMs: number): HttpRequest {
  if (deadlineHeader === undefined) return request;
  return { ...request, headers: [deadlineHeader, String(Math.max(1, Math.ceil(leftMs))), ...request.headers] };
}

/** What the declaration itself says under these names stays. */
function traceHeaders(
  { headers }: HttpConfig,
  { traceparent, tracestate, baggage }: RequestSources,
): readonly string[] {
  const isOurs = (name: string): boolean => !headers.some((header) => header.name.toLowerCase() === name);
  const told: string[] = [];
  if (traceparent !== undefined && TRACEPARENT.test(traceparent)) {
    told.push("traceparent", traceparent);
    if (tracestate !== undefined && isOurs("tracestate")) told.push("tracestate", tracestate);
  }
  if (baggage !== undefined && isOurs("baggage")) told.push("baggage", baggage);
  return told;
}

function fillTarget(config: HttpConfig, args: JsonObject): string {
  const { queryStyle } = config;
  const names = config.rest === "query" ? [...config.inUrl, ...restOf(config, args)] : config.inUrl;
  const limits = { limit: MAX_TARGET_BYTES, place: "the URL" };
  // Encoded they are no shorter, and to encode megabytes would hold everything else up.
  checkLength({ ...limits, length: lengthOfAll(names, args) }, names, args);
  let query = fillQuery(config.endpoint.query, args, queryStyle) + fillQuery(config.query, args, queryStyle);
  if (config.rest === "query") {
    for (const param of restOf(config, args)) {
      if (config.queryNames.has(param)) throw new ValueRefused(param, "would set what the declaration sets");
      query += queryValue(encodePlain(param), { param }, args, queryStyle);
    }
  }
  const path = fillPath(config.endpoint, args);
  const target = query === "" ? path : `${path}?${query.slice(1)}`;
  checkLength({ ...limits, length: target.length }, names, args);
  return target;
}

function fillRequestBody(config: HttpConfig, args: JsonObject): RequestPayload | undefined {
  if (config.body !== undefined) {
    const [extra] = restOf(config, args);
    if (extra !== undefined) throw new ValueRefused(extra, "has no place in the request");
    return fillDeclaredBody(config.body, config, args);
  }
  if (config.rest !== "body") return undefined;
  const rest = restOf(config, args);
  if (rest.length === 0 && !config.hasRest) return undefined;
  const entries: [string, JsonValue][] = [];
  for (const param of rest) {
    const value = bodyValue({ param }, args, config.keepsNull);
    if (value !== undefined) entries.push([param, value]);
  }
  return stringifyJson(Object.fromEntries(entries));
}

function fillDeclaredBody(body: RequestBody, config: HttpConfig, args: JsonObject): RequestPayload | undefined {
  switch (body.kind) {
    case "json": {
      const value = fillBody(body.template, args, config.keepsNull);
      return value === undefined ? undefined : stringifyJson(value);
    }
    case "form":
      // A form writes a space as `+`. Source: https://url.spec.whatwg.org/#urlencoded-serializing.
      return fillQuery(body.pairs, args, config.queryStyle).slice(1).replaceAll("%20", "+");
    case "multipart":
      return fillMultipart(body.parts, args, config.keepsNull);
    case "text":
      return fillTextBody(body.parts, args, body.markup);
  }
}

/** Arguments that no template names. */
function restOf(config: HttpConfig, args: JsonObject): string[] {
  return Object.keys(args).filter((name) => !config.named.has(name));
}

function fillHeaders(config: HttpConfig, args: JsonObject): string[] {
  const headers = [...config.fixedHeaders];
  for (const { name, parts } of config.headers) {
    const value = fillText(parts, args, "a header");
    if (value === undefined) continue;
    const bytes = Buffer.byteLength(value);
    checkLength({ length: bytes, limit: MAX_HEADER_BYTES, place: `header \`${name}\`` }, namesIn(parts), args);
    if (holdsControl(value)) {
      const [param = name] = namesIn(parts);
      throw new ValueRefused(param, `holds a line break or control character, which header \`${name}\` cannot carry`);
    }
    headers.push(name, headerBytes(value));
  }
  return headers;
}

/** Path and query as they are sent. A redirect may have brought the secret along already. */
export function sentTarget({ target, secretPair }: HttpRequest): string {
  if (secretPair === undefined) return target;
  const [path = "", ...rest] = target.split("?");
  const query = rest.join("?");
  const name = secretPair.slice(0, secretPair.indexOf("=") + 1);
  const others = query.split("&").filter((pair) => pair !== "" && !pair.startsWith(name));
  return `${path}?${[...others, secretPair].join("&")}`;
}

/** Puts the secret where it goes. Resolved at each request, so that a changed secret is in force at once. */
function placeSecret(
  { auth, tool, literals }: HttpConfig,
  { secrets, roles = [], token }: RequestSources,
  headers: string[],
): Pick<HttpRequest, "secretPair" | "masked"> {
  if (auth === undefined) return { secretPair: undefined, masked: literals };
  if (auth.place === "token") {
    // A call that is only validated has none.
    headers.push("authorization", `Bearer ${token ?? ""}`);
    return { secretPair: undefined, masked: token === undefined ? literals : [...literals, token] };
  }
  const secretRef = secretRefFor(auth, roles);
  const secret = secretValue(tool.name, secretRef, secrets);
  const masked = [...literals, secret];
  if (auth.place === "query") {
    return { secretPair: `${encodePlain(auth.queryName)}=${encodePlain(secret)}`, masked };
  }
  if (holdsControl(secret)) {
    const why = "holds a line break or control character, which no header can carry";
    throw unusableSecret(tool.name, secretRef, why);
  }
  headers.push(auth.headerName, headerBytes(auth.prefix + secret));
  return { secretPair: undefined, masked };
}
