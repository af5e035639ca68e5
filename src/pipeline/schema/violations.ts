import type { ErrorObject } from "ajv";
import type { FieldViolation } from "../../core/errors.ts";
import type { JsonValue } from "../../core/json.ts";
import { describeError, typeNames, violation } from "./describe-error.ts";
import { DEFS } from "./keywords.ts";
import { showValue } from "./show-value.ts";

/** Most violations of one call. */
const MAX_VIOLATIONS = 20;

/** Most characters of them all, since errors travel in headers, which many clients limit to 8 KiB. */
const MAX_CHARACTERS = 3_000;

/** Most errors that are looked at; more only count. */
const MAX_ERRORS = 500;

/** Most alternatives spelled out in one line. */
const MAX_ALTERNATIVES = 4;

/** An error together with its line. */
interface Finding {
  readonly error: ErrorObject;
  readonly line: FieldViolation;
}

/**
 * Turns what the validator found into lines a model can act on: at most 20 of 3,000 characters together, and one that
 * counts the rest. Where no alternative of an `anyOf` or `oneOf` fits, the one that comes nearest speaks, or all that
 * come equally near.
 */
export function violationsOf(
  errors: readonly ErrorObject[],
  valueAt: (pointer: string) => JsonValue | undefined,
): readonly FieldViolation[] {
  const findings: Finding[] = [];
  for (const error of errors.slice(0, MAX_ERRORS)) {
    const value = error.propertyName ?? valueAt(error.instancePath) ?? null;
    if (isChoice(error)) findings.push(...nearest(error, value, takeParts(error, findings)));
    else if (error.keyword === "propertyNames") findings.push(badName(error, takeParts(error, findings)));
    else if (error.keyword === "contains") {
      takeParts(error, findings);
      findings.push({ error, line: describeError(error, value) });
    } else if (error.keyword !== "if") findings.push({ error, line: describeError(error, value) });
  }
  return bounded(findings, Math.max(0, errors.length - MAX_ERRORS));
}

function bounded(findings: readonly Finding[], unseen: number): FieldViolation[] {
  const lines = new Map(findings.map(({ line }) => [`${line.field}\n${line.description}`, line]));
  const list: FieldViolation[] = [];
  let characters = 0;
  for (const line of lines.values()) {
    characters += line.field.length + line.description.length;
    if (list.length === MAX_VIOLATIONS || characters > MAX_CHARACTERS) break;
    list.push(line);
  }
  const left = lines.size - list.length + unseen;
  if (left > 0) list.push(violation("", "INVALID", `${left} more mistakes are not listed`));
  return list;
}

function isChoice(error: ErrorObject): boolean {
  return error.keyword === "anyOf" || (error.keyword === "oneOf" && !Array.isArray(error.params["passingSchemas"]));
}

/** Takes the findings that belong to the parts of a compound keyword: the last ones, at its place or below. */
function takeParts(error: ErrorObject, findings: Finding[]): Finding[] {
  let from = findings.length;
  while (from > 0 && isPart(error, (findings[from - 1] as Finding).error)) from--;
  return findings.splice(from);
}

function isPart(of: ErrorObject, error: ErrorObject): boolean {
  const here = of.instancePath;
  if (error.instancePath !== here && !error.instancePath.startsWith(`${here}/`)) return false;
  if (error.schemaPath.startsWith(`${of.schemaPath}/`)) return true;
  // A part behind a reference has a path of its own; only what stands beside the keyword shares the path before it.
  const around = of.schemaPath.slice(0, of.schemaPath.lastIndexOf("/"));
  return error.schemaPath.startsWith(DEFS) || !error.schemaPath.startsWith(`${around}/`);
}

function nearest(choice: ErrorObject, value: JsonValue, parts: readonly Finding[]): readonly Finding[] {
  const groups = groupsOf(choice, parts);
  const least = Math.min(...groups.map((group) => distance(choice, group)));
  const [best, ...others] = groups.filter((group) => distance(choice, group) === least);
  if (best !== undefined && others.length === 0) return best;
  const firsts = [best ?? [], ...others].flatMap((group) => group.slice(0, 1));
  return [{ error: choice, line: combined(choice, value, firsts) }];
}

/** The findings of each alternative. */
function groupsOf(choice: ErrorObject, parts: readonly Finding[]): readonly (readonly Finding[])[] {
  const groups = new Map<string, Finding[]>();
  for (const part of parts) {
    const name = alternativeOf(choice, part.error);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [part]);
    else group.push(part);
  }
  return [...groups.values()];
}

/** Which alternative an error belongs to. */
function alternativeOf(choice: ErrorObject, error: ErrorObject): string {
  const depth = error.schemaPath.startsWith(`${choice.schemaPath}/`) ? choice.schemaPath.split("/").length + 1 : 3;
  return error.schemaPath.split("/").slice(0, depth).join("/");
}

/** How far an alternative is from what was given: one of another kind is further off than one with many mistakes. */
function distance(choice: ErrorObject, group: readonly Finding[]): number {
  const ofAnotherKind = group.some(({ error }) => {
    const depth = error.instancePath.split("/").length - choice.instancePath.split("/").length;
    return (error.keyword === "type" && depth === 0) || (["const", "enum"].includes(error.keyword) && depth <= 1);
  });
  return (ofAnotherKind ? 1_000 : 0) + group.length;
}

function combined(choice: ErrorObject, value: JsonValue, firsts: readonly Finding[]): FieldViolation {
  const at = choice.instancePath;
  if (firsts.every(({ error }) => error.keyword === "type" && error.instancePath === at)) {
    const types = typeNames(firsts.flatMap(({ error }) => error.params["type"] as string | string[]));
    return violation(at, "WRONG_TYPE", `expected ${types}, got ${showValue(value)}`);
  }
  const ways = firsts.slice(0, MAX_ALTERNATIVES).map(({ line }) => {
    return line.field === at ? line.description : `${line.field}: ${line.description}`;
  });
  const reasons = new Set(firsts.map(({ line }) => line.reason));
  const description = ways.length === 0 ? "fits none of the forms allowed here" : ways.join("; or ");
  return { ...violation(at, "INVALID", description), reason: reasons.size === 1 ? [...reasons].join("") : "INVALID" };
}

function badName(error: ErrorObject, parts: readonly Finding[]): Finding {
  const why = parts[0]?.line.description ?? "not allowed";
  return { error, line: violation(error.instancePath, "INVALID", `name "${error.params["propertyName"]}": ${why}`) };
}
