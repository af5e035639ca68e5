import type { Principal } from "../core/principal.ts";

/** Most principals that are remembered; over it the oldest is forgotten. */
const MAX_REMEMBERED = 10_000;

/**
 * Since which revision a principal has had its roles: what it was told before then was told to other roles, so that it
 * cannot go on from there.
 */
export class RolesSeen {
  readonly #seen = new Map<string, { readonly roles: string; readonly since: number }>();

  /** Takes note of who asks, at a revision, and says since which one it has had these roles. */
  since({ id, roles }: Principal, revision: number): number {
    const key = JSON.stringify(roles.toSorted());
    const known = this.#seen.get(id);
    if (known?.roles === key) return known.since;
    for (const oldest of this.#seen.keys()) {
      if (this.#seen.size < MAX_REMEMBERED) break;
      this.#seen.delete(oldest);
    }
    // Who was never seen before has nothing that could be outdated.
    const since = known === undefined ? 0 : revision;
    this.#seen.set(id, { roles: key, since });
    return since;
  }
}
