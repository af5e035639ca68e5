/** Headers that the gateway or the connection sets by itself. Source: RFC 9110, sections 7.6.1 and 10.1.1. */
const RESERVED = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "traceparent",
  "transfer-encoding",
  "upgrade",
]);

const CODINGS = new Set(["gzip", "x-gzip", "deflate", "br", "zstd", "identity", "*"]);

/** Source: RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** What forbids a header of this name with this literal text; `undefined` where nothing does. */
export function headerProblem(name: string, text: string): string | undefined {
  const lower = name.toLowerCase();
  if (!TOKEN.test(name)) return `\`${name}\` is no header name: letters, digits and !#$%&'*+-.^_\`|~ are allowed`;
  if (RESERVED.has(lower)) return `header \`${name}\` is set by the gateway and cannot be declared`;
  if (holdsControl(text)) return `the value of header \`${name}\` holds a line break or control character`;
  if (lower !== "accept-encoding") return undefined;
  const unknown = text
    .split(",")
    .map((coding) => coding.split(";")[0]?.trim().toLowerCase() ?? "")
    .find((coding) => !CODINGS.has(coding));
  return unknown === undefined
    ? undefined
    : `coding \`${unknown}\` cannot be decoded; allowed: ${[...CODINGS].join(", ")}`;
}

/** Whether a header value would break out of its line, or hold what no header may. A tab is allowed. */
export function holdsControl(text: string): boolean {
  return /(?!\t)\p{Cc}/u.test(text);
}

/** A header value as it goes on the wire: its UTF-8 bytes, each written as one character. */
export function headerBytes(text: string): string {
  return /^[\t\x20-\x7e]*$/.test(text) ? text : Buffer.from(text, "utf8").toString("latin1");
}

/** A prefix as it stands before a credential: with a space after one that ends in a letter or digit. */
export function spacedPrefix(prefix: string): string {
  return /[\p{L}\p{N}]$/u.test(prefix) ? `${prefix} ` : prefix;
}
