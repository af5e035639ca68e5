/** Tries of one shrinking. */
const MAX_TRIES = 1_500;

/** Shrinking ends after so long, in milliseconds. */
const MAX_MS = 5_000;

/**
 * Makes a failing input smaller: leaves out members, items and stretches of text as long as it fails in the same way.
 */
export async function smaller<Input>(input: Input, fails: (less: Input) => Promise<boolean>): Promise<Input> {
  let least = input;
  let tries = 0;
  const endMs = performance.now() + MAX_MS;
  for (let progress = true; progress; ) {
    progress = false;
    for (const less of reductions(least)) {
      if (++tries > MAX_TRIES || performance.now() > endMs) return least;
      if (!(await fails(less as Input))) continue;
      least = less as Input;
      progress = true;
      break;
    }
  }
  return least;
}

/** What is a little less than a value, the largest steps first. */
function* reductions(value: unknown): Generator<unknown, void, undefined> {
  if (typeof value === "string") yield* shorter(value);
  else if (Array.isArray(value)) {
    for (const i of value.keys()) yield value.toSpliced(i, 1);
    for (const [i, item] of value.entries()) for (const less of reductions(item)) yield value.with(i, less);
  } else if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value);
    for (const i of entries.keys()) yield Object.fromEntries(entries.toSpliced(i, 1));
    for (const [i, [name, member]] of entries.entries())
      for (const less of reductions(member)) yield Object.fromEntries(entries.with(i, [name, less]));
  }
}

function* shorter(text: string): Generator<string, void, undefined> {
  for (let size = Math.ceil(text.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < text.length; at += size) yield text.slice(0, at) + text.slice(at + size);
  }
}
