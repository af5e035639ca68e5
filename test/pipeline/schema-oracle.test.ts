import { Ajv } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import ajvDraft04 from "ajv-draft-04";
import { expect, test } from "vitest";
import { createSchemaChecker } from "../../src/pipeline/schema-checker.ts";
import { inOlderWords, knownTo, OLDER_NAMES } from "./older-schemas.ts";
import { hasDisputed, JUDGE_OPTIONS, SchemaMaker, verdict } from "./schema-maker.ts";

// The checker holds arguments against schemas by an interpreter of its own. Here ajv, which generates code, is the judge.

for (const [dialect, modern] of [
  ["draft-07", false],
  ["2020-12", true],
] as const) {
  test(`arguments fit a schema of ${dialect} exactly where ajv says so`, { timeout: 240_000 }, () => {
    const checker = createSchemaChecker({ maxCompiled: 1 });
    const pausing = createSchemaChecker({ maxCompiled: 1, slice: { ms: 0, steps: 1 } });
    const ajv = modern ? new Ajv2020(JUDGE_OPTIONS) : new Ajv(JUDGE_OPTIONS);
    let [fitting, refused] = [0, 0];
    for (let seed = 0; seed < 200; seed++) {
      const maker = new SchemaMaker(seed, modern);
      const schema = maker.root();
      const own = modern ? schema : { ...schema, $schema: "http://json-schema.org/draft-07/schema#" };
      if (hasDisputed(schema) || checker.problem(own) !== undefined) continue;
      const judge = ajv.compile(schema);
      for (let n = 0; n < 8; n++) {
        const args = maker.args();
        const expected = verdict(judge, args);
        if (expected === undefined) continue;
        const outcome = checker.check(own, args);
        const fits = outcome.ok;
        expect(pausing.check(own, args), JSON.stringify({ seed, schema, args })).toEqual(outcome);
        expect(fits, JSON.stringify({ seed, schema, args })).toBe(expected);
        if (fits) fitting++;
        else refused++;
      }
    }
    // The test would be worth nothing if nearly all went one way.
    expect(Math.min(fitting, refused)).toBeGreaterThan(200);
  });
}

test.for(["draft-04", "draft-06", "2019-09"] as const)(
  "arguments fit a schema of %s, in whose words the interpreter does not think, exactly where ajv says so",
  { timeout: 120_000 },
  (dialect) => {
    const checker = createSchemaChecker({ maxCompiled: 1 });
    const judges = { "draft-04": ajvDraft04.default, "draft-06": Ajv, "2019-09": Ajv2019 };
    const ajv = new judges[dialect](JUDGE_OPTIONS);
    let [fitting, refused] = [0, 0];
    for (let seed = 0; seed < 200; seed++) {
      const maker = new SchemaMaker(seed, dialect === "2019-09");
      const schema = inOlderWords(maker.root(), dialect);
      const own = { ...schema, $schema: OLDER_NAMES[dialect] };
      if (hasDisputed(schema) || checker.problem(own) !== undefined) continue;
      const judge = ajv.compile(knownTo(schema, dialect));
      for (let n = 0; n < 8; n++) {
        const args = maker.args();
        const expected = verdict(judge, args);
        if (expected === undefined) continue;
        const fits = checker.check(own, args).ok;
        expect(fits, JSON.stringify({ seed, schema, args })).toBe(expected);
        if (fits) fitting++;
        else refused++;
      }
    }
    expect(Math.min(fitting, refused)).toBeGreaterThan(200);
  },
);
