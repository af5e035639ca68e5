import type { AdapterSettings } from "../../src/core/adapter.ts";
import { type JsonObject, type JsonValue, ownValue, stringifyJson } from "../../src/core/json.ts";
import type { DeclaredTool } from "../../src/core/tool.ts";
import { type Dice, HOSTILE_TEXTS } from "./dice.ts";
import { holds } from "./target.ts";

/** Literal text, or the name of a parameter in a list of its own. */
export type Piece = string | readonly [param: string];

/** A text in pieces. */
export type Pieces = readonly Piece[];

/** JSON whose texts are pieces, written as `{"pieces": […]}`. */
export type Template =
  | JsonValue
  | { readonly pieces: Pieces }
  | readonly Template[]
  | { readonly [key: string]: Template };

/** What is declared of the request's body. */
export type Body =
  | { readonly kind: "none" }
  | { readonly kind: "json"; readonly template: Readonly<Record<string, Template>> }
  | { readonly kind: "form"; readonly pairs: Readonly<Record<string, Pieces>> }
  | { readonly kind: "multipart"; readonly parts: Readonly<Record<string, Pieces>>; readonly file: string | undefined }
  | { readonly kind: "text"; readonly pieces: Pieces; readonly type: string };

/** What a tool takes, and what it gets. */
export interface TemplateParams {
  readonly params: JsonObject;
  /** JSON text. */
  readonly args: string;
}

/** A declaration by its parts, so that what is to be sent can be told without reading a template, and arguments. */
export interface TemplateInput extends TemplateParams {
  readonly method: string;
  readonly origin: string;
  readonly path: readonly Pieces[];
  /** Query of the endpoint. */
  readonly search: readonly (readonly [name: string, value: Pieces])[];
  readonly query: Readonly<Record<string, Pieces>>;
  readonly style: "repeat" | "comma" | "brackets";
  readonly headers: Readonly<Record<string, Pieces>>;
  readonly body: Body;
  /** Where the secret goes. */
  readonly auth: "none" | "header" | "query";
  readonly secret: string;
}

const PARAMS = ["id", "tag", "a-b", "x.y", "名", "constructor", "file"] as const;

/** What the registry settles. */
export const SETTINGS: AdapterSettings = {
  timeouts: { connectMs: 1_000, readMs: 1_000, idleMs: 1_000 },
  maxResponseBytes: 1_000_000,
  format: "auto",
  pool: {},
  reach: "all",
};

/** Makes one. */
export function makeTemplateInput(dice: Dice): TemplateInput {
  const params = makeParams(dice);
  const names = Object.keys(params);
  const bodyKind = dice.pick(["none", "none", "json", "json", "form", "multipart", "text"] as const);
  if (bodyKind === "multipart") params["file"] = { type: "string", contentEncoding: "base64" };
  return {
    method: dice.pick(bodyKind === "none" ? ["GET", "GET", "POST", "DELETE", "HEAD"] : ["POST", "PUT", "PATCH"]),
    origin: dice.pick(["http://127.0.0.1:7434", "https://api.example.com", "http://[::1]:80", "HTTP://Ex.test:080"]),
    path: dice.some(1, 4, () => pieces(dice, names, ["v1", "a.b", "", "x-", ".", "%2F", "订", "a b", "~", "{", "}"])),
    search: dice.oneIn(2) ? [] : dice.some(1, 2, (i) => [`s${i}`, pieces(dice, names, ["1", "x,", "a+b", "%20", "é"])]),
    query: dice.oneIn(2) ? {} : record(dice, ["q", "a b", "p[]", "é"], () => pieces(dice, names)),
    style: dice.pick(["repeat", "comma", "brackets"]),
    headers: dice.oneIn(2) ? {} : record(dice, ["X-A", "x-b", "Accept"], () => pieces(dice, names, ["v ", "é", "t\t"])),
    body: makeBody(dice, bodyKind, names),
    params,
    args: stringifyJson(argumentsFor(dice, names)),
    auth: dice.pick(["none", "none", "header", "query"]),
    secret: dice.oneIn(3) ? dice.text() : "s3cret",
  };
}

/** Parameters with their schemas. */
export function makeParams(dice: Dice): Record<string, JsonValue> {
  return Object.fromEntries(dice.some(1, 4, () => [dice.pick(PARAMS), schemaFor(dice)] as const));
}

/** Text of an argument outside of JSON; `undefined` where it is absent. */
export function textOf(args: JsonObject, param: string): string | undefined {
  const value = ownValue(args, param) ?? undefined;
  if (value === undefined) return undefined;
  holds(typeof value !== "object", "no list and no object becomes text", { param });
  return String(value);
}

/** A text in pieces with its arguments; `undefined` where one of them is absent. */
export function filled(parts: Pieces, args: JsonObject): string | undefined {
  let text = "";
  for (const part of parts) {
    const piece = typeof part === "string" ? part : textOf(args, part[0]);
    if (piece === undefined) return undefined;
    text += piece;
  }
  return text;
}

function schemaFor(dice: Dice): JsonValue {
  const types = [["string", "number", "boolean"], "string", "array", "object", ["string", "null"]];
  return dice.oneIn(2) ? {} : { type: dice.pick(types) };
}

function record<T>(dice: Dice, names: readonly string[], make: () => T): Record<string, T> {
  return Object.fromEntries(dice.subset(names).map((name) => [name, make()]));
}

function pieces(
  dice: Dice,
  names: readonly string[],
  literals: readonly string[] = ["a", "-", " ", "$", "{", "}"],
): Pieces {
  if (dice.oneIn(3)) return [[dice.pick(names)]];
  return dice.some(1, 3, () => (dice.oneIn(2) ? dice.pick(literals) : ([dice.pick(names)] as const)));
}

