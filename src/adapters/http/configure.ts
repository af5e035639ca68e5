import type { AdapterSettings, ConfigIssue, Configured } from "../../core/adapter.ts";
import { isJsonObject, type JsonObject, type JsonValue, jsonPointer, ownValue } from "../../core/json.ts";
import { nearestWords } from "../../core/nearest.ts";
import type { DeclaredTool } from "../../core/tool.ts";
import { VERSION } from "../../core/version.ts";
import { type BodyTemplate, compileBody } from "./body-template.ts";
import { type HttpMethod, METHODS } from "./config-schema.ts";
import { headerBytes, headerProblem } from "./header-rules.ts";
import type { HeaderAuth, HeaderTemplate, HttpConfig, RestPlacement } from "./http-config.ts";
import { allowsNull, declaredParams, isAlwaysGiven, namedTypes } from "./param-schema.ts";
import { parseBraces, type TextTemplate } from "./text-template.ts";
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
  return new Configuration(keys, tool, settings).result();
}

/** The problems found so far, and which parameters were named. */
class Configuration {
  readonly #keys: JsonObject;
  readonly #tool: DeclaredTool;
  readonly #settings: AdapterSettings;
  readonly #params: JsonObject;
  readonly #issues: ConfigIssue[] = [];
  readonly #warnings: ConfigIssue[] = [];
  readonly #named = new Set<string>();

  constructor(keys: JsonObject, tool: DeclaredTool, settings: AdapterSettings) {
    this.#keys = keys;
    this.#tool = tool;
    this.#settings = settings;
    this.#params = declaredParams(tool.inputSchema);
  }

