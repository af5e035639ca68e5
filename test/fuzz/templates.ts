import { validateHeaderName, validateHeaderValue } from "node:http";
import { configureHttp } from "../../src/adapters/http/configure.ts";
import type { HttpConfig } from "../../src/adapters/http/http-config.ts";
import { assembleRequest, type HttpRequest, sentTarget } from "../../src/adapters/http/request.ts";
import type { RequestPayload } from "../../src/adapters/http/streamed-body.ts";
import { GatewayError } from "../../src/core/errors.ts";
import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  ownValue,
  parseJson,
  stringifyJson,
} from "../../src/core/json.ts";
import { createEnvironmentSecrets } from "../../src/secrets/environment-secrets.ts";
import { SecretMemory } from "../../src/secrets/secret-memory.ts";
import { type FuzzTarget, holds, Outcomes } from "./target.ts";
import {
  type Body,
  declaredKeys,
  declaredTool,
  filled,
  isPieces,
  makeTemplateInput,
  type Piece,
  type Pieces,
  SETTINGS,
  type Template,
  type TemplateInput,
  textOf,
} from "./template-input.ts";

/** Throws arguments at the templates of an HTTP tool. */
export function openTemplates(): FuzzTarget<TemplateInput> {
  const outcomes = new Outcomes();
  return {
    outcomes,
    shrinks: true,
    make: makeTemplateInput,
    check: (input) => checkInput(input, outcomes),
    settle: () => undefined,
    residentBytes: () => process.memoryUsage.rss(),
    [Symbol.asyncDispose]: async () => undefined,
  };
}
async function checkInput(input: TemplateInput, outcomes: Outcomes): Promise<void> {
  const configured = configureHttp(declaredKeys(input), declaredTool(input.params), SETTINGS);
  if (!configured.ok) {
    outcomes.count("refused-at-load");
    const wrong = configured.issues.find(({ message }) => message === "" || /undefined|\[object/.test(message));
    holds(wrong === undefined && configured.issues.length > 0, "a declaration is refused in words", configured.issues);
    return;
  }
  const args = parseJson(input.args);
  holds(isJsonObject(args), "the fuzzer makes objects");
  const request = assembled(configured.config, args, input, outcomes);
  if (request === undefined) return;
  outcomes.count("sent");
  checkTarget(request, input, args);
  checkHeaders(request, input, args);
  await checkBody(request, input, args);
}

function assembled(
  config: HttpConfig,
  args: JsonObject,
  input: TemplateInput,
  outcomes: Outcomes,
): HttpRequest | undefined {
  const secrets = createEnvironmentSecrets({ SECRET: input.secret }, new SecretMemory());
  try {
    return assembleRequest(config, args, { secrets, traceparent: undefined });
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { reason, message, violations } = error;
    outcomes.count(reason);
    holds(reason === "TEMPLATE_VALUE_REFUSED" || reason === "SECRET_MISSING", "a refusal has its reason", { reason });
    holds(!/[\r\n]/.test(message) && !/undefined|\[object/.test(message), "a refusal is one line for people", message);
    if (reason === "SECRET_MISSING") {
      holds(
        /(?!\t)\p{Cc}/u.test(input.secret) || input.secret.trim() === "",
        "a secret that fits is used",
        input.secret,
      );
    } else {
      holds(violations.length === 1 && violations[0]?.reason === "REFUSED_BY_TEMPLATE", "one argument is at fault");
      const plain = Object.keys(input.params).every((name) => isPlain(ownValue(args, name)));
      const extra = Object.keys(args).some((name) => !Object.hasOwn(input.params, name));
      const dots = input.path.some((segment) => segment.includes("."));
      holds(!plain || extra || dots || input.body.kind === "multipart", "plain arguments are sent", { message });
    }
    return undefined;
  }
}

function isPlain(value: JsonValue | undefined): boolean {
  return typeof value === "boolean" || (typeof value === "string" && /^[a-zA-Z0-9]{1,100}$/.test(value));
}

function checkTarget(request: HttpRequest, input: TemplateInput, args: JsonObject): void {
  const target = sentTarget(request);
  holds(/^\/[\x21\x22\x24-\x7e]*$/.test(target), "a target is visible ASCII without a fragment", target);
  const declared = new URL(input.origin);
  const url = new URL(declared.origin + target);
  holds(url.origin === declared.origin, "scheme, host and port are the declared ones", { url: url.href });
  holds(url.username === "" && url.password === "" && url.hash === "", "nothing else stands in the URL", url.href);
  const path = target.split("?")[0] ?? "";
  const segments = path.slice(1).split("/");
  const expected = input.path.map((segment) => filled(segment, args));
  holds(segments.length === expected.length, "an argument stays in its segment", { path, expected });
  for (const [i, segment] of segments.entries()) {
    const literal = input.path[i]?.every((part) => typeof part === "string") === true;
    // A literal stays as it was declared, an escape in it too.
    const want = input.path[i]?.map((part) =>
      typeof part === "string" ? part.replaceAll("%2F", "/") : textOf(args, part[0]),
    );
    holds(decodeURIComponent(segment) === want?.join(""), "a segment says what was given", { segment, want });
    holds(literal || !/^(?:\.|%2e){1,2}$/i.test(segment), "no argument makes a step to another path", { path });
  }
  checkQuery(url.searchParams, request, input, args);
}

type Pair = readonly [name: string, value: string];

/** Pairs as `style` has them; the declared ones first, then arguments that stand nowhere else. */
function pairsOf(entries: Iterable<readonly [string, Pieces]>, args: JsonObject, style: string): Pair[] {
  const pairs: Pair[] = [];
  for (const [name, parts] of entries) {
    const [only] = parts;
    const value = parts.length === 1 && Array.isArray(only) ? ownValue(args, String(only[0])) : undefined;
    if (isJsonArray(value)) pairs.push(...listPairs(name, value, style));
    else {
      const text = filled(parts, args);
      if (text !== undefined) pairs.push([name, text]);
    }
  }
  return pairs;
}

function listPairs(name: string, list: readonly JsonValue[], style: string): Pair[] {
  holds(
    list.every((item) => typeof item !== "object" || item === null),
    "no object becomes an item",
    list,
  );
  const items = list.map((item) => String(item));
  if (items.length === 0) return [];
  if (style === "comma") return [[name, items.join(",")]];
  return items.map((item) => [style === "brackets" ? `${name}[]` : name, item]);
}

function named(input: TemplateInput): ReadonlySet<string> {
  const found = new Set<string>();
  // Every piece that is a parameter is a list of one text.
  const walk = (value: unknown): void => {
    if (Array.isArray(value) && value.length === 1 && typeof value[0] === "string") found.add(value[0]);
    if (typeof value === "object" && value !== null) for (const member of Object.values(value)) walk(member);
  };
  walk([input.path, input.search, input.query, input.headers, input.body]);
  if (input.body.kind === "multipart" && input.body.file !== undefined) found.add(input.body.file).add("id");
  return found;
}

function restOf(input: TemplateInput, args: JsonObject): string[] {
  const places = named(input);
  return Object.keys(args).filter((name) => !places.has(name));
}

function sendsRest(method: string): boolean {
  return ["POST", "PUT", "PATCH"].includes(method);
}

function checkQuery(got: URLSearchParams, request: HttpRequest, input: TemplateInput, args: JsonObject): void {
  const search = input.search.map(([name, value]) => [name, value.map(decodedLiteral)] as const);
  const rest = input.body.kind === "none" && !sendsRest(input.method) ? restOf(input, args) : [];
  const expected = [
    ...pairsOf(search, args, input.style),
    ...pairsOf(Object.entries(input.query), args, input.style),
    ...pairsOf(
      rest.map((name) => [name, [[name]]] as const),
      args,
      input.style,
    ),
  ];
  if (request.secretPair !== undefined) expected.push(["key", input.secret.toWellFormed()]);
  const pairs = [...got];
  holds(stringifyJson(pairs) === stringifyJson(expected), "the query says what was given", { pairs, expected });
}

/** In the endpoint a literal is encoded already; a plus sign is a space there. */
function decodedLiteral(part: Piece): Piece {
  return typeof part === "string" ? decodeURIComponent(part.replaceAll("+", " ")) : part;
}

function checkHeaders({ headers }: HttpRequest, input: TemplateInput, args: JsonObject): void {
  holds(headers.length % 2 === 0, "names and values come in turn");
  const seen = new Map<string, string>();
  for (let i = 0; i < headers.length; i += 2) {
    const [name = "", value = ""] = headers.slice(i, i + 2);
    validateHeaderName(name);
    validateHeaderValue(name, value);
    holds(!/[^\t\x20-\x7e\x80-\xff]/.test(value), "a header holds no control character", { name, value });
    holds(!seen.has(name.toLowerCase()), "a header stands once", { name });
    seen.set(name.toLowerCase(), Buffer.from(value, "latin1").toString("utf8"));
  }
  for (const name of ["host", "transfer-encoding", "connection", "expect"]) {
    holds(!seen.has(name), "framing is not set by a template", { name });
  }
  for (const [name, parts] of Object.entries(input.headers)) {
    const got = seen.get(name.toLowerCase());
    const expected = filled(parts, args)?.toWellFormed();
    holds(got === expected, "a header says what was given", { name, got, expected });
  }
}

function bytesOf(body: RequestPayload): Buffer {
  return typeof body === "string" ? Buffer.from(body) : Buffer.concat([...body.pieces()]);
}

async function checkBody({ body, headers }: HttpRequest, input: TemplateInput, args: JsonObject): Promise<void> {
  const text = body === undefined ? undefined : bytesOf(body).toString("utf8");
  switch (input.body.kind) {
    case "none":
      checkRest(text, input, args);
      return;
    case "json": {
      const expected = filledJson(input.body.template, input, args);
      const got = text === undefined ? undefined : parseJson(text);
      holds(
        got !== undefined && expected !== undefined && jsonEqual(got, expected),
        "a JSON body says what was given",
        { text, expected },
      );
      return;
    }
    case "form": {
      const pairs = [...new URLSearchParams(text)];
      const expected = pairsOf(Object.entries(input.body.pairs), args, input.style);
      holds(stringifyJson(pairs) === stringifyJson(expected), "a form says what was given", { pairs, expected });
      return;
    }
    case "multipart":
      holds(typeof body === "object", "a multipart form is made while it is sent");
      await checkMultipart(bytesOf(body), headers, input.body, args);
      return;
    case "text":
      checkText(text ?? "", input.body, args);
  }
}

function checkRest(text: string | undefined, input: TemplateInput, args: JsonObject): void {
  if (!sendsRest(input.method)) {
    holds(text === undefined, "a method without a body has none", { text });
    return;
  }
  const rest = restOf(input, args).filter((name) => ownValue(args, name) !== null || keepsNull(input, name));
  const expected = Object.fromEntries(rest.map((name) => [name, ownValue(args, name) ?? null]));
  if (text === undefined) holds(rest.length === 0, "what stands nowhere else is in the body", expected);
  else holds(jsonEqual(parseJson(text), expected), "a body says what was given", { text, expected });
}

function keepsNull(input: TemplateInput, name: string): boolean {
  if (!Object.hasOwn(input.params, name)) return false;
  const schema = ownValue(input.params, name);
  if (!isJsonObject(schema)) return true;
  const type = ownValue(schema, "type");
  return type === undefined || [type].flat().includes("null");
}

function filledJson(value: Template, input: TemplateInput, args: JsonObject): JsonValue | undefined {
  if (isPieces(value)) return filledText(value.pieces, input, args);
  if (Array.isArray(value)) {
    return (value as readonly Template[])
      .map((item) => filledJson(item, input, args))
      .filter((item) => item !== undefined);
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).flatMap(([key, member]) => {
    const got = filledJson(member, input, args);
    return got === undefined ? [] : [[key, got] as const];
  });
  return Object.fromEntries(entries);
}

function filledText(parts: Pieces, input: TemplateInput, args: JsonObject): JsonValue | undefined {
  const values = parts.map((part) => {
    if (typeof part === "string") return part;
    const value = ownValue(args, part[0]);
    return value === null && !keepsNull(input, part[0]) ? undefined : value;
  });
  if (values.includes(undefined)) return undefined;
  const [only] = parts;
  if (parts.length === 1 && typeof only === "object") return values[0];
  return values.map((value) => (typeof value === "string" ? value : stringifyJson(value ?? null))).join("");
}

async function checkMultipart(
  bytes: Buffer,
  headers: readonly string[],
  body: Body & { readonly kind: "multipart" },
  args: JsonObject,
): Promise<void> {
  const at = headers.indexOf("content-type");
  const type = headers[at + 1] ?? "";
  holds(headers[headers.indexOf("content-length") + 1] === String(bytes.length), "a form is as long as it says");
  const form =
    bytes.length > type.length
      ? await new Response(new Uint8Array(bytes), { headers: { "content-type": type } }).formData()
      : new FormData();
  const pairs = [...form].flatMap(([name, value]) => (typeof value === "string" ? [[name, value] as const] : []));
  const expected = pairsOf(Object.entries(body.parts), args, "repeat").map(
    ([name, value]) => [name, value.toWellFormed()] as const,
  );
  holds(stringifyJson(pairs) === stringifyJson(expected), "a multipart form says what was given", { pairs, expected });
  const files = [...form].flatMap(([, value]) => (typeof value === "string" ? [] : [value]));
  const given = body.file === undefined ? undefined : textOf(args, body.file);
  holds(files.length === (given === undefined ? 0 : 1), "a file is sent where one was given", { files: files.length });
  for (const file of files) {
    const content = Buffer.from(await file.arrayBuffer());
    holds(content.equals(Buffer.from(given ?? "", "base64")), "a file has the bytes that were given");
    holds(!/[/\\\r\n]/.test(file.name) && file.name !== "..", "a file's name is no path", file.name);
  }
}

function checkText(text: string, body: Body & { readonly kind: "text" }, args: JsonObject): void {
  const texts = body.pieces.map((part) =>
    typeof part === "string" ? part : (textOf(args, part[0]) ?? "").toWellFormed(),
  );
  if (body.type === "text/plain") {
    holds(text === texts.join(""), "a text body says what was given", { text, texts });
    return;
  }
  const literal = body.pieces.filter((part) => typeof part === "string").join("");
  for (const sign of "<>'\"") {
    holds(text.split(sign).length === literal.split(sign).length, "no argument becomes markup", { text, sign });
  }
  const shown = text.replaceAll(/&#(\d+);/g, (_all, code: string) => String.fromCharCode(Number(code)));
  holds(shown === texts.join(""), "markup says what was given", { text, texts });
}
