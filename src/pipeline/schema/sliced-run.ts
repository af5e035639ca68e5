import type { ArgumentCopy } from "./argument-copy.ts";
import type { Run, SchemaError, SchemaPart } from "./check.ts";
import { type Slice, WorkMeter } from "./work-meter.ts";

/** What is left to do of something that was paused. */
interface Rest {
  go(): void;
  readonly depth: number;
}

/** Arguments that are held against a schema, slice by slice. */
export class SlicedRun implements Run {
  readonly values: ArgumentCopy;
  readonly meter: WorkMeter;
  readonly errors: SchemaError[] = [];
  depth = 0;
  paused = false;
  /** What waits; the last goes first. */
  #waiting: Rest[] | undefined;
  /** What has been put off since the last rest began; the first goes first. */
  #putOff: Rest[] | undefined;
  readonly #root: SchemaPart;

  constructor(root: SchemaPart, copy: ArgumentCopy, slice: Slice) {
    this.#root = root;
    this.values = copy;
    this.meter = new WorkMeter(copy.size, slice);
  }

  later(go: () => void): void {
    this.paused = true;
    this.#putOff ??= [];
    this.#putOff.push({ go, depth: this.depth });
  }

  /**
   * Goes on for a slice. Gives what does not fit; empty: all fits; `undefined`: there is more to do.
   *
   * @throws WorkLimitReached, ArgumentsTooLarge.
   */
  go(): readonly SchemaError[] | undefined {
    this.meter.beginSlice();
    if (this.#waiting === undefined)
      this.#root.hold({ value: this.values.root, parent: undefined, key: "" }, this, undefined);
    while (!this.paused) {
      const rest = this.#waiting?.pop();
      if (rest === undefined) return this.errors;
      this.depth = rest.depth;
      rest.go();
    }
    this.paused = false;
    this.#waiting ??= [];
    for (let rest = this.#putOff?.pop(); rest !== undefined; rest = this.#putOff?.pop()) this.#waiting.push(rest);
    this.meter.endSlice();
    return undefined;
  }
}
