import type { LookupAddress } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { ConnectProblem } from "./connect-problem.ts";

/**
 * Networks that no public name should lead to. Sources: the IANA special-purpose address registries (RFC 6890), and
 * Azure's address for machine metadata. Mapped IPv4 addresses are judged as IPv4.
 */
const PRIVATE_NETWORKS = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
  ["::", 127],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2002::", 16],
  ["fc00::", 7],
  ["fe80::", 9],
  ["ff00::", 8],
] as const;

/** Code of the problem that a name leads to an address the declaration does not allow. */
export const PRIVATE_ADDRESS = "PRIVATE_ADDRESS";

/** How the addresses of a host are found. */
export interface HostLookupOptions {
  /** Names may lead to private addresses. */
  readonly allowPrivate: boolean;
  /** Asks the system. */
  readonly lookup: LookupFunction;
}

/**
 * Finds the addresses of a host; `undefined` for one that is an address itself. What is found is what is connected
 * to: the name is not asked for again. Fails with a ConnectProblem {@link PRIVATE_ADDRESS} where one of the addresses is not allowed.
 */
export function hostLookup(host: string, { allowPrivate, lookup }: HostLookupOptions): LookupFunction | undefined {
  if (isIP(host) !== 0) return undefined;
  if (isLocalhost(host)) return lookupLoopback;
  return allowPrivate ? lookup : publicLookup(lookup);
}

/** Whether a declaration that names this host means what its address says. */
export function isFixedHost(host: string): boolean {
  return isIP(host) !== 0 || isLocalhost(host);
}

/** What a host of a declaration leads to: by its address, or `name` where that is asked for later. */
export function hostKind(host: string): "public" | "loopback" | "private" | "name" {
  if (isLoopback(host)) return "loopback";
  if (isIP(host) === 0) return "name";
  return isBlocked(privateNetworks(), host) ? "private" : "public";
}

/** Whether a host is loopback, by name or address. */
export function isLoopback(host: string): boolean {
  if (isLocalhost(host)) return true;
  if (isIP(host) === 0) return false;
  const loopback = new BlockList();
  loopback.addSubnet("127.0.0.0", 8);
  loopback.addAddress("::1", "ipv6");
  return loopback.check(host, familyOf(host));
}

/** Whether a name stands for loopback. */
function isLocalhost(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}

/** `localhost` is loopback in both families, whatever the hosts file says. Source: RFC 6761, section 6.3. */
const lookupLoopback: LookupFunction = (_host, options, callback) => {
  const addresses: LookupAddress[] = [
    { address: "127.0.0.1", family: 4 },
    { address: "::1", family: 6 },
  ];
  if (options.all === true) callback(null, addresses);
  else callback(null, "127.0.0.1", 4);
};

/** One private address among public ones is enough to refuse: which of them is used is chance. */
function publicLookup(lookup: LookupFunction): LookupFunction {
  const blocked = privateNetworks();
  return (host, options, callback) => {
    lookup(host, options, (error, found, family) => {
      const addresses = typeof found === "string" ? [found] : (found ?? []).map(({ address }) => address);
      const refused = error === null ? addresses.find((address) => isBlocked(blocked, address)) : undefined;
      if (refused === undefined) callback(error, found, family);
      else callback(privateAddress(refused), []);
    });
  };
}

function privateAddress(address: string): ConnectProblem {
  return new ConnectProblem(
    PRIVATE_ADDRESS,
    `its name leads to ${address}, which is no public address; \`allow_private: true\` allows it`,
    "Set `allow_private: true` if this address is meant, or correct the host of `endpoint`.",
  );
}

function privateNetworks(): BlockList {
  const networks = new BlockList();
  for (const [network, prefix] of PRIVATE_NETWORKS) networks.addSubnet(network, prefix, familyOf(network));
  return networks;
}

function isBlocked(networks: BlockList, address: string): boolean {
  // A zone, as in fe80::1%eth0, is no part of the address.
  const [bare = ""] = address.split("%");
  return networks.check(bare, familyOf(bare));
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return address.includes(":") ? "ipv6" : "ipv4";
}
