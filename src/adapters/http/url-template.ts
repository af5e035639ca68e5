import { isJsonArray, type JsonObject } from "../../core/json.ts";
import {
  argumentOf,
  type ParsedTemplate,
  parseBraces,
  type Reference,
  scalarText,
  type TextTemplate,
  ValueRefused,
} from "../shared/text-template.ts";
import type { QueryStyle } from "./config-schema.ts";

/** A path segment that takes arguments. Its literals are encoded already. */
interface Segment {
  readonly parts: TextTemplate;
}

/** One query pair that takes arguments. */
export interface QueryPair {
  /** Encoded. */
  readonly name: string;
  /** Literals encoded. */
  readonly parts: TextTemplate;
}

/** A compiled endpoint. */
export interface Endpoint {
  /** Scheme, host and port; never from an argument. */
  readonly origin: string;
  /** Path as pieces to be joined: encoded text, or a segment to be filled. */
  readonly path: readonly (string | Segment)[];
  /** Query of the endpoint: literal pairs as they were declared, or pairs to be filled. */
  readonly query: readonly (string | QueryPair)[];
}

/** A compiled endpoint, or what is wrong with it. */
export type CompiledEndpoint =
  | { readonly ok: true; readonly endpoint: Endpoint }
  | { readonly ok: false; readonly problem: string };

