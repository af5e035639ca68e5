/** Thrown inside the reader of schemas; the message says what is wrong. Never leaves this folder. */
export class SchemaRefused extends Error {}

/** What the problem of a schema begins with that would take too long. */
export const TOO_COMPLEX = "schema too complex";

/** The schema would take too long to compile or to run. */
export function tooComplex(why: string): SchemaRefused {
  return new SchemaRefused(`${TOO_COMPLEX}: ${why}`);
}
