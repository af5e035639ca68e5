/** Where the gateway listens. */
export interface ListenAddress {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

const ADDRESS = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/;

/**
 * Reads `host:port`, an IPv6 host in brackets. Only a loopback address is taken while no authentication is configured:
 * whoever reaches the port may call every tool.
 */
export function parseListenAddress(text: string): ListenAddress | { readonly problem: string } {
  const found = ADDRESS.exec(text);
  const port = Number(found?.[3]);
  if (found === null || port > 65_535) {
    return {
      problem: `expected an address and a port, such as 127.0.0.1:7433 or [::1]:7433, got ${JSON.stringify(text)}`,
    };
  }
  const host = found[1] ?? found[2] ?? "";
  if (isLoopback(host)) return { host, port };
  return {
    problem: `${JSON.stringify(text)} can be reached from outside, and no authentication is configured: listen on 127.0.0.1:${port} or [::1]:${port}`,
  };
}

function isLoopback(host: string): boolean {
  if (host.toLowerCase() === "localhost" || /^127(?:\.\d{1,3}){3}$/.test(host)) return true;
  // The URL parser knows every way to write an IPv6 address.
  return URL.parse(`http://[${host}]`)?.hostname === "[::1]";
}
