/** A parsed Content-Type. */
export interface MediaType {
  /** `type/subtype` in lower case; empty where the answer names none. */
  readonly name: string;
  /** As the answer says; `undefined` where it does not. */
  readonly charset: string | undefined;
}

const TEXT_NAMES = new Set([
  "application/javascript",
  "application/ecmascript",
  "application/graphql",
  "application/sql",
  "application/toml",
  "application/x-sh",
  "application/x-www-form-urlencoded",
  "application/yaml",
  "application/x-yaml",
  "application/xml",
  "message/http",
  "image/svg+xml",
]);

const LINE_NAMES = new Set([
  "application/x-ndjson",
  "application/ndjson",
  "application/jsonl",
  "application/x-jsonlines",
  "application/jsonlines",
  "application/json-lines",
  "application/stream+json",
]);

/** A type with parameters. Source: RFC 9110, section 8.3.1. */
const MEDIA_TYPE = /^[!#$&^_.+\-\w]+\/[!#$&^_.+\-\w]+(?:\s*;\s*[!#$&^_.+\-\w]+=(?:[!#$&^_.+\-\w]+|"[^"\\]*"))*$/;

/** Whether a text is a content type as it may stand in a header. */
export function isMediaType(text: string): boolean {
  return MEDIA_TYPE.test(text) && !/\p{Cc}/u.test(text);
}

/** Parses a Content-Type header. Source: RFC 9110, section 8.3. */
export function parseMediaType(header: string | undefined): MediaType {
  const [name = "", ...params] = (header ?? "").split(";");
  const charset = params.map((param) => /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/i.exec(param)?.[1]).find(Boolean);
  return { name: name.trim().toLowerCase(), charset };
}

/** Server-sent events. */
export function isEventStream(media: MediaType): boolean {
  return media.name === "text/event-stream";
}

/** One JSON value on each line. */
export function isJsonLines(media: MediaType): boolean {
  return LINE_NAMES.has(media.name);
}

/** One JSON value. */
export function isJson(media: MediaType): boolean {
  return !isJsonLines(media) && /^(?:application|text)\/(?:[^/]*\+)?json$/.test(media.name);
}

/** An XML document. Source: RFC 7303. */
export function isXml(media: MediaType): boolean {
  return /^(?:application|text)\/xml$|\+xml$/.test(media.name);
}

/** A web page. */
export function isHtml(media: MediaType): boolean {
  return media.name === "text/html" || media.name === "application/xhtml+xml";
}

/** Whether the answer is text of some kind; `undefined` where only its bytes can tell. */
export function isText(media: MediaType): boolean | undefined {
  if (media.name === "") return undefined;
  if (media.charset !== undefined || media.name.startsWith("text/")) return true;
  return isJson(media) || isJsonLines(media) || TEXT_NAMES.has(media.name) || /\+(?:xml|yaml)$/.test(media.name);
}
