import { BlockList } from "node:net";
import { canonicalHost, type EgressRule, type EgressRules, egressKey } from "../../../core/egress.ts";
import { addressClass, effectiveAddress, familyOf, isFixedHost } from "./addresses.ts";
import { ConnectProblem } from "./connect-problem.ts";

/** Code of the problem that a name leads to an address the declaration does not allow. */
export const PRIVATE_ADDRESS = "PRIVATE_ADDRESS";

/** Code of the problem that a list of `egress` does not let a connection through. */
export const EGRESS_DENIED = "EGRESS_DENIED";

/** What a declaration and gateway.yaml say of where its connections may lead. */
export interface EgressChoice {
  /** Names may lead to private addresses. */
  readonly allowPrivate: boolean;
  /** `egress` of gateway.yaml. */
  readonly gateway: EgressRules | undefined;
  /** `egress` of the declaration. */
  readonly own: EgressRules | undefined;
  /** Names may lead to what is not public where `own` allows its network. */
  readonly ownOpens: boolean;
}

/** Where a connection is to lead. */
export interface EgressTarget {
  /** Name or address, an IPv6 one without brackets. */
  readonly host: string;
  readonly port: number;
}

/** Equal for choices that let through the same. */
export function choiceKey({ allowPrivate, gateway, own, ownOpens }: EgressChoice): string {
  return `${allowPrivate} ${ownOpens} ${egressKey(gateway)} ${egressKey(own)}`;
}

/** Says where connections may lead. */
export class EgressGuard {
  readonly #allowPrivate: boolean;
  readonly #lists: readonly PlaceLists[];
  readonly #opened: Places;

  constructor({ allowPrivate, gateway, own, ownOpens }: EgressChoice) {
    this.#allowPrivate = allowPrivate;
    this.#lists = [
      ...(gateway === undefined ? [] : [new PlaceLists("of gateway.yaml", gateway)]),
      ...(own === undefined ? [] : [new PlaceLists("of the declaration", own)]),
    ];
    this.#opened = new Places(ownOpens ? (own?.allow ?? []) : []);
  }

  /** Why nothing is reached there, whatever the name leads to. `resolvedElsewhere`: nobody here learns its addresses. */
  hostProblem(target: EgressTarget, resolvedElsewhere = false): ConnectProblem | undefined {
    const named = nameOf(target);
    for (const list of this.#lists) {
      const problem = list.problem(named, undefined, resolvedElsewhere);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  /** Why an address is not connected to. */
  addressProblem(target: EgressTarget, address: string): ConnectProblem | undefined {
    const named = nameOf(target);
    const judged = effectiveAddress(address);
    for (const list of this.#lists) {
      const problem = list.problem(named, judged, true);
      if (problem !== undefined) return problem;
    }
    return isFixedHost(target.host) ? undefined : this.#privateProblem(named, address, judged);
  }

  #privateProblem(target: EgressTarget, address: string, judged: string): ConnectProblem | undefined {
    const kind = addressClass(judged);
    if (kind === "public" || this.#opened.hasNetwork(target, judged)) return undefined;
    if (kind === "special") return specialAddress(address);
    return this.#allowPrivate ? undefined : privateAddress(address);
  }
}

/** The lists of one file. */
class PlaceLists {
  readonly #where: string;
  readonly #allow: Places | undefined;
  readonly #deny: Places;

  constructor(where: string, { allow, deny }: EgressRules) {
    this.#where = where;
    this.#allow = allow === undefined ? undefined : new Places(allow);
    this.#deny = new Places(deny);
  }

  /** `settled`: no address of it will be known later. */
  problem(target: EgressTarget, address: string | undefined, settled: boolean): ConnectProblem | undefined {
    const shown = address ?? target.host;
    const denied = this.#deny.find(target, address);
    if (denied !== undefined)
      return notAllowed(`${shown} is denied by \`${denied}\` in \`egress.deny\` ${this.#where}`);
    const allow = this.#allow;
    if (allow === undefined || allow.find(target, address) !== undefined) return undefined;
    if (!settled && allow.hasNetworks(target.port)) return undefined;
    return notAllowed(`${shown}, port ${target.port}, is not in \`egress.allow\` ${this.#where}`);
  }
}

interface Place {
  readonly rule: EgressRule;
  readonly network: BlockList | undefined;
}

class Places {
  readonly #places: readonly Place[];

  constructor(rules: readonly EgressRule[]) {
    this.#places = rules.map((rule) => ({ rule, network: networkOf(rule) }));
  }

  /** The entry that holds this place. */
  find(target: EgressTarget, address: string | undefined): string | undefined {
    const found = this.#at(target.port).find(
      ({ rule, network }) =>
        (rule.host !== undefined && isNamed(rule.host, target.host)) ||
        (address !== undefined && network?.check(address, familyOf(address)) === true),
    );
    return found?.rule.text;
  }

  /** Whether a network holds the address, whatever name leads there. */
  hasNetwork({ port }: EgressTarget, address: string): boolean {
    return this.#at(port).some(({ network }) => network?.check(address, familyOf(address)) === true);
  }

  hasNetworks(port: number): boolean {
    return this.#at(port).some(({ network }) => network !== undefined);
  }

  #at(port: number): readonly Place[] {
    return this.#places.filter(({ rule: { ports } }) => ports === undefined || (ports[0] <= port && port <= ports[1]));
  }
}

function networkOf({ network }: EgressRule): BlockList | undefined {
  if (network === undefined) return undefined;
  const list = new BlockList();
  list.addSubnet(network.address, network.bits, familyOf(network.address));
  return list;
}

function isNamed(pattern: string, host: string): boolean {
  if (pattern === "*" || pattern === host) return true;
  return pattern.startsWith("*.") && host.endsWith(pattern.slice(1)) && host.length > pattern.length - 1;
}

function nameOf({ host, port }: EgressTarget): EgressTarget {
  return { host: canonicalHost(host) ?? host, port };
}

function notAllowed(text: string): ConnectProblem {
  return new ConnectProblem(EGRESS_DENIED, text, "Name the place in that list where it is meant, or correct the host.");
}

function privateAddress(refused: string): ConnectProblem {
  return new ConnectProblem(
    PRIVATE_ADDRESS,
    `its name leads to ${refused}, which is no public address; \`allow_private: true\` allows it`,
    "Set `allow_private: true` if this address is meant, or correct the host of `endpoint`.",
  );
}

function specialAddress(refused: string): ConnectProblem {
  return new ConnectProblem(
    PRIVATE_ADDRESS,
    `its name leads to ${refused}, a link-local, metadata or reserved address; only its network in \`egress.allow\` of the declaration allows it`,
    "Name its network under `egress.allow` if this address is meant, or correct the host.",
  );
}
