import { Ajv, type ErrorObject, type Options } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { ArgumentCopy } from "./argument-copy.ts";
import { type ExactValues, replaceComparingKeywords } from "./exact-keywords.ts";
import { FORMATS } from "./formats.ts";
import { STEP, VISIT } from "./keywords.ts";
import type { ReadySchema } from "./read-schema.ts";
import { WorkMeter } from "./work-meter.ts";

/** Holds arguments against one schema. */
export interface Validator {
  /** What does not fit; empty: all fits. @throws WorkLimitReached when it takes too long. */
  errors(copy: ArgumentCopy): readonly ErrorObject[];
}

/** Stands between two checks, so that nothing of a call stays referenced. */
const NO_VALUES: ExactValues = { exact: (_container, _key, value) => value, exactDeep: (value) => value };

/**
 * Compiles a schema, which takes about 1 ms and 0.1 ms for each property. Every schema gets an ajv instance of its
 * own: an instance keeps something of all it ever compiled, and refuses a second schema with the same `$id`.
 */
export function compileSchema(ready: ReadySchema): Validator {
  const meter = new WorkMeter();
  let values = NO_VALUES;
  const patternOf = (source: string) => ({
    test(text: string) {
      meter.step();
      return ready.patterns.get(source)?.test(text, meter) ?? true;
    },
    toString: () => source,
  });
  // ajv names the engine by this code when it writes a validator to a file, which is never done here.
  const options = ajvOptions(Object.assign(patternOf, { code: "linearPattern" }));
  const ajv = ready.dialect === "draft-07" ? new Ajv(options) : new Ajv2020(options);
  replaceComparingKeywords(ajv, () => values, meter);
  for (const [keyword, count] of [
    [VISIT, () => meter.visit()],
    [STEP, () => meter.step()],
  ] as const) {
    const validate = (): boolean => {
      count();
      return true;
    };
    ajv.addKeyword({ keyword, before: "$ref", errors: false, validate });
  }
  const validate = ajv.compile(ready.schema);
  return {
    errors(copy) {
      values = copy;
      meter.reset(copy.size);
      try {
        return validate(copy.root) ? [] : (validate.errors ?? []);
      } finally {
        values = NO_VALUES;
        validate.errors = null;
      }
    },
  };
}

function ajvOptions(regExp: NonNullable<NonNullable<Options["code"]>["regExp"]>): Options {
  return {
    // Everything is checked by the reader already; what it leaves in is to be ignored where unknown.
    meta: false,
    validateSchema: false,
    addUsedSchema: false,
    strict: false,
    logger: false,
    formats: { ...FORMATS },
    // `allErrors` names every mistake at once; without it, ajv nests the code and overflows its stack at 2,000 properties.
    allErrors: true,
    verbose: true,
    messages: false,
    code: { regExp, optimize: false },
  };
}
