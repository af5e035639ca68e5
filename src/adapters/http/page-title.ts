import { isHtml, type MediaType } from "./media-type.ts";

const MAX_TITLE = 120;

/** Whether an answer is a web page, whatever it says. */
export function isWebPage(text: string, media: MediaType): boolean {
  return isHtml(media) || /^\s*<(?:!doctype|html)/i.test(text);
}

/** Title of a web page in one line; empty where it has none. */
export function pageTitle(html: string): string {
  const tag = html.search(/<title/i);
  if (tag === -1) return "";
  const from = html.indexOf(">", tag) + 1;
  return oneLine(html.slice(from, from + MAX_TITLE * 10).split("<", 1)[0] ?? "", MAX_TITLE);
}

/** Text without line breaks and control characters, cut to `maxLength` characters and an ellipsis. */
export function oneLine(text: string, maxLength: number): string {
  // Nothing beyond this can show, so the rest of a long text is not looked at.
  const line = text
    .slice(0, maxLength * 10)
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
  const characters = Array.from(line);
  return characters.length <= maxLength ? line : `${characters.slice(0, maxLength).join("")}…`;
}
