import { isAbsolute, relative, resolve } from "node:path";
import type { AdapterSettings, Configured } from "../../core/adapter.ts";
import { readEgress } from "../../core/egress.ts";
import { isJsonObject, type JsonObject, jsonPointer, ownValue } from "../../core/json.ts";
import type { DeclaredTool } from "../../core/tool.ts";
import { type BodyTemplate, compileBody } from "../shared/body-template.ts";
import { headerProblem } from "../shared/header-rules.ts";
import { hostKind, isFixedHost } from "../shared/network/addresses.ts";
import { socketTarget } from "../shared/network/socket.ts";
import { allowsNull } from "../shared/param-schema.ts";
import { TemplateChecker } from "../shared/template-checker.ts";
import { type NamedValue, namedValues, referencesIn } from "../shared/value-template.ts";
import type { DescriptorPlace, GrpcConfig, GrpcTarget, MethodName } from "./grpc-config.ts";
import type { TlsFiles } from "./tls-files.ts";

/** Metadata that the protocol sets. Source: gRPC over HTTP/2, "Requests". */
const OF_PROTOCOL = /^(grpc-.*|content-type|user-agent|te|tracestate|baggage|:.*)$/i;

/** Reads the block `grpc` of one declaration. */
class GrpcChecker extends TemplateChecker {
  /** The pointers of the block's keys begin here. */
  override issue(pointer: string, message: string): void {
    super.issue(`/grpc${pointer}`, message);
  }

  override warn(pointer: string, message: string): void {
    super.warn(`/grpc${pointer}`, message);
  }

  object(key: string): JsonObject {
    const value = ownValue(this.keys, key);
    return isJsonObject(value) ? value : {};
  }

  protected override aboutVariables(): string {
    return "environment variables are read in `metadata` alone; a dollar sign is `$$`";
  }
}

/**
 * Compiles the keys of a gRPC tool, or lists all that is wrong with them. Does no I/O.
 *
 * @param folder absolute path that relative paths begin at.
 */
export function configureGrpc(
  keys: JsonObject,
  tool: DeclaredTool,
  settings: AdapterSettings,
  folder: string,
): Configured<GrpcConfig> {
  const block = ownValue(keys, "grpc");
  const declared = isJsonObject(block) ? block : {};
  const checker = new GrpcChecker(declared, tool);
  const target = targetOf(checker, settings, folder);
  const method = methodOf(checker);
  const descriptor = descriptorOf(checker, settings, folder);
  const request = requestOf(checker);
  const metadata = metadataOf(checker);
  const { issues, warnings, params } = checker;
  if (target === undefined || issues.length > 0) return { ok: false, issues };
  const readOnly = tool.hints.readOnly === true;
  const nullable = Object.keys(params).filter((name) => allowsNull(ownValue(params, name) ?? true));
  const config: GrpcConfig = {
    tool,
    settings,
    target,
    method,
    descriptor,
    request,
    metadata,
    keepsNull: new Set(nullable),
    readOnly,
    declared,
  };
  return { ok: true, config, warnings, readOnly, upstream: target.address, secretRefs: referencesIn(metadata) };
}

function targetOf(checker: GrpcChecker, settings: AdapterSettings, folder: string): GrpcTarget | undefined {
  const { reach } = settings;
  const text = checker.text("address") ?? "";
  const allowPrivate = ownValue(checker.keys, "allow_private") === true;
  const own = readEgress(ownValue(checker.keys, "egress"), (list, i, message) =>
    checker.issue(`/egress/${list}/${i}`, message),
  );
  const egress = { allowPrivate, gateway: settings.egress, own, ownOpens: reach === "all" };
  const tls = tlsOf(checker, settings, folder);
  if (text.startsWith("unix:")) {
    checkUnix(checker, text, settings);
    const path = text.replace(/^unix:(?:\/\/(?=\/))?/, "");
    return { address: text, origin: "http://localhost", path, tls: undefined, egress };
  }
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    const mend = "write `http://HOST:PORT` for a server without TLS, `https://HOST:PORT` for one with it";
    checker.issue("/address", `is no address of a gRPC server; ${mend}, or \`unix:/PATH\``);
    return undefined;
  }
  checkUrl(checker, url, text);
  checkReach(checker, url, { settings, allowPrivate });
  if (tls !== undefined && url.protocol === "http:")
    checker.issue("/tls", "has no effect on an `http:` address; write `https:`");
  return { address: url.origin, origin: url.origin, path: undefined, tls, egress };
}

function checkUrl(checker: GrpcChecker, url: URL, text: string): void {
  if (url.username !== "" || url.password !== "")
    checker.issue("/address", "holds a name or password; put it into `metadata` by `${VARIABLE}`");
  if (/[{}]|%7B/i.test(text)) checker.issue("/address", "is fixed text: nothing is filled in here");
  else if (url.pathname !== "/" || url.search !== "" || url.hash !== "")
    checker.issue("/address", "has more than host and port; the method stands in `method`");
}

