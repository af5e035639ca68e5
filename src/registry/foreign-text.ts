import { codePointCount, headIndex, wellFormed } from "../core/text.ts";

/** Most characters (code points) of a foreign description; the longest seen in the wild has 34,527. */
export const MAX_DESCRIPTION = 65_536;
/** Most characters of a foreign title. */
export const MAX_TITLE = 1_024;
/** Most characters of a foreign tool's name. */
const MAX_NAME = 256;

/** A text of a server, bounded, without characters that no UTF-8 text can hold. */
export function foreignText(text: unknown, limit: number): { readonly text: string; readonly shortened: boolean } {
  if (typeof text !== "string") return { text: "", shortened: false };
  const whole = wellFormed(text);
  if (codePointCount(whole) <= limit) return { text: whole, shortened: false };
  return { text: `${whole.slice(0, headIndex(whole, limit - 1))}…`, shortened: true };
}

/** What is wrong with a name that a server gave a tool; `undefined`: it can be one behind the server's. */
export function foreignNameProblem(name: string): string | undefined {
  if (name === "") return "its name is empty";
  if (codePointCount(name) > MAX_NAME) return `its name has more than ${MAX_NAME} characters`;
  // Line ends and direction marks would let a name pass for another in a log or a list.
  return /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]/u.test(name)
    ? "its name has control characters, or characters that are not seen"
    : undefined;
}
