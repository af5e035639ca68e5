import type { ConfigIssue } from "../core/adapter.ts";
import { type EgressRules, egressListSchema, readEgress } from "../core/egress.ts";
import type { JsonValue } from "../core/json.ts";
import type { Setting } from "./setting.ts";

/** Where the gateway's connections may lead, by dotted key. */
export const EGRESS_SETTINGS = {
  "egress.allow": {
    schema: egressListSchema(
      "The only places that are reached: hosts (`*.example.com` stands for the subdomains alone, `*` for any host), addresses and networks, each with `:PORT` or `:FIRST-LAST` where only those are meant. Absent: every place. It lets no name lead to a private address; a declaration says that.",
    ),
  },
  "egress.deny": {
    schema: egressListSchema(
      "Places that are never reached, whatever a declaration says; counts before `egress.allow`.",
    ),
    standard: [],
  },
} as const satisfies Readonly<Record<string, Setting>>;

/** Reads where connections may lead; undefined: everywhere. */
export function readEgressSettings(
  values: ReadonlyMap<string, JsonValue>,
  issues: ConfigIssue[],
): EgressRules | undefined {
  const block: Record<string, JsonValue> = {};
  for (const list of ["allow", "deny"] as const) {
    const value = values.get(`egress.${list}`);
    if (value !== undefined) block[list] = value;
  }
  return readEgress(block, (list, i, message) => {
    issues.push({ pointer: `/egress/${list}/${i}`, message: `\`egress.${list}[${i}]\` ${message}` });
  });
}