/** Who registers over the wire must not open a door to the inside that no operator opened. */
function checkReach(
  checker: GrpcChecker,
  url: URL,
  { settings: { reach }, allowPrivate }: { readonly settings: AdapterSettings; readonly allowPrivate: boolean },
): void {
  const { host } = socketTarget(url.origin);
  if (allowPrivate && isFixedHost(host))
    checker.warn("/allow_private", `has no effect: \`${host}\` is reached as it is written, only names are checked`);
  if (reach === "all") return;
  const kind = hostKind(host);
  if (kind === "private" || (kind === "loopback" && reach === "none"))
    checker.issue("/address", `\`${host}\` is no public address, ${NOT_OVER_WIRE}`);
  if (kind === "name" && allowPrivate) checker.issue("/allow_private", NOT_OVER_WIRE);
}

const NOT_OVER_WIRE =
  "and a tool registered over the wire may not go there; declare it in a file, or set `registration.private_addresses` in gateway.yaml";

function checkUnix(checker: GrpcChecker, text: string, { reach }: AdapterSettings): void {
  if (!/^unix:(\/\/)?\/[^\0]+$/.test(text)) checker.issue("/address", "names no socket; write `unix:/PATH`");
  if (reach !== "all") checker.issue("/address", `a Unix socket is of this machine, ${NOT_OVER_WIRE}`);
  for (const key of ["tls", "allow_private", "egress"])
    if (Object.hasOwn(checker.keys, key)) checker.issue(`/${key}`, "has no effect on a Unix socket; remove it");
}

function tlsOf(checker: GrpcChecker, settings: AdapterSettings, folder: string): TlsFiles | undefined {
  const tls = ownValue(checker.keys, "tls");
  if (!isJsonObject(tls)) return undefined;
  const file = (key: string): string | undefined => {
    const path = ownValue(tls, key);
    return typeof path === "string" ? fileOf(checker, path, `/tls/${key}`, { settings, folder }) : undefined;
  };
  if (Object.hasOwn(tls, "cert") !== Object.hasOwn(tls, "key"))
    checker.issue("/tls", "`cert` and `key` belong together: give both or none");
  const serverName = ownValue(tls, "server_name");
  return {
    ca: file("ca"),
    cert: file("cert"),
    key: file("key"),
    serverName: typeof serverName === "string" ? serverName : undefined,
  };
}

/** Whoever registers over the wire names files of the watched folder alone. */
function fileOf(
  checker: GrpcChecker,
  path: string,
  pointer: string,
  { settings, folder }: { readonly settings: AdapterSettings; readonly folder: string },
): string {
  const full = resolve(folder, path);
  if (path.includes("\0")) checker.issue(pointer, "holds a NUL, which no path can");
  const within = relative(folder, full);
  if (settings.reach !== "all" && (within.startsWith("..") || isAbsolute(within)))
    checker.issue(pointer, "leads out of the watched folder, where a tool registered over the wire may not read");
  return full;
}

function methodOf(checker: GrpcChecker): MethodName {
  const text = checker.text("method") ?? "";
  const [, service = "", method = ""] = /^\/?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\/([A-Za-z_]\w*)$/.exec(text) ?? [];
  if (method === "")
    checker.issue(
      "/method",
      "names no method; write `PACKAGE.SERVICE/METHOD`, such as `acme.orders.v1.OrderService/GetOrder`",
    );
  return { service, method };
}

function descriptorOf(checker: GrpcChecker, settings: AdapterSettings, folder: string): DescriptorPlace {
  const file = checker.text("descriptor");
  const reflection = ownValue(checker.keys, "reflection") === true;
  if ((file === undefined) === !reflection) {
    const what = reflection
      ? "has both `descriptor` and `reflection`"
      : "has neither `descriptor` nor `reflection: true`";
    checker.issue("", `${what}: give one of them, so that the messages are known`);
  }
  return file === undefined
    ? { kind: "reflection" }
    : { kind: "file", path: fileOf(checker, file, "/descriptor", { settings, folder }) };
}

function requestOf(checker: GrpcChecker): BodyTemplate | undefined {
  const request = ownValue(checker.keys, "request");
  if (request === undefined) return undefined;
  const template = compileBody(request, {
    reference: (param, pointer) => checker.name(param, `/request${pointer}`, `$${param}`),
    problem: (text, pointer) => checker.issue(`/request${pointer}`, text),
  });
  const unused = Object.keys(checker.params).filter((name) => !checker.named.has(name));
  for (const name of unused)
    checker.issue(
      "/request",
      `parameter \`${name}\` stands nowhere in the message: name it, or remove it from \`params\``,
    );
  return template;
}

function metadataOf(checker: GrpcChecker): readonly NamedValue[] {
  const metadata = namedValues(checker, "metadata");
  const seen = new Set<string>();
  for (const { name, value } of metadata) {
    const pointer = jsonPointer(["metadata", name]);
    const text = value.filter((part) => typeof part === "string").join("");
    const problem = OF_PROTOCOL.test(name) ? "is set by the gateway and cannot be declared" : headerProblem(name, text);
    if (problem !== undefined) checker.issue(pointer, problem);
    if (seen.has(name.toLowerCase())) checker.issue(pointer, "is set twice; names do not differ by case");
    seen.add(name.toLowerCase());
  }
  return metadata;
}
