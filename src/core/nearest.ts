import { distance as editDistance } from "fastest-levenshtein";

/**
 * The candidates closest to a mistyped word, best first; none where nothing is near.
 * Nearness is Levenshtein distance over at most a third of the longer word (at least 2), case ignored; a
 * candidate that holds the word as a part counts as near too.
 */
export function nearestWords(word: string, candidates: Iterable<string>, limit = 3): string[] {
  const wanted = word.slice(0, 128).toLowerCase();
  const scored: { candidate: string; distance: number }[] = [];
  for (const candidate of candidates) {
    const text = candidate.toLowerCase();
    const allowed = Math.max(2, Math.floor(Math.max(wanted.length, text.length) / 3));
    const part = wanted.length >= 3 && (text.includes(wanted) || wanted.includes(text)) && text.length >= 3;
    if (!part && Math.abs(text.length - wanted.length) > allowed) continue;
    const distance = editDistance(wanted, text);
    if (distance <= allowed || part) scored.push({ candidate, distance });
  }
  scored.sort((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1));
  return scored.slice(0, limit).map((entry) => entry.candidate);
}

/** `did you mean "x", "y"?`, or empty text where nothing is near. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const near = nearestWords(word, candidates);
  return near.length === 0 ? "" : `did you mean ${near.map((name) => `"${name}"`).join(", ")}?`;
}
