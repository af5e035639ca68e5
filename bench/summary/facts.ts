/** Something a reader may ask about a document. */
export interface Fact {
  /** What kind of question it answers, such as `row` or `extreme`. */
  readonly kind: string;
  /** Names the value; it must stand shortly before it. */
  readonly key?: string;
  readonly val?: string;
  /** The value that names the row. */
  readonly anchor?: string;
  /** How often a category's value comes. */
  readonly n?: string;
  /** The end of a line of a log, numbers masked. */
  readonly masked?: string;
  /** The question, for summaries that are given one. */
  readonly q?: string;
}

/** A document that is too long, with what is asked about it. */
export interface SampleDocument {
  readonly id: string;
  readonly type: "json" | "csv" | "log" | "md";
  readonly text: string;
  readonly facts: readonly Fact[];
}

/** Farthest a key may stand before its value. */
const KEY_REACH = 260;

/** Farthest a row's name may stand from its value. */
const ROW_REACH = 700;

/** Farthest a count may stand from what it counts, besides its length. */
const COUNT_REACH = 60;

/** A text with its numbers and long identifiers masked. */
export function mask(text: string): string {
  return text.replace(/0x[0-9a-f]+|\b[0-9a-f]{8,}\b/gi, "#").replace(/\d+/g, "#");
}

/** Whether a reader of the output can still answer. `masked` is the output, masked. */
export function survives(fact: Fact, output: string, masked: string): boolean {
  if (fact.masked !== undefined) return single(masked).includes(single(fact.masked));
  return stands({ val: "", ...fact }, output);
}

function stands(fact: Fact & { readonly val: string }, output: string): boolean {
  const { val: value } = fact;
  const places = placesOf(value, output);
  const name = fact.key?.split(".").at(-1) ?? "";
  switch (fact.kind) {
    case "count":
      return places.length > 0;
    case "extreme":
      return output.includes(name) && places.length > 0;
    case "category":
      return near(places, placesOf(fact.n ?? "", output), COUNT_REACH + value.length);
    default:
  }
  if (fact.anchor !== undefined) {
    return output.includes(name) && near(places, placesOf(fact.anchor, output), ROW_REACH);
  }
  const { key } = fact;
  if (key === undefined) return single(output).includes(single(value));
  return places.some((at) => `${output.slice(0, 400)}\n${output.slice(Math.max(0, at - KEY_REACH), at)}`.includes(key));
}

function near(places: readonly number[], others: readonly number[], reach: number): boolean {
  return places.some((at) => others.some((other) => Math.abs(at - other) < reach));
}

/** Where a value stands by itself, as it is or as JSON writes it. */
function placesOf(value: string, output: string): number[] {
  const written = new Set([value, JSON.stringify(value).slice(1, -1)]);
  return [...written].flatMap((text) => {
    const pattern = new RegExp(`(?<![\\w.])${text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?!\\w)`, "g");
    return [...output.matchAll(pattern)].map((match) => match.index);
  });
}

function single(text: string): string {
  return text.replace(/\s+/g, " ");
}
