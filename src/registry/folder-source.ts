import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { DeclarationProblem } from "../core/registry.ts";
import type { AppliedUpdate } from "./applied-update.ts";
import { containFaults, type ParseDeclaration, type ReadAhead } from "./declaration-source.ts";
import type { FileChange } from "./file-tracker.ts";
import { Pacer } from "./pacer.ts";
import { sourceProblem } from "./problems.ts";
import type { SourceUpdate, ToolTable } from "./tool-table.ts";

/** Changes that each get a log line of their own; more at once share one. */
const MAX_LOG_LINES = 10;
/** Most names, and most problems of a file, that are logged. */
const MAX_LOGGED = 50;

/** What the folder's files are taken in with. */
export interface FolderSourceDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly parse: ParseDeclaration;
  readonly readAhead?: ReadAhead | undefined;
  readonly table: ToolTable;
}

/** Takes the files of the watched folder into the table, and tells in the log what came of it. */
export class FolderSource {
  readonly #deps: FolderSourceDeps;
  readonly #opening = new Set<Promise<void>>();

  constructor(deps: FolderSourceDeps) {
    this.#deps = { ...deps, parse: containFaults(deps.parse, deps.logger) };
  }

  /**
   * Reads declarations and puts them into the table. Settles when they have their places there, which may be before
   * their upstreams are open: an adapter that is slow to open one does not hold up other files. Never rejects.
   */
  async apply(changes: readonly FileChange[]): Promise<void> {
    const { clock, table, readAhead } = this.#deps;
    const pacer = new Pacer(clock);
    const updates: SourceUpdate[] = [];
    let sinceMs = clock.monotonicMs();
    for (const change of changes) {
      if (change.kind === "text") await readAhead?.declaration(change.text, formatOf(change.path));
      updates.push(this.#updateOf(change));
      if (change.kind === "text") sinceMs = Math.min(sinceMs, change.sinceMs);
      await pacer.turn();
    }
    const opening = table.put(updates).then((applied) => {
      // Folders and ignored files are no declarations: nothing was loaded where nothing of the tools is another.
      const loaded = applied.filter((update, index) => changes[index]?.kind === "text" || hasEffect(update));
      this.#logReloaded(loaded, Math.round(clock.monotonicMs() - sinceMs));
      this.#logRejected(applied);
      this.#opening.delete(opening);
    });
    this.#opening.add(opening);
  }

  /** Settles when all that was applied is in force. */
  async idle(): Promise<void> {
    while (this.#opening.size > 0) await Promise.all(this.#opening);
  }

  #updateOf(change: FileChange): SourceUpdate {
    const source = sourceOf(change.path);
    if (change.kind === "gone") return { kind: "gone", source };
    if (change.kind === "fault") {
      return { kind: "rejected", source, problems: [sourceProblem(source, change.message, change.note)] };
    }
    if (change.text.trim() === "") {
      return {
        kind: "rejected",
        source,
        problems: [sourceProblem(source, "is empty: write a declaration or delete it")],
      };
    }
    const outcome = this.#deps.parse(change.text, { format: formatOf(change.path), source });
    return outcome.ok
      ? { kind: "declared", source, declaration: outcome.declaration }
      : { kind: "rejected", source, problems: outcome.problems };
  }

  #logReloaded(applied: readonly AppliedUpdate[], ms: number): void {
    const { logger } = this.#deps;
    const taken = applied.filter(({ source }) => this.#broken(source).length === 0);
    if (taken.length <= MAX_LOG_LINES) {
      for (const { source, added, changed, removed } of taken) {
        logger.info("config reloaded", { source, added, changed, removed, ms });
      }
      return;
    }
    const added = shortened(taken.flatMap((update) => update.added));
    const changed = shortened(taken.flatMap((update) => update.changed));
    const removed = shortened(taken.flatMap((update) => update.removed));
    logger.info("config reloaded", { source: `${taken.length} files`, added, changed, removed, ms });
  }

  #logRejected(applied: readonly AppliedUpdate[]): void {
    for (const problem of applied.flatMap(({ source }) => this.#broken(source).slice(0, MAX_LOGGED))) {
      const { source, line, column, message, lastGoodServing } = problem;
      this.#deps.logger.error("config rejected", { source, line, column, problem: message, lastGoodServing });
    }
  }

  #broken(source: string): readonly DeclarationProblem[] {
    return this.#deps.table.snapshot.problemsOf(source).filter((problem) => !problem.note);
  }
}

function formatOf(path: string): "yaml" | "json" {
  return path.endsWith(".json") ? "json" : "yaml";
}

function hasEffect(update: AppliedUpdate): boolean {
  return update.added.length + update.changed.length + update.removed.length > 0;
}

/** A file name may hold anything; what names it stays on one line. */
function sourceOf(path: string): string {
  return `file:${path.replaceAll(/\p{Cc}/gu, "?")}`;
}

function shortened(names: readonly string[]): readonly string[] {
  return names.length <= MAX_LOGGED ? names : [...names.slice(0, MAX_LOGGED), `and ${names.length - MAX_LOGGED} more`];
}
