import type { FieldViolation } from "../../core/errors.ts";
import type { SchemaError } from "./check.ts";
import { describeError, schemaTypes, typeNames, violation } from "./describe-error.ts";
import { showValue } from "./show-value.ts";

/** Most violations of one call. */
const MAX_VIOLATIONS = 20;

/** Most characters of them all, since errors travel in headers, which many clients limit to 8 KiB. */
const MAX_CHARACTERS = 3_000;

/** Most errors that are looked at; more only count. */
const MAX_ERRORS = 500;

/** Most alternatives spelled out in one line. */
const MAX_ALTERNATIVES = 4;

/** An error with its line, which is made when it is asked for: of thousands, few are told. */
class Finding {
  readonly error: SchemaError;
  readonly #describe: (error: SchemaError) => FieldViolation;
  #line: FieldViolation | undefined;

  constructor(error: SchemaError, describe: (error: SchemaError) => FieldViolation) {
    this.error = error;
    this.#describe = describe;
  }

  get line(): FieldViolation {
    this.#line ??= this.#describe(this.error);
    return this.#line;
  }
}

/**
 * Turns what the validator found into lines a model can act on: at most 20 of 3,000 characters together, and one that
 * counts the rest. Where no alternative of an `anyOf` or `oneOf` fits, the one that comes nearest speaks, or all that
 * come equally near.
 */
export function violationsOf(errors: readonly SchemaError[]): readonly FieldViolation[] {
  const budget = { errors: MAX_ERRORS };
  const findings: Finding[] = [];
  let unseen = 0;
  for (const error of errors) {
    if (budget.errors > 0) findings.push(...findingsOf(error, budget));
    else unseen++;
  }
  return bounded(findings, unseen);
}

/** How many errors may still be looked at, those of alternatives included. */
interface Budget {
  errors: number;
}

function findingsOf(error: SchemaError, budget: Budget): readonly Finding[] {
  budget.errors--;
  if (error.keyword === "propertyNames") return [new Finding(error, badName)];
  const ways = error.parts.map((part) => part.flatMap((each) => (budget.errors > 0 ? findingsOf(each, budget) : [])));
  return ways.length === 0 ? [new Finding(error, describeError)] : nearest(error, ways);
}

function bounded(findings: readonly Finding[], unseen: number): FieldViolation[] {
  const list: FieldViolation[] = [];
  const told = new Set<string>();
  let characters = 0;
  for (const [i, { line }] of findings.entries()) {
    const text = `${line.field}\n${line.description}`;
    if (told.has(text)) continue;
    characters += text.length;
    if (list.length === MAX_VIOLATIONS || characters > MAX_CHARACTERS) {
      const left = findings.length - i + unseen;
      return [...list, violation("", "INVALID", `${left} more mistakes are not listed`)];
    }
    told.add(text);
    list.push(line);
  }
  return list;
}

function nearest(choice: SchemaError, ways: readonly (readonly Finding[])[]): readonly Finding[] {
  const groups = ways.filter((group) => group.length > 0);
  const least = Math.min(...groups.map((group) => distance(choice, group)));
  const [best, ...others] = groups.filter((group) => distance(choice, group) === least);
  if (best !== undefined && others.length === 0) return best;
  const firsts = [best ?? [], ...others].flatMap((group) => group.slice(0, 1));
  return [new Finding(choice, () => combined(choice, firsts))];
}

/** How far an alternative is from what was given: one of another kind is further off than one with many mistakes. */
function distance(choice: SchemaError, group: readonly Finding[]): number {
  const ofAnotherKind = group.some(({ error }) => {
    const depth = error.instancePath.split("/").length - choice.instancePath.split("/").length;
    return (error.keyword === "type" && depth === 0) || (["const", "enum"].includes(error.keyword) && depth <= 1);
  });
  return (ofAnotherKind ? 1_000 : 0) + group.length;
}

function combined(choice: SchemaError, firsts: readonly Finding[]): FieldViolation {
  const at = choice.instancePath;
  if (firsts.every(({ error }) => error.keyword === "type" && error.instancePath === at)) {
    const types = typeNames(firsts.flatMap(({ error }) => schemaTypes(error)));
    return violation(at, "WRONG_TYPE", `expected ${types}, got ${showValue(choice.data)}`);
  }
  const shown = firsts.slice(0, MAX_ALTERNATIVES);
  const ways = shown.map(({ line }) => {
    return line.field === at ? line.description : `${line.field}: ${line.description}`;
  });
  const reasons = new Set(shown.map(({ line }) => line.reason));
  const description = ways.length === 0 ? "fits none of the forms allowed here" : ways.join("; or ");
  return { ...violation(at, "INVALID", description), reason: reasons.size === 1 ? [...reasons].join("") : "INVALID" };
}

function badName(error: SchemaError): FieldViolation {
  const [why] = error.parts.flat();
  const reason = why === undefined ? "not allowed" : describeError(why).description;
  return violation(error.instancePath, "INVALID", `name "${error.params["propertyName"]}": ${reason}`);
}
