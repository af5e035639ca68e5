import type { Served } from "./server-tools.ts";
import type { Snapshot } from "./snapshot.ts";

/** What an update did to the tools, by name. */
export interface AppliedUpdate {
  readonly source: string;
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/** What became of names, by what served them before and serves them now. */
export function effectOf(
  source: string,
  names: readonly string[],
  before: ReadonlyMap<string, Served | undefined>,
  now: Snapshot,
): AppliedUpdate {
  const wasThere = (name: string): boolean => before.get(name) !== undefined;
  const isThere = (name: string): boolean => now.named(name) !== undefined;
  return {
    source,
    added: names.filter((name) => !wasThere(name) && isThere(name)),
    changed: names.filter(
      (name) => wasThere(name) && isThere(name) && versionOf(before.get(name)) !== versionOf(now.named(name)),
    ),
    removed: names.filter((name) => wasThere(name) && !isThere(name)),
  };
}

function versionOf(served: Served | undefined): string {
  return `${served?.claim.source} ${served?.claim.declaration.digest}`;
}
