import { BlockList, isIP } from "node:net";
import { isFixedHost, isLoopback } from "./addresses.ts";
import { type SocketTarget, socketTarget } from "./socket.ts";

/** Variables of the environment that proxies are taken from. */
export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

/** A proxy for one origin. */
export interface Proxy {
  /** Variable it was taken from. */
  readonly variable: string;
  /** Without credentials, so that it can be shown. */
  readonly origin: string;
  readonly target: SocketTarget;
  /** Value of `Proxy-Authorization`; never shown. */
  readonly authorization: string | undefined;
}

/** How an origin is reached. */
export type Route =
  /** `exception`: why, where a proxy is set. */
  | { readonly kind: "direct"; readonly exception?: string }
  | { readonly kind: "proxied"; readonly proxy: Proxy }
  /** The variable's value is no proxy; it is not shown, since it may hold credentials. */
  | { readonly kind: "misconfigured"; readonly variable: string };

/**
 * The way to an origin: through `HTTPS_PROXY` or `HTTP_PROXY`, by its scheme, unless `NO_PROXY` names its host. The
 * names in small letters count first. Loopback is never proxied.
 *
 * An entry of `NO_PROXY` is `*`; a host, which stands for its subdomains too, with or without a dot before it; an
 * address; or a network such as `10.0.0.0/8`. A port at its end limits it to that port.
 */
export function routeTo(origin: string, environment: ProxyEnvironment): Route {
  const target = socketTarget(origin);
  const variable = setVariable(
    target.secure ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy", "HTTP_PROXY"],
    environment,
  );
  if (variable === undefined) return { kind: "direct" };
  if (isLoopback(target.host)) return { kind: "direct", exception: "loopback is never proxied" };
  const exceptions = setVariable(["no_proxy", "NO_PROXY"], environment);
  if (exceptions !== undefined && isException(target, exceptions.value)) {
    return { kind: "direct", exception: `${exceptions.name} names the host` };
  }
  const proxy = parseProxy(variable.name, variable.value);
  return proxy === undefined ? { kind: "misconfigured", variable: variable.name } : { kind: "proxied", proxy };
}

interface Variable {
  readonly name: string;
  readonly value: string;
}

function setVariable(names: readonly string[], environment: ProxyEnvironment): Variable | undefined {
  for (const name of names) {
    const value = Object.hasOwn(environment, name) ? environment[name]?.trim() : undefined;
    if (value !== undefined && value !== "") return { name, value };
  }
  return undefined;
}

/** A proxy without a scheme is an HTTP one, as with curl. */
function parseProxy(variable: string, value: string): Proxy | undefined {
  const text = value.includes("://") ? value : `http://${value}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return undefined;
  const credentials = decoded(`${url.username}:${url.password}`);
  if (credentials === undefined) return undefined;
  const authorization =
    credentials === ":" ? undefined : `Basic ${Buffer.from(credentials, "utf8").toString("base64")}`;
  return { variable, origin: url.origin, target: socketTarget(url.origin), authorization };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

function isException(target: SocketTarget, exceptions: string): boolean {
  return exceptions.split(/[\s,]+/).some((entry) => entry !== "" && matches(entry.toLowerCase(), target));
}

function matches(entry: string, { host, port }: SocketTarget): boolean {
  if (entry === "*") return true;
  const { name, port: only } = splitPort(entry);
  if (only !== undefined && only !== port) return false;
  const [network = "", bits] = name.split("/");
  if (isIP(network) !== 0) return inNetwork(host, network, bits === undefined ? undefined : Number(bits));
  const domain = name.replace(/^\*?\./, "");
  return !isFixedHost(host) && domain !== "" && (host === domain || host.endsWith(`.${domain}`));
}

/** `host`, `host:port`, `::1`, `[::1]` and `[::1]:port`. */
function splitPort(entry: string): { readonly name: string; readonly port: number | undefined } {
  const bracketed = /^\[([^\]]+)\](?::(\d+))?$/.exec(entry);
  const [, name, port] = bracketed ?? /^([^:]+):(\d+)$/.exec(entry) ?? [];
  return { name: name ?? entry, port: port === undefined ? undefined : Number(port) };
}

/** Whether a host is an address of a network; `bits` absent: that very address. */
function inNetwork(host: string, network: string, bits: number | undefined): boolean {
  const width = isIP(network) === 4 ? 32 : 128;
  const prefix = bits ?? width;
  if (isIP(host) === 0 || !Number.isInteger(prefix) || prefix < 0 || prefix > width) return false;
  const list = new BlockList();
  list.addSubnet(network, prefix, isIP(network) === 4 ? "ipv4" : "ipv6");
  return list.check(host, isIP(host) === 4 ? "ipv4" : "ipv6");
}
