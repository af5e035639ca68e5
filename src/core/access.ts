import type { Principal } from "./principal.ts";

/** Who may see and call a tool: whoever has one of the roles, and whoever is one of the subjects. */
export interface Access {
  /** `*` stands for any caller. */
  readonly roles: readonly string[];
  /** Ids of principals; a `*` at the end stands for any rest. */
  readonly subjects: readonly string[];
  /** Further rules, each of which has to let a caller through as well. Default: none. */
  readonly also?: readonly Access[];
}

/** Whether a principal may see and call what has this rule: one answer for every way to it. No rule: everybody may. */
export function isVisible(principal: Principal, access: Access | undefined): boolean {
  if (access === undefined) return true;
  const fits =
    access.roles.some((role) => role === ANY || principal.roles.includes(role)) ||
    access.subjects.some((subject) => matchesSubject(subject, principal.id));
  return fits && (access.also === undefined || access.also.every((rule) => isVisible(principal, rule)));
}

/** Stands for any caller among roles, and for any rest at the end of a subject. */
const ANY = "*";

function matchesSubject(pattern: string, id: string): boolean {
  return pattern.endsWith(ANY) ? id.startsWith(pattern.slice(0, -ANY.length)) : id === pattern;
}

/** A text that is equal for equal rules only. */
export function accessKey(access: Access | undefined): string {
  if (access === undefined) return "";
  const { roles, subjects, also = [] } = access;
  return JSON.stringify([roles, subjects, ...also.map(accessKey)]);
}
