import type { LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { isLocalhost } from "./addresses.ts";
import type { ConnectProblem } from "./connect-problem.ts";

/** Why an address is not connected to. */
export type AddressProblem = (address: string) => ConnectProblem | undefined;

/**
 * Finds the addresses of a host; `undefined` for one that is an address itself. What is found is what is connected
 * to: the name is not asked for again. One address that is refused among others is enough to refuse: which of them is
 * used is chance.
 */
export function hostLookup(host: string, lookup: LookupFunction, problem: AddressProblem): LookupFunction | undefined {
  if (isIP(host) !== 0) return undefined;
  return isLocalhost(host) ? loopbackLookup(problem) : checkedLookup(lookup, problem);
}

/** `localhost` is loopback in both families, whatever the hosts file says. Source: RFC 6761, section 6.3. */
function loopbackLookup(problem: AddressProblem): LookupFunction {
  return (_host, options, callback) => {
    const addresses: readonly LookupAddress[] = [
      { address: "127.0.0.1", family: 4 },
      { address: "::1", family: 6 },
    ];
    const [first, ...others] = addresses.filter(({ address }) => problem(address) === undefined);
    if (first === undefined) callback(problem("127.0.0.1") ?? null, []);
    else if (options.all === true) callback(null, [first, ...others]);
    else callback(null, first.address, first.family);
  };
}

function checkedLookup(lookup: LookupFunction, problem: AddressProblem): LookupFunction {
  return (host, options, callback) => {
    lookup(host, options, (error, found, family) => {
      const addresses = typeof found === "string" ? [found] : (found ?? []).map(({ address }) => address);
      const problems = error === null ? addresses.flatMap((address) => problem(address) ?? []) : [];
      const [refused] = problems;
      if (refused === undefined) callback(error, found, family);
      else callback(refused, []);
    });
  };
}