  result(): Configured<HttpConfig> {
    const method = this.#method();
    const endpoint = this.#endpoint();
    const query = this.#query();
    const auth = this.#auth();
    const headers = this.#headers(auth);
    const body = this.#body(method);
    const unnamed = Object.keys(this.#params).filter((name) => !this.#named.has(name));
    const queryNames = queryNamesOf([...(endpoint?.query ?? []), ...query]);
    const rest = this.#rest(method, body, unnamed);
    if (rest === "query") this.#checkQueryRest(unnamed, queryNames);
    if (endpoint === undefined || this.#issues.length > 0) return { ok: false, issues: this.#issues };
    const { readOnly } = this.#tool.hints;
    const config: HttpConfig = {
      tool: this.#tool,
      settings: this.#settings,
      method,
      endpoint,
      query,
      queryNames,
      ...splitHeaders(headers, auth, this.#accept()),
      body,
      auth,
      rest,
      hasRest: unnamed.length > 0,
      named: this.#named,
      keepsNull: new Set(Object.keys(this.#params).filter((name) => allowsNull(ownValue(this.#params, name) ?? true))),
      readOnly: readOnly ?? (method === "GET" || method === "HEAD"),
      declared: this.#keys,
    };
    return { ok: true, config, warnings: this.#warnings };
  }

  #issue(pointer: string, message: string): void {
    this.#issues.push({ pointer, message });
  }

  #text(key: string): string | undefined {
    const value = ownValue(this.#keys, key);
    return typeof value === "string" ? value : undefined;
  }

  #method(): HttpMethod {
    const declared = this.#text("method") ?? "GET";
    const method = METHODS.find((name) => name === declared);
    if (method === undefined) this.#issue("/method", `\`${declared}\` is no method; allowed: ${METHODS.join(", ")}`);
    return method ?? "GET";
  }

  #endpoint(): Endpoint | undefined {
    const compiled = compileEndpoint(this.#text("endpoint") ?? "");
    if (!compiled.ok) {
      this.#issue("/endpoint", compiled.problem);
      return undefined;
    }
    const { endpoint } = compiled;
    for (const piece of endpoint.path) {
      if (typeof piece === "string") continue;
      this.#refer(piece.parts, "/endpoint");
      this.#checkPathParams(piece.parts);
    }
    for (const pair of endpoint.query) {
      if (typeof pair === "string") continue;
      this.#refer(pair.parts, "/endpoint");
      this.#checkPair(pair, "/endpoint");
    }
    return endpoint;
  }

  #query(): QueryPair[] {
    return this.#entries("query").map(([name, text, pointer]) => {
      const pair = { name: encodePlain(name), parts: this.#template(compileQueryValue(text), text, pointer) };
      this.#checkPair(pair, pointer);
      return pair;
    });
  }

  #auth(): HeaderAuth | undefined {
    const auth = ownValue(this.#keys, "auth");
    if (!isJsonObject(auth)) return undefined;
    const headerName = textOf(ownValue(auth, "header_name"));
    const prefix = textOf(ownValue(auth, "prefix"));
    const problem = headerProblem(headerName, prefix);
    if (problem !== undefined) this.#issue("/auth/header_name", problem);
    const spaced = /[\p{L}\p{N}]$/u.test(prefix) ? `${prefix} ` : prefix;
    return { headerName, secretRef: textOf(ownValue(auth, "secret_ref")), prefix: spaced };
  }

  #headers(auth: HeaderAuth | undefined): HeaderTemplate[] {
    const seen = new Set(auth === undefined ? [] : [auth.headerName.toLowerCase()]);
    return this.#entries("headers").map(([name, text, pointer]) => {
      const problem = headerProblem(name, text);
      if (problem !== undefined) this.#issue(pointer, problem);
      if (name.toLowerCase() === "content-type" && !/json/i.test(text)) {
        this.#issue(pointer, "bodies are sent as JSON, so the content type must be a JSON one");
      }
      if (seen.has(name.toLowerCase()))
        this.#issue(pointer, `header \`${name}\` is set twice; names do not differ by case`);
      seen.add(name.toLowerCase());
      const parts = this.#template(parseBraces(text), text, pointer);
      this.#checkScalars(parts, pointer, "a header");
      return { name, parts };
    });
  }

  /** What is asked for where the declaration does not say. */
  #accept(): string {
    if (this.#tool.delivery === "incremental") {
      return "text/event-stream, application/x-ndjson, application/json;q=0.9, */*;q=0.5";
    }
    if (this.#settings.format === "json") return "application/json";
    if (this.#settings.format === "text") return "text/plain, */*;q=0.5";
    return "application/json, */*;q=0.5";
  }

  #body(method: HttpMethod): BodyTemplate | undefined {
    const short = ownValue(this.#keys, "body");
    const long = ownValue(this.#keys, "request_body");
    if (short !== undefined && long !== undefined) {
      this.#issue("/request_body", "`body` and `request_body` are the same key; set only one of them");
    }
    const body = short ?? long;
    if (body === undefined) return undefined;
    const root = short === undefined ? "/request_body" : "/body";
    if (method === "HEAD") this.#issue(root, "a HEAD request has no body");
    if (method === "GET") {
      const message = "HTTP gives the body of a GET no meaning: some servers and proxies drop it";
      this.#warnings.push({ pointer: root, message });
    }
    const template = compileBody(body, {
      reference: (param, pointer) => this.#name(param, root + pointer, `$${param}`),
      problem: (text, pointer) => this.#issue(root + pointer, text),
    });
    if (typeof body === "string" && template.kind !== "reference") {
      this.#issue(root, "a text body is not supported yet; write a map or a list, or one `$param` alone");
    }
    return template;
  }

  /** Where arguments go that no template names. */
  #rest(method: HttpMethod, body: BodyTemplate | undefined, unnamed: readonly string[]): RestPlacement {
    if (body !== undefined) {
      const pointer = Object.hasOwn(this.#keys, "body") ? "/body" : "/request_body";
      for (const name of unnamed) {
        this.#issue(
          pointer,
          `parameter \`${name}\` stands nowhere; write \`$${name}\` in the body or \`{${name}}\` in the URL`,
        );
      }
      return "nowhere";
    }
    if (method !== "GET" && method !== "HEAD" && method !== "DELETE") return "body";
    return "query";
  }

  /** Arguments that go to the query by their own name must not meddle with what the declaration puts there. */
  #checkQueryRest(unnamed: readonly string[], queryNames: ReadonlySet<string>): void {
    for (const param of unnamed) {
      this.#checkPair({ name: param, parts: [{ param }] }, "/endpoint");
      if (!queryNames.has(param)) continue;
      const message = `the declaration sets query parameter \`${param}\`, and parameter \`${param}\` would set it too; write \`${param}={${param}}\``;
      this.#issue("/endpoint", message);
    }
  }

  /** Text entries of a map, each with its pointer. */
  #entries(key: string): (readonly [name: string, text: string, pointer: string])[] {
    const map = ownValue(this.#keys, key);
    if (!isJsonObject(map)) return [];
    return Object.entries(map).map(([name, value]) => [name, textOf(value), jsonPointer([key, name])] as const);
  }

  #template(parsed: ReturnType<typeof parseBraces>, text: string, pointer: string): TextTemplate {
    if (!parsed.ok) {
      this.#issue(pointer, parsed.problem);
      return [];
    }
    this.#refer(parsed.parts, pointer);
    for (const [mark, name = ""] of text.matchAll(/\$([\p{L}_][\p{L}\p{N}_]*)/gu)) {
      if (!Object.hasOwn(this.#params, name)) continue;
      const message = `\`${mark}\` is sent as it stands: \`$\` has a meaning in bodies only; write \`{${name}}\``;
      this.#warnings.push({ pointer, message });
    }
    return parsed.parts;
  }

  #refer(parts: TextTemplate, pointer: string): void {
    for (const [i, part] of parts.entries()) {
      if (typeof part === "string") continue;
      const before = parts[i - 1];
      const variable = typeof before === "string" && before.endsWith("$");
      this.#name(part.param, pointer, `${variable ? "$" : ""}{${part.param}}`);
    }
  }

  /** Notes that a parameter is named, and that it is declared. */
  #name(param: string, pointer: string, written: string): void {
    this.#named.add(param);
    if (Object.hasOwn(this.#params, param)) return;
    const names = Object.keys(this.#params);
    const [nearest] = nearestWords(param, names);
    const hint = nearest === undefined ? "" : `; did you mean \`${nearest}\`?`;
    const declared = names.length === 0 ? "no parameter is declared" : `declared are: ${names.slice(0, 20).join(", ")}`;
    const variable = written.startsWith("$")
      ? " (environment variables are never read here: a secret goes into `auth.secret_ref`, a dollar sign in a body is `$$`)"
      : "";
    this.#issue(pointer, `\`${written}\` names no parameter${hint || `; ${declared}`}${variable}`);
  }

  #checkPathParams(parts: TextTemplate): void {
    this.#checkScalars(parts, "/endpoint", "the path");
    for (const part of parts) {
      if (typeof part === "string" || !Object.hasOwn(this.#params, part.param)) continue;
      if (isAlwaysGiven(this.#tool.inputSchema, part.param)) continue;
      const message = `parameter \`${part.param}\` stands in the path, so it must be required or have a default`;
      this.#issue("/endpoint", message);
    }
  }

  #checkPair(pair: QueryPair, pointer: string): void {
    const alone = pair.parts.length === 1;
    this.#checkScalars(pair.parts, pointer, alone ? "the query" : "text in the query", alone);
  }

  #checkScalars(parts: TextTemplate, pointer: string, place: string, arrays = false): void {
    for (const part of parts) {
      if (typeof part === "string") continue;
      const wrong = namedTypes(ownValue(this.#params, part.param) ?? true)?.find(
        (type) => type === "object" || (type === "array" && !arrays),
      );
      if (wrong === undefined) continue;
      this.#issue(
        pointer,
        `parameter \`${part.param}\` is an ${wrong}, and ${place} takes ${arrays ? "no objects" : "only text, numbers and booleans"}`,
      );
    }
  }
}

/** The schema has seen to it that it is text. */
function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

/** Headers that are the same for every request, apart from those that take arguments. */
function splitHeaders(
  headers: readonly HeaderTemplate[],
  auth: HeaderAuth | undefined,
  accept: string,
): Pick<HttpConfig, "fixedHeaders" | "headers" | "hasContentType"> {
  const names = new Set([...headers.map(({ name }) => name.toLowerCase()), auth?.headerName.toLowerCase()]);
  const fixed: string[] = [];
  if (!names.has("user-agent")) fixed.push("user-agent", `toolgate/${VERSION}`);
  if (!names.has("accept")) fixed.push("accept", accept);
  for (const { name, parts } of headers) if (isFixed(parts)) fixed.push(name, headerBytes(parts.join("")));
  const filled = headers.filter((header) => !isFixed(header.parts));
  return { fixedHeaders: fixed, headers: filled, hasContentType: names.has("content-type") };
}

function isFixed(parts: TextTemplate): parts is readonly string[] {
  return parts.every((part) => typeof part === "string");
}