function makeBody(dice: Dice, kind: Body["kind"], names: readonly string[]): Body {
  switch (kind) {
    case "none":
      return { kind };
    case "json":
      return { kind, template: objectTemplate(dice, names, 3) };
    case "form":
      return { kind, pairs: record(dice, ["f", "a b", "g[]", "é"], () => pieces(dice, names)) };
    case "multipart":
      return {
        kind,
        parts: record(dice, ["m", "n"], () => pieces(dice, names)),
        file: dice.oneIn(2) ? "file" : undefined,
      };
    case "text":
      return {
        kind,
        pieces: pieces(dice, names, ["<a b='", "'>", "</a>", "$"]),
        type: dice.pick(["text/plain", "text/xml"]),
      };
  }
}

function objectTemplate(dice: Dice, names: readonly string[], depth: number): Record<string, Template> {
  const keys = ["k", "__proto__", "constructor", "a b", "$id"];
  return Object.fromEntries(dice.some(1, 3, () => [dice.pick(keys), template(dice, names, depth - 1)] as const));
}

function template(dice: Dice, names: readonly string[], depth: number): Template {
  switch (dice.number(depth > 0 ? 6 : 4)) {
    case 0:
      return dice.pick([null, true, 0, 1.5, -1]);
    case 1:
    case 2:
      return { pieces: [[dice.pick(names)]] };
    case 3:
      return { pieces: pieces(dice, names, ["a ", "$", '"', "{id}", "\n", "订"]) };
    case 4:
      return dice.some(0, 3, () => template(dice, names, depth - 1));
    default:
      return objectTemplate(dice, names, depth);
  }
}

function argumentsFor(dice: Dice, names: readonly string[]): JsonObject {
  const entries = names.filter(() => !dice.oneIn(10)).map((name) => [name, argument(dice, 2)] as const);
  const more = dice.oneIn(8) ? [[dice.pick(["extra", "__proto__", "a&b=c"]), argument(dice, 1)] as const] : [];
  return Object.fromEntries([...entries, ...more]);
}

/** Any argument, hostile or plain. */
export function argument(dice: Dice, depth: number): JsonValue {
  switch (dice.number(depth > 0 ? 10 : 8)) {
    case 0:
      return dice.pick([null, true, false, 0, -0, 1.5, 1e21, 1e-7, 9_223_372_036_854_775_807n]);
    case 1:
      return Buffer.from(dice.text()).toString("base64");
    case 2:
      return dice.pick(HOSTILE_TEXTS).repeat(dice.oneIn(20) ? 9_000 : 1);
    case 8:
      return dice.some(0, 3, () => argument(dice, depth - 1));
    case 9:
      return Object.fromEntries(dice.some(0, 2, () => [dice.text(), argument(dice, depth - 1)] as const));
    default:
      return dice.oneIn(2) ? dice.plainText() : dice.text();
  }
}

/** A `{param}` template. */
export function braces(parts: Pieces): string {
  return parts.map((part) => (typeof part === "string" ? part.replaceAll(/[{}]/g, "$&$&") : `{${part[0]}}`)).join("");
}

function dollars(parts: Pieces): string {
  return parts.map((part) => (typeof part === "string" ? part.replaceAll("$", "$$$$") : `\${${part[0]}}`)).join("");
}

/** Whether a value is a text in pieces. */
export function isPieces(value: Template): value is { readonly pieces: Pieces } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, "pieces");
}

function declaredJson(value: Template): JsonValue {
  if (isPieces(value)) return dollars(value.pieces);
  if (Array.isArray(value)) return (value as readonly Template[]).map(declaredJson);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, declaredJson(member)]));
}

function bracesOf(pairs: Readonly<Record<string, Pieces>>): JsonObject {
  return Object.fromEntries(Object.entries(pairs).map(([name, parts]) => [name, braces(parts)]));
}

function bodyKeys(body: Body): JsonObject {
  switch (body.kind) {
    case "none":
      return {};
    case "json":
      return { body: declaredJson(body.template) };
    case "form":
      return { form: bracesOf(body.pairs) };
    case "multipart": {
      const file = body.file === undefined ? {} : { upload: { file: `{${body.file}}`, filename: "{id}" } };
      return { multipart: { ...bracesOf(body.parts), ...file } };
    }
    case "text":
      return { body: dollars(body.pieces), content_type: body.type };
  }
}

/** The HTTP keys of its declaration. */
export function declaredKeys(input: TemplateInput): JsonObject {
  const path = input.path.map((segment) => `/${braces(segment)}`).join("");
  const search = input.search.map(([name, value]) => `${name}=${braces(value)}`).join("&");
  const place = input.auth === "header" ? { header_name: "Authorization", prefix: "Bearer" } : { query_name: "key" };
  return {
    endpoint: `${input.origin}${path}${search === "" ? "" : `?${search}`}`,
    method: input.method,
    query: bracesOf(input.query),
    query_style: input.style,
    headers: bracesOf(input.headers),
    ...bodyKeys(input.body),
    ...(input.auth === "none" ? {} : { auth: { ...place, secret_ref: "SECRET" } }),
  };
}

/** The tool it is declared for. */
export function declaredTool(params: JsonObject): DeclaredTool {
  return {
    name: "t",
    title: "",
    description: "",
    kind: "http",
    inputSchema: { type: "object", properties: params, required: Object.keys(params) },
    outputSchema: undefined,
    hints: {},
    labels: {},
    delivery: "conclusive",
    enabled: true,
  };
}
