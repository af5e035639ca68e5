/** Thrown inside the reader of schemas; the message says what is wrong. Never leaves this folder. */
export class SchemaRefused extends Error {}

/** The schema would take too long to compile or to run. */
export function tooComplex(why: string): SchemaRefused {
  return new SchemaRefused(`schema too complex: ${why}`);
}
