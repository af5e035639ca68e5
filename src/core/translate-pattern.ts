/** What `\s` matches in ECMAScript; RE2 knows only the ASCII part. */
const SPACE =
  "\\t\\n\\v\\f\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";

/** Escapes that mean the same in both, outside a class. */
const SHARED_ESCAPE = /^[dDwWbBtnrfv]$/;

/** Escapes inside a class that stand for many characters: a `-` beside one is no range. */
const SET = /^\\[dDwWsSpP]/;

/** Tokens of a pattern: classes as a whole, groups' openings, counts, escapes, single code points. */
const TOKEN =
  /\[(?:\\[\s\S]|[^\]\\])*\]|\(\?(?:<(?![=!])[^>]*>|<?[:=!]|[a-z-]*:)|\{\d+(?:,\d*)?\}|\\(?:u\{[0-9a-fA-F]+\}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|k<[^>]*>|[pP]\{[^}]*\}|[\s\S])|[\s\S]/gu;

/** Tokens inside a class. */
const CLASS_TOKEN =
  /\\(?:u\{[0-9a-fA-F]+\}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[pP]\{[^}]*\}|[\s\S])|[\s\S]/gu;

/**
 * Rewrites the tokens of an ECMAScript pattern for RE2, so that they match the same text: `\s` and `.` as ECMAScript
 * means them, `\u` escapes, names of groups and of Unicode properties. What RE2 lacks (look-around, back-references)
 * is left as it stands, for its compiler to refuse.
 */
export function translatePattern(pattern: string): readonly string[] {
  return (pattern.match(TOKEN) ?? []).map(translateToken);
}

function translateToken(token: string): string {
  if (token === ".") return "[^\\n\\r\\x{2028}\\x{2029}]";
  if (token === "[^]") return "(?s:.)";
  if (token === "[]") return "[^\\x{0}-\\x{10ffff}]";
  if (/^\(\?<.*>$/.test(token)) return token.replace("(?<", "(?P<");
  if (token.startsWith("[")) return translateClass(token.slice(1, -1));
  if (token.startsWith("\\")) return translateEscape(token);
  return token;
}

function translateEscape(token: string): string {
  if (token === "\\s") return `[${SPACE}]`;
  if (token === "\\S") return `[^${SPACE}]`;
  return SHARED_ESCAPE.test(token.slice(1)) ? token : translateSharedEscape(token);
}

function translateClass(inner: string): string {
  const tokens = inner.match(CLASS_TOKEN) ?? [];
  const negated = tokens[0] === "^";
  const members = negated ? tokens.slice(1) : tokens;
  const translated = members.map((token, i) => {
    const besideSet = SET.test(members[i - 1] ?? "") || SET.test(members[i + 1] ?? "");
    return token === "-" && besideSet ? "\\-" : translateMember(token);
  });
  return `[${negated ? "^" : ""}${translated.join("")}]`;
}

function translateMember(token: string): string {
  if (token === "\\s") return SPACE;
  if (token === "\\b") return "\\x08";
  if (token === "[") return "\\[";
  if (/^\\[dDwWtnrfvS]$/.test(token)) return token;
  return token.startsWith("\\") ? translateSharedEscape(token) : token;
}

/** Escapes that are translated the same way inside and outside a class. */
function translateSharedEscape(token: string): string {
  const body = token.slice(1);
  if (body.startsWith("u") && body.length > 1) return codePoint(unicodeEscape(token));
  if (body.startsWith("x") && body.length > 1) return codePoint(Number.parseInt(body.slice(1), 16));
  if (body.startsWith("c") && body.length > 1) return codePoint(body.charCodeAt(1) % 32);
  if (/^[pP]\{/.test(body)) return `\\${body.replace(/\{.*?=/, "{")}`;
  if (body === "0") return "\\x00";
  // A digit is a back-reference, which RE2 refuses by itself; a letter without a meaning stands for itself.
  if (/^[1-9k]/.test(body)) return token;
  return /^[a-zA-Z]$/.test(body) || body > "\x7f" ? body : `\\${body}`;
}

function unicodeEscape(token: string): number {
  const parts = token.split("\\u").slice(1);
  if (parts.length === 2) {
    return String.fromCharCode(...parts.map((part) => Number.parseInt(part, 16))).codePointAt(0) ?? 0;
  }
  return Number.parseInt((parts[0] ?? "").replace(/[{}]/g, ""), 16);
}

function codePoint(code: number): string {
  return `\\x{${code.toString(16)}}`;
}