/** Scheme, authority, path, query and fragment. */
const URL_PARTS = /^(?:([^/?#]*:)\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(#.*)?$/s;

const FIXED_HOST = "scheme, host and port must be fixed text: an argument must not choose where a request goes";

/** A host with a name and no port, written as every reader of URLs writes it. */
const PLAIN_AUTHORITY = /^(?:[a-z][a-z0-9]*(?:-[a-z0-9]+)*\.)+[a-z]{2,}$/;

/** Compiles an endpoint. Literal parts stay as declared, but for characters that a URL cannot hold. */
export function compileEndpoint(text: string): CompiledEndpoint {
  const [, scheme = "", authority = "", path = "", query = "", fragment] = URL_PARTS.exec(text) ?? [];
  const origin = /^[^/?#]*\{/.test(text) ? problem(FIXED_HOST) : originOf(scheme, authority);
  if (typeof origin !== "string") return origin;
  if (fragment !== undefined) return problem("must not have a fragment (`#…`): it is never sent");
  const compiledPath = compilePath(path);
  if (!compiledPath.ok) return compiledPath;
  const compiledQuery = compileQuery(query);
  if (!compiledQuery.ok) return compiledQuery;
  return { ok: true, endpoint: { origin, path: compiledPath.pieces, query: compiledQuery.pairs } };
}

/** Compiles a value of the `query` block; its literals are plain text. */
export function compileQueryValue(value: string): ParsedTemplate {
  const parsed = parseBraces(value);
  if (!parsed.ok) return parsed;
  return { ok: true, parts: parsed.parts.map((part) => (typeof part === "string" ? encodePlain(part) : part)) };
}

/**
 * Path of one call. Each argument is percent-encoded UTF-8 inside its one segment.
 *
 * @throws ValueRefused for an argument that is absent, empty, no scalar, or would make a step to another path.
 */
export function fillPath(endpoint: Endpoint, args: JsonObject): string {
  let path = "";
  for (const piece of endpoint.path) path += typeof piece === "string" ? piece : fillSegment(piece, args);
  return path;
}

/**
 * Adds pairs to a query, each with `&` before it. An absent argument drops its pair; a list alone is written in the
 * style, and an empty one drops the pair too.
 */
export function fillQuery(pairs: readonly (string | QueryPair)[], args: JsonObject, style: QueryStyle): string {
  let query = "";
  for (const pair of pairs) {
    if (typeof pair === "string") {
      query += `&${pair}`;
      continue;
    }
    const [only] = pair.parts;
    const single = pair.parts.length === 1 && typeof only === "object";
    query += single ? queryValue(pair.name, only, args, style) : mixedValue(pair, args);
  }
  return query;
}

/** Names in a query, decoded; in `brackets` style `a[]` is the list `a`. */
export function queryNamesOf(pairs: readonly (string | QueryPair)[], style: QueryStyle): ReadonlySet<string> {
  if (pairs.length === 0) return new Set();
  const text = pairs.map((pair) => (typeof pair === "string" ? pair : `${pair.name}=`)).join("&");
  const names = [...new URLSearchParams(text).keys()];
  return new Set(style === "brackets" ? names.map((name) => name.replace(/\[\]$/, "")) : names);
}

/** One argument as query pairs, each with `&` before it. `name` is encoded. */
export function queryValue(name: string, reference: Reference, args: JsonObject, style: QueryStyle): string {
  const value = argumentOf(reference, args);
  if (value === undefined) return "";
  const { param } = reference;
  if (!isJsonArray(value)) return `&${name}=${encodeText(param, scalarText(param, value, "the query"))}`;
  const items = value.map((item) => encodeText(param, scalarText(param, item, "an item of a list in the query")));
  if (items.length === 0) return "";
  if (style === "comma") return `&${name}=${items.join(",")}`;
  return items.map((item) => `&${style === "brackets" ? `${name}%5B%5D` : name}=${item}`).join("");
}

function mixedValue(pair: QueryPair, args: JsonObject): string {
  let text = "";
  for (const part of pair.parts) {
    if (typeof part === "string") {
      text += part;
      continue;
    }
    const value = argumentOf(part, args);
    if (value === undefined) return "";
    text += encodeText(part.param, scalarText(part.param, value, "text in the query"));
  }
  return `&${pair.name}=${text}`;
}

function originOf(scheme: string, authority: string): string | Problem {
  if (authority.includes("{")) return problem(FIXED_HOST);
  if ((scheme === "https:" || scheme === "http:") && PLAIN_AUTHORITY.test(authority)) return `${scheme}//${authority}`;
  if (!/^https?:$/i.test(scheme)) return problem("must be an absolute URL that begins with http:// or https://");
  if (authority.includes("@"))
    return problem("must not hold credentials; put the secret's name into `auth.secret_ref`");
  // To a URL a backslash is a slash, so that what stands behind it would be no host.
  if (authority.includes("\\")) return problem(`\`${authority}\` holds a backslash, which no host has`);
  const url = `${scheme}//${authority}`;
  return URL.parse(url)?.origin ?? problem(`\`${authority}\` is no host with an optional port`);
}

interface Problem {
  readonly ok: false;
  readonly problem: string;
}

function problem(text: string): Problem {
  return { ok: false, problem: text };
}

type CompiledPath = { readonly ok: true; readonly pieces: readonly (string | Segment)[] } | Problem;

function compilePath(text: string): CompiledPath {
  const parsed = parseBraces(text);
  if (!parsed.ok) return parsed;
  const pieces: (string | Segment)[] = [];
  let literal = text.startsWith("/") ? "" : "/";
  for (const [i, parts] of splitSegments(parsed.parts).entries()) {
    if (i > 0) literal += "/";
    if (parts.every((part) => typeof part === "string")) {
      literal += parts.join("");
      continue;
    }
    if (literal !== "") pieces.push(literal);
    literal = "";
    pieces.push({ parts });
  }
  if (literal !== "") pieces.push(literal);
  return { ok: true, pieces };
}

/** Segments end at a slash of the declaration; one that comes with an argument is encoded. */
function splitSegments(path: TextTemplate): TextTemplate[] {
  const segments: (string | Reference)[][] = [[]];
  for (const part of path) {
    if (typeof part !== "string") {
      segments.at(-1)?.push(part);
      continue;
    }
    const [first = "", ...others] = part.split("/");
    if (first !== "") segments.at(-1)?.push(encodeLiteral(first));
    for (const other of others) segments.push(other === "" ? [] : [encodeLiteral(other)]);
  }
  return segments;
}

type CompiledQuery = { readonly ok: true; readonly pairs: readonly (string | QueryPair)[] } | Problem;

function compileQuery(text: string): CompiledQuery {
  const pairs: (string | QueryPair)[] = [];
  for (const pair of text.split("&")) {
    if (pair === "") continue;
    const parsed = parseBraces(pair);
    if (!parsed.ok) return parsed;
    const [first = ""] = parsed.parts;
    if (parsed.parts.every((part) => typeof part === "string")) pairs.push(encodeLiteral(parsed.parts.join("")));
    else if (typeof first !== "string" || !first.includes("=")) {
      return problem(`query pair \`${pair}\` must begin with a fixed name and \`=\``);
    } else {
      const equals = first.indexOf("=");
      const value = [first.slice(equals + 1), ...parsed.parts.slice(1)].filter((part) => part !== "");
      pairs.push({
        name: encodeLiteral(first.slice(0, equals)),
        parts: value.map((part) => (typeof part === "string" ? encodeLiteral(part) : part)),
      });
    }
  }
  return { ok: true, pairs };
}

function fillSegment(segment: Segment, args: JsonObject): string {
  let text = "";
  let last = "";
  for (const part of segment.parts) {
    if (typeof part === "string") {
      text += part;
      continue;
    }
    last = part.param;
    text += encodePathValue(part, args);
  }
  // Two arguments, or an argument beside a literal dot, may make together what neither is alone.
  if (/^(?:\.|%2e){1,2}$/i.test(text))
    throw new ValueRefused(last, `would make the path segment \`${text}\`, which leads elsewhere`);
  return text;
}

function encodePathValue(reference: Reference, args: JsonObject): string {
  const value = argumentOf(reference, args);
  if (value === undefined) throw new ValueRefused(reference.param, "is missing, and the path needs it");
  const text = scalarText(reference.param, value, "the path");
  if (text === "") throw new ValueRefused(reference.param, "is empty, and the path needs it");
  // Sent encoded it would be one segment, but some servers and proxies decode it before they look at the path.
  if (text.split(/[/\\]/).includes("..")) throw new ValueRefused(reference.param, "must not hold the path step `..`");
  // A plus sign means a plus sign in a path, so it stays readable.
  return encodeText(reference.param, text).replaceAll("%2B", "+");
}

function encodeText(param: string, text: string): string {
  if (/\p{Surrogate}/u.test(text))
    throw new ValueRefused(param, "holds half of a surrogate pair, which no URL can carry");
  return encodeURIComponent(text);
}

/** Encodes only what a URL cannot hold, so that what was declared in encoded form stays as it is. */
function encodeLiteral(text: string): string {
  return text.replace(/[^\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]+/g, encodePlain);
}

/** Encodes declared text whole; what is no Unicode text becomes the replacement character. */
export function encodePlain(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"));
}
