import { excerpt, flatLine } from "./excerpt.ts";
import type { Question } from "./question.ts";

/** Characters that are looked at. */
const SAMPLE = 200_000;

/** What can be read of binary data that came as text: its longer runs of letters. */
export function binaryText(
  text: string,
  budget: number,
  question: Question,
): { readonly text: string; readonly shown: string } {
  const runs = text.slice(0, SAMPLE).match(/[\p{L}\p{N}\p{P}\p{Zs}]{6,}/gu) ?? [];
  const lines = ["binary data; what can be read in it:"];
  let left = budget - (lines[0]?.length ?? 0);
  for (const run of new Set(runs)) {
    const line = excerpt(flatLine(run), 120, question);
    if (line.length < 6 || line.length + 1 > left) continue;
    lines.push(line);
    left -= line.length + 1;
  }
  const shown = `${lines.length - 1} of ${runs.length} readable pieces`;
  return { text: left < 0 ? "" : lines.join("\n"), shown };
}
