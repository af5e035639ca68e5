import { type Access, accessKey } from "../core/access.ts";

/** That a tool, or the list of problems of a source, is another since a revision. */
export interface ChangeRecord {
  readonly kind: "tool" | "problems";
  /** Tool name, or source. */
  readonly key: string;
  readonly revision: number;
  /** The tool is no more; the source has no problem any more. */
  readonly gone: boolean;
  /** The rules of access the tool has had as far as the log goes back: who may know of the change. */
  readonly audiences: readonly (Access | undefined)[];
}

/** Most rules of access that are remembered of one tool. */
const MAX_AUDIENCES = 16;

/** How many of the last removals are remembered. */
const DEFAULT_GONE_LIMIT = 10_000;

/**
 * What changed when, in order of revision, the last change of each key only: a reader that is slow or comes back gets
 * each key once, as it is now. What exists is never forgotten, so the log needs a bound for removals alone; a reader
 * that may have missed a forgotten one has to start over.
 */
export class ChangeLog {
  /** Ascending by revision; a record that a later one replaced stays until the next clean-up. */
  #records: ChangeRecord[] = [];
  readonly #latest = new Map<string, ChangeRecord>();
  readonly #goneLimit: number;
  readonly #waiters = new Set<() => void>();
  #head: number;
  #floor: number;
  #goneCount = 0;

  /** @param startRevision must be above every revision of an earlier run. */
  constructor(startRevision: number, goneLimit: number = DEFAULT_GONE_LIMIT) {
    this.#head = startRevision;
    this.#floor = startRevision;
    this.#goneLimit = goneLimit;
  }

  /** Revision of the last change. */
  get head(): number {
    return this.#head;
  }

  /** A reader that stands before this one may have missed a removal. */
  get floor(): number {
    return this.#floor;
  }

  /** Whether a reader that has seen everything up to this revision can go on from there. */
  covers(revision: number): boolean {
    return this.#floor <= revision && revision <= this.#head;
  }

  /** Adds a change; readers see it after {@link wake}. Returns its revision. */
  append(kind: ChangeRecord["kind"], key: string, gone: boolean, access?: Access): number {
    const id = `${kind}:${key}`;
    const before = this.#latest.get(id);
    if (before?.gone === true) this.#goneCount -= 1;
    const revision = ++this.#head;
    let audiences = withAccess(before?.audiences ?? [], access);
    if (audiences.length > MAX_AUDIENCES) {
      // Whoever has not seen it since then may be one of those forgotten.
      audiences = [access];
      this.#floor = revision;
    }
    const record: ChangeRecord = { kind, key, revision, gone, audiences };
    this.#records.push(record);
    this.#latest.set(id, record);
    if (gone) this.#goneCount += 1;
    this.#cleanUp();
    return record.revision;
  }

  /** Revision of the last change, up to one, that `sees` accepts; the oldest the log goes back to where none does. */
  lastSeen(upTo: number, sees: (record: ChangeRecord) => boolean): number {
    for (let index = this.#records.length - 1; index >= 0; index--) {
      const record = this.#records[index];
      if (record === undefined || record.revision > upTo) continue;
      if (this.#isLatest(record) && sees(record)) return Math.max(record.revision, this.#floor);
    }
    return this.#floor;
  }

  /** The next change after a revision. */
  after(revision: number): ChangeRecord | undefined {
    let low = 0;
    let high = this.#records.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#records[middle]?.revision ?? 0) > revision) high = middle;
      else low = middle + 1;
    }
    for (let index = low; index < this.#records.length; index++) {
      const record = this.#records[index];
      if (record !== undefined && this.#isLatest(record)) return record;
    }
    return undefined;
  }

  /** Calls `task` once at the next {@link wake}, unless disposed before. */
  onWake(task: () => void): Disposable {
    this.#waiters.add(task);
    return { [Symbol.dispose]: () => void this.#waiters.delete(task) };
  }

  /** Tells waiting readers that there is more. */
  wake(): void {
    const tasks = [...this.#waiters];
    this.#waiters.clear();
    for (const task of tasks) task();
  }

  #isLatest(record: ChangeRecord): boolean {
    return this.#latest.get(`${record.kind}:${record.key}`) === record;
  }

  /** Each clean-up is paid for by as many changes as it walks over. */
  #cleanUp(): void {
    const useless = this.#records.length - this.#latest.size + Math.max(0, this.#goneCount - this.#goneLimit);
    if (useless <= this.#records.length / 2 && this.#goneCount <= this.#goneLimit * 2) return;
    let surplus = this.#goneCount - this.#goneLimit;
    this.#records = this.#records.filter((record) => {
      if (!this.#isLatest(record)) return false;
      if (!record.gone || surplus <= 0) return true;
      surplus -= 1;
      this.#goneCount -= 1;
      this.#latest.delete(`${record.kind}:${record.key}`);
      this.#floor = record.revision;
      return false;
    });
  }
}

function withAccess(audiences: ChangeRecord["audiences"], access: Access | undefined): readonly (Access | undefined)[] {
  const key = accessKey(access);
  return audiences.some((each) => accessKey(each) === key) ? audiences : [...audiences, access];
}
