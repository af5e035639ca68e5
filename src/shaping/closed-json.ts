/**
 * The beginning of a JSON text as JSON of its own: cut after its last whole entry, with what is open closed.
 * `undefined` where it has no whole entry.
 */
export function closedJson(beginning: string): string | undefined {
  let open = "";
  let cut: { readonly at: number; readonly open: string } | undefined;
  for (let i = 0; i < beginning.length; i++) {
    const c = beginning.charCodeAt(i);
    if (c === 34) i = endOfString(beginning, i);
    else if (c === 91) open += "]";
    else if (c === 123) open += "}";
    else if (c === 93 || c === 125) open = open.slice(0, -1);
    else if (c === 44) cut = { at: i, open };
  }
  return cut === undefined ? undefined : beginning.slice(0, cut.at) + [...cut.open].toReversed().join("");
}

/** Index of the quote that ends a string; the text's end where there is none. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 92) i++;
    else if (c === 34) return i;
  }
  return text.length;
}
