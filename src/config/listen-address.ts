import { resolve } from "node:path";
import type { IdentitySettings } from "../core/identity.ts";
import { addressText, type ListenAddress, type UnixAddress } from "../core/listen-address.ts";

const ADDRESS = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/;

/** Room for a socket's path, without the NUL behind it. Source: Linux, unix(7). */
const MAX_SOCKET_PATH_BYTES = 107;

/**
 * Reads `host:port`, an IPv6 host in brackets, or `unix:` and a path as gRPC writes it.
 *
 * @param folder where a relative path of a socket begins.
 */
export function parseListenAddress(text: string, folder: string): ListenAddress | { readonly problem: string } {
  if (text.startsWith("unix:")) return parseUnixAddress(text, folder);
  const found = ADDRESS.exec(text);
  const port = Number(found?.[3]);
  if (found === null || port > 65_535) {
    return {
      problem: `expected an address and a port, such as 127.0.0.1:7433 or [::1]:7433, or a Unix socket, such as unix:toolgate.sock, got ${JSON.stringify(text)}`,
    };
  }
  return { host: found[1] ?? found[2] ?? "", port };
}

/**
 * What is wrong with listening there and telling callers apart in these ways. While nobody is told apart only loopback
 * is served, since whoever reaches the port may call every tool; and who reaches it from outside could send a header
 * that is trusted.
 */
export function exposureProblem(listen: ListenAddress, identity: IdentitySettings | undefined): string | undefined {
  if ("path" in listen || isLoopbackHost(listen.host)) return undefined;
  const { port } = listen;
  const reached = `${JSON.stringify(addressText(listen))} can be reached from outside`;
  const mend = `listen on 127.0.0.1:${port} or [::1]:${port}`;
  if (identity === undefined) {
    return `${reached}, and no authentication is configured: ${mend}, or configure \`identity\` in gateway.yaml, such as \`api_keys: true\``;
  }
  if (identity.trustedHeader === undefined) return undefined;
  return `${reached}, and \`identity.trusted_header\` believes whoever reaches it: ${mend} or on a Unix socket, or leave \`trusted_header\` out`;
}

/** Source: https://github.com/grpc/grpc/blob/master/doc/naming.md, `unix:path` and `unix:///absolute_path`. */
function parseUnixAddress(text: string, folder: string): UnixAddress | { readonly problem: string } {
  const path = text.slice("unix:".length).replace(/^\/\/(?=\/)/, "");
  if (path === "" || path.endsWith("/") || path.startsWith("//") || /\p{Cc}/u.test(path)) {
    return { problem: `expected the path of a socket, such as unix:toolgate.sock, got ${JSON.stringify(text)}` };
  }
  const absolute = resolve(folder, path);
  const bytes = Buffer.byteLength(absolute);
  if (bytes <= MAX_SOCKET_PATH_BYTES) return { path: absolute };
  return {
    problem: `${JSON.stringify(absolute)} has ${bytes} bytes, and the path of a Unix socket has room for ${MAX_SOCKET_PATH_BYTES}: take a shorter one, such as unix:/run/toolgate.sock`,
  };
}

/** Whether a host of an address is this machine alone. */
export function isLoopbackHost(host: string): boolean {
  if (host.toLowerCase() === "localhost" || /^127(?:\.\d{1,3}){3}$/.test(host)) return true;
  // The URL parser knows every way to write an IPv6 address.
  return URL.parse(`http://[${host}]`)?.hostname === "[::1]";
}
