/** Characters of ASCII text a token has: prose has more, and JSON, code and numbers about this many. */
export const CHARACTERS_PER_TOKEN = 3;

/** Characters of a text that are looked at. */
const SAMPLE = 20_000;

/**
 * How many code points of a text make up about so many tokens, on the careful side: three ASCII characters count as one
 * token, and every other character as one of its own.
 */
export function charactersOfTokens(tokens: number, text: string): number {
  const sample = text.slice(0, SAMPLE);
  let ascii = 0;
  let others = 0;
  for (const sign of sample)
    if (sign < "\u0080") ascii++;
    else others++;
  const estimate = ascii / CHARACTERS_PER_TOKEN + others;
  return Math.max(1, Math.floor(estimate === 0 ? tokens : (tokens * (ascii + others)) / estimate));
}
