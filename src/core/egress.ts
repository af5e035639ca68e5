import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, ownValue } from "./json.ts";

/** One entry of a list of places: hosts by name, or addresses, each with all ports or some. */
export interface EgressRule {
  /** As it was written. */
  readonly text: string;
  /** Name in its canonical form, `*.` before it for its subdomains alone, or `*` for any host. */
  readonly host: string | undefined;
  readonly network: { readonly address: string; readonly bits: number } | undefined;
  /** First and last; undefined: every port. */
  readonly ports: readonly [first: number, last: number] | undefined;
}

/** Where connections may lead. */
export interface EgressRules {
  /** Undefined: everywhere. */
  readonly allow: readonly EgressRule[] | undefined;
  /** Counts before `allow`. */
  readonly deny: readonly EgressRule[];
}

/** Most entries of one list. */
const MAX_RULES = 1_000;

const EXAMPLES = "`api.example.com`, `*.example.com:443`, `10.0.0.0/8` or `[fd00::/8]:8000-8999`";

/** JSON Schema of a list of places. */
export function egressListSchema(description: string): JsonObject {
  return {
    type: "array",
    maxItems: MAX_RULES,
    items: { type: "string", minLength: 1, maxLength: 300 },
    description,
    examples: [["api.example.com", "*.example.com:443", "10.0.0.0/8"]],
  };
}

/** Reads both lists of a block; undefined where it has neither. What is no place goes to `issue`. */
export function readEgress(
  block: JsonValue | undefined,
  issue: (list: "allow" | "deny", index: number, message: string) => void,
): EgressRules | undefined {
  if (block === undefined || !isJsonObject(block)) return undefined;
  const list = (key: "allow" | "deny"): readonly EgressRule[] | undefined => {
    const entries = ownValue(block, key);
    if (!isJsonArray(entries)) return undefined;
    return entries.flatMap((entry, i) => {
      const rule = typeof entry === "string" ? parseEgressRule(entry) : undefined;
      if (rule === undefined) issue(key, i, `is no place; write one like ${EXAMPLES}`);
      return rule ?? [];
    });
  };
  const allow = list("allow");
  const deny = list("deny") ?? [];
  return allow === undefined && deny.length === 0 ? undefined : { allow, deny };
}

/** Equal for rules that let through the same. */
export function egressKey(rules: EgressRules | undefined): string {
  return rules === undefined
    ? ""
    : `${rules.allow?.map(textOf).join(" ") ?? "any"}|${rules.deny.map(textOf).join(" ")}`;
}

function textOf({ text }: EgressRule): string {
  return text;
}

/** `host`, `*.host`, an address or a network, each with `:port` or `:first-last`; IPv6 in brackets where a port follows. */
export function parseEgressRule(text: string): EgressRule | undefined {
  const [, bracketed, bare, first, last] =
    /^(?:\[([^\]]+)\]|([^[\]:]+))(?::(\d{1,5})(?:-(\d{1,5}))?)?$/.exec(text) ?? [];
  const place = bracketed ?? bare ?? (/^[^[\]]*:[^[\]]*:[^[\]]*$/.test(text) ? text : undefined);
  const ports = first === undefined ? undefined : ([Number(first), Number(last ?? first)] as const);
  if (place === undefined || (ports !== undefined && !areSound(ports))) return undefined;
  const where = placeOf(place, bracketed !== undefined);
  return where === undefined ? undefined : { text, ports, ...where };
}

/** A host as URLs have it: small letters, no trailing dot, addresses without brackets; undefined: it is none. */
export function canonicalHost(host: string): string | undefined {
  if (!/^[^\s/?#@\\%[\]]+$/.test(host)) return undefined;
  const url = URL.parse(`http://${host.includes(":") ? `[${host}]` : host}/`);
  if (url === null || url.port !== "") return undefined;
  return url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}

function areSound([first, last]: readonly [number, number]): boolean {
  return first >= 1 && first <= last && last <= 65_535;
}

function placeOf(text: string, isIPv6: boolean): Pick<EgressRule, "host" | "network"> | undefined {
  if (text === "*") return { host: "*", network: undefined };
  const [base = "", ...bits] = text.split("/");
  const name = base.startsWith("*.") ? base.slice(2) : base;
  const host = canonicalHost(name) ?? "*";
  if (addressWidth(host) === undefined) {
    const isName = !host.includes("*") && !isIPv6 && bits.length === 0;
    return isName ? { host: name === base ? host : `*.${host}`, network: undefined } : undefined;
  }
  const network = name === base ? networkOf(base, host, bits) : undefined;
  return network === undefined ? undefined : { host: undefined, network };
}

function networkOf(written: string, address: string, [bits, ...more]: readonly string[]): EgressRule["network"] {
  const width = addressWidth(address) ?? 0;
  // `127.1` and its like are addresses to a URL; in a list they would be read past.
  if (more.length > 0 || (width === 32 && address !== written) || address.startsWith("::ffff:")) return undefined;
  if (bits === undefined) return { address, bits: width };
  return /^\d{1,3}$/.test(bits) && Number(bits) <= width ? { address, bits: Number(bits) } : undefined;
}

/** How many bits an address has; undefined: a canonical host that is a name. */
function addressWidth(host: string): 32 | 128 | undefined {
  if (host.includes(":")) return 128;
  return /^\d+\.\d+\.\d+\.\d+$/.test(host) ? 32 : undefined;
}
