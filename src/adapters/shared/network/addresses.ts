import { BlockList, isIP } from "node:net";

type Networks = readonly (readonly [address: string, bits: number])[];

/**
 * Networks inside an organisation or machine. Sources: the IANA special-purpose address registries (RFC 6890). 6to4 and
 * Teredo are among them since they lead to wherever their last bits say.
 */
const PRIVATE_NETWORKS: Networks = [
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["::", 96],
  ["2001::", 32],
  ["2002::", 16],
  ["fc00::", 7],
];

/**
 * Networks and addresses that hardly any tool means: link-local, multicast, reserved, and where clouds tell machines
 * their credentials. Sources: the same registries; the manuals of AWS, Azure, Alibaba Cloud, Google Cloud and Oracle Cloud.
 */
const SPECIAL_NETWORKS: Networks = [
  ["0.0.0.0", 8],
  ["100.100.100.200", 32],
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["192.0.0.0", 24],
  ["224.0.0.0", 3],
  ["::", 128],
  ["64:ff9b:1::", 48],
  ["fd00:ec2::254", 128],
  ["fd20:ce::254", 128],
  ["fe80::", 9],
  ["ff00::", 8],
];

/** What kind of address it is, by {@link effectiveAddress}. */
export function addressClass(address: string): "public" | "private" | "special" {
  if (networks(SPECIAL_NETWORKS).check(address, familyOf(address))) return "special";
  return networks(PRIVATE_NETWORKS).check(address, familyOf(address)) ? "private" : "public";
}

/**
 * The address that packets reach: without its zone, and the IPv4 address where an IPv6 one stands for it, mapped or by
 * way of NAT64. Sources: RFC 4291, section 2.5.5.2; RFC 6052, section 2.1.
 */
export function effectiveAddress(address: string): string {
  const [bare = ""] = address.split("%");
  if (familyOf(bare) === "ipv4") return bare;
  const groups = groupsOf(bare);
  const head = groups.slice(0, 6).join();
  if (head !== "0,0,0,0,0,65535" && head !== "100,65435,0,0,0,0") return bare;
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join(".");
}

/** Whether a declaration that names this host means what its address says. */
export function isFixedHost(host: string): boolean {
  return isIP(host) !== 0 || isLocalhost(host);
}

/** What a host of a declaration leads to: by its address, or `name` where that is asked for later. */
export function hostKind(host: string): "public" | "loopback" | "private" | "name" {
  if (isLoopback(host)) return "loopback";
  if (isIP(host) === 0) return "name";
  return addressClass(effectiveAddress(host)) === "public" ? "public" : "private";
}

/** Whether a host is loopback, by name or address. */
export function isLoopback(host: string): boolean {
  if (isLocalhost(host)) return true;
  if (isIP(host) === 0) return false;
  const address = effectiveAddress(host);
  return networks([
    ["127.0.0.0", 8],
    ["::1", 128],
  ]).check(address, familyOf(address));
}

/** Whether a name stands for loopback. */
export function isLocalhost(host: string): boolean {
  return /(?:^|\.)localhost\.?$/.test(host);
}

/** Of an address that is one. */
export function familyOf(address: string): "ipv4" | "ipv6" {
  return address.includes(":") ? "ipv6" : "ipv4";
}

function networks(list: Networks): BlockList {
  const blocked = new BlockList();
  for (const [network, bits] of list) blocked.addSubnet(network, bits, familyOf(network));
  return blocked;
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): readonly number[] {
  // A URL writes the last two groups in hexadecimal too.
  const text = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const [head, tail = []] = text.split("::").map(hexadecimals);
  const zeros = Array.from({ length: 8 - (head?.length ?? 0) - tail.length }, () => 0);
  return [...(head ?? []), ...zeros, ...tail];
}

function hexadecimals(groups: string): readonly number[] {
  return groups === "" ? [] : groups.split(":").map((group) => Number.parseInt(group, 16));
}
