/** An address and a port. */
export interface TcpAddress {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

/** A Unix socket. */
export interface UnixAddress {
  /** Absolute. */
  readonly path: string;
}

/** Where the gateway listens. */
export type ListenAddress = TcpAddress | UnixAddress;

/** The address as people write it: `127.0.0.1:7433`, `[::1]:7433` or `unix:/run/toolgate.sock`. */
export function addressText(address: ListenAddress): string {
  if ("path" in address) return `unix:${address.path}`;
  return `${address.host.includes(":") ? `[${address.host}]` : address.host}:${address.port}`;
}
