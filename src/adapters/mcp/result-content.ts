import type { ContentAnnotations, ContentFacts, ContentLink, ContentPart, ResultNotice } from "../../core/call.ts";
import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  ownValue,
  stringifyJson,
} from "../../core/json.ts";
import { oneLine } from "../../core/text.ts";

/** What a server sends where it names no media type. */
const BYTES = "application/octet-stream";

/** Characters of base64 in both alphabets, and what some encoders put between lines. */
const BASE64 = /^[A-Za-z0-9+/_\-=\s]*$/;

/** A result's parts, and what is to be said of them. */
export interface ReadContent {
  readonly parts: readonly ContentPart[];
  readonly notices: readonly ResultNotice[];
}

/**
 * Reads a result's `content`, whatever it is: absent is none, one part without its list is that part, a text is a text.
 * A part that is not as MCP has it stands as its JSON text, with a notice: nothing a server gave is lost. Base64 never
 * becomes text.
 */
export function readContent(content: JsonValue | undefined): ReadContent {
  if (content === undefined || content === null) return { parts: [], notices: [] };
  const items = isJsonArray(content) ? content : [content];
  const notices: ResultNotice[] = [];
  const parts = items.map((item, i): ContentPart => {
    const read = typeof item === "string" ? textPart(item) : partOf(item);
    if (read !== undefined) return read;
    const kind = isJsonObject(item) ? stringifyJson(ownValue(item, "type") ?? null).slice(0, 40) : "none";
    notices.push({
      reason: "CONTENT_UNREADABLE",
      message: `part ${i + 1} of the result is no content as MCP has it (type ${oneLine(kind)})`,
    });
    return textPart(stringifyJson(item));
  });
  return { parts, notices };
}

function partOf(item: JsonValue): ContentPart | undefined {
  if (!isJsonObject(item)) return undefined;
  const facts = annotationsOf(item);
  switch (ownValue(item, "type")) {
    case "text": {
      const text = ownValue(item, "text");
      return typeof text === "string" ? { type: "text", text, ...facts } : undefined;
    }
    case "image":
    case "audio":
      return blobOf(ownValue(item, "data"), textOf(item, "mimeType"), facts);
    case "resource_link":
      return linkOf(item, facts);
    case "resource": {
      const resource = ownValue(item, "resource");
      return isJsonObject(resource ?? null) && isJsonObject(resource) ? resourceOf(resource, facts) : undefined;
    }
    default:
      return undefined;
  }
}

function textPart(text: string): ContentPart {
  return { type: "text", text };
}

function blobOf(data: JsonValue | undefined, mimeType: string, facts: ContentFacts): ContentPart | undefined {
  if (typeof data !== "string" || !BASE64.test(data)) return undefined;
  return { type: "blob", mimeType: mimeType === "" ? BYTES : mimeType, data: Buffer.from(data, "base64"), ...facts };
}

function linkOf(item: JsonObject, facts: ContentFacts): ContentPart | undefined {
  const uri = textOf(item, "uri");
  if (uri === "") return undefined;
  const name = textOf(item, "name");
  const title = textOf(item, "title");
  const description = textOf(item, "description");
  const size = ownValue(item, "size");
  const link: ContentLink = {
    type: "link",
    uri,
    mimeType: textOf(item, "mimeType"),
    name,
    ...(title === "" || title === name ? {} : { title }),
    ...(description === "" ? {} : { description }),
    ...(typeof size === "number" && Number.isSafeInteger(size) && size >= 0 ? { sizeBytes: size } : {}),
  };
  return { ...link, ...facts };
}

/** An embedded resource: its text or its bytes, with where they come from. */
function resourceOf(resource: JsonObject, facts: ContentFacts): ContentPart | undefined {
  const uri = textOf(resource, "uri");
  const mimeType = textOf(resource, "mimeType");
  const text = ownValue(resource, "text");
  const own: ContentFacts = { ...annotationsOf(resource), ...facts, resource: { uri, mimeType } };
  if (typeof text === "string") return { type: "text", text, ...own };
  return blobOf(ownValue(resource, "blob"), mimeType, own);
}

function annotationsOf(item: JsonObject): ContentFacts {
  const given = ownValue(item, "annotations");
  if (given === undefined || !isJsonObject(given)) return {};
  const audience = ownValue(given, "audience");
  const priority = ownValue(given, "priority");
  const lastModified = textOf(given, "lastModified");
  const annotations: ContentAnnotations = {
    audience: isJsonArray(audience) ? audience.filter((word) => typeof word === "string") : [],
    ...(typeof priority === "number" && Number.isFinite(priority) ? { priority } : {}),
    ...(lastModified === "" ? {} : { lastModified }),
  };
  const says = annotations.audience.length > 0 || Object.keys(annotations).length > 1;
  return says ? { annotations } : {};
}

function textOf(object: JsonObject, key: string): string {
  const value = ownValue(object, key);
  return typeof value === "string" ? value : "";
}
