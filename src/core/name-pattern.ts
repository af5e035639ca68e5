/** What a text must hold to be a pattern: `*` stands for any characters, `?` for one. */
const WILDCARD = /[*?]/;

/** Whether a text is a pattern rather than one name. */
export function isNamePattern(text: string): boolean {
  return WILDCARD.test(text);
}

/**
 * Whether a name fits a pattern, of which `*` stands for any number of characters, `/` and `.` among them, `?` for one,
 * and every other for itself. Names are foreign, so the time it takes grows with their length times the pattern's, at
 * the worst.
 */
export function fitsName(pattern: string, name: string): boolean {
  const signs = [...pattern];
  const letters = [...name];
  let at = 0;
  let star = -1;
  let retry = 0;
  for (let i = 0; i < letters.length; ) {
    const sign = signs[at];
    if (sign === "*") {
      star = at++;
      retry = i;
    } else if (sign !== undefined && (sign === "?" || sign === letters[i])) {
      at++;
      i++;
    } else if (star >= 0) {
      at = star + 1;
      i = ++retry;
    } else return false;
  }
  return signs.slice(at).every((sign) => sign === "*");
}
