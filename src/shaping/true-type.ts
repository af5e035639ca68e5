import type { ContentPart, ResultNotice, UpstreamResult } from "../core/call.ts";
import { isBareMp3 } from "./mp3-frame.ts";

/** What stands where in bytes of a type, as Latin-1. Source: the formats' own specifications; https://mimesniff.spec.whatwg.org/. */
const SIGNATURES: readonly (readonly [mimeType: string, ...signs: (readonly [at: number, sign: string])[]])[] = [
  ["image/png", [0, "\x89PNG\r\n\x1a\n"]],
  ["image/jpeg", [0, "\xff\xd8\xff"]],
  ["image/gif", [0, "GIF87a"]],
  ["image/gif", [0, "GIF89a"]],
  ["image/webp", [0, "RIFF"], [8, "WEBP"]],
  ["audio/wav", [0, "RIFF"], [8, "WAVE"]],
  ["image/bmp", [0, "BM"], [6, "\0\0\0\0"]],
  ["image/tiff", [0, "II*\0"]],
  ["image/tiff", [0, "MM\0*"]],
  ["image/avif", [4, "ftypavif"]],
  ["video/mp4", [4, "ftyp"]],
  ["audio/ogg", [0, "OggS"]],
  ["audio/flac", [0, "fLaC"]],
  ["audio/mpeg", [0, "ID3"]],
  ["video/webm", [0, "\x1a\x45\xdf\xa3"]],
  ["application/pdf", [0, "%PDF-"]],
];

/** Names that mean the same, and types that share their container. */
const SAME: Readonly<Record<string, readonly string[]>> = {
  "image/jpeg": ["image/jpg", "image/pjpeg"],
  "image/png": ["image/apng", "image/x-png"],
  "image/bmp": ["image/x-ms-bmp", "image/x-bmp"],
  "audio/wav": ["audio/x-wav", "audio/wave", "audio/vnd.wave"],
  "audio/flac": ["audio/x-flac"],
  "audio/mpeg": ["audio/mp3", "audio/x-mp3"],
  "audio/ogg": ["video/ogg", "application/ogg", "audio/opus"],
  "video/mp4": ["audio/mp4", "audio/x-m4a", "audio/m4a", "video/quicktime", "image/heic", "image/heif", "video/x-m4v"],
  "video/webm": ["audio/webm", "video/x-matroska", "audio/x-matroska"],
};

/**
 * Gives each blob the media type of what its bytes are, where they are an image, audio, video or PDF and were declared as
 * something else, with a notice where they were declared as something in particular.
 */
export function withTrueTypes(result: UpstreamResult): UpstreamResult {
  if (!result.content.some(({ type }) => type === "blob")) return result;
  const notices: ResultNotice[] = [];
  const content = result.content.map((part): ContentPart => {
    const mimeType = part.type === "blob" ? trueType(part.data) : undefined;
    if (part.type !== "blob" || mimeType === undefined || isSame(mimeType, part.mimeType)) return part;
    if (part.mimeType !== "" && part.mimeType !== "application/octet-stream") {
      const message = `a part was declared as ${part.mimeType.slice(0, 100)}, and its bytes are ${mimeType}`;
      notices.push({ reason: "MEDIA_TYPE_MISMATCH", message });
    }
    return { ...part, mimeType };
  });
  return { ...result, content, notices: [...(result.notices ?? []), ...notices] };
}

function trueType(data: Uint8Array): string | undefined {
  const beginning = Buffer.from(data.subarray(0, 32)).toString("latin1");
  const signed = SIGNATURES.find(([, ...signs]) => signs.every(([at, sign]) => beginning.startsWith(sign, at)))?.[0];
  return signed ?? (isBareMp3(data) ? "audio/mpeg" : undefined);
}

function isSame(mimeType: string, declared: string): boolean {
  const name = (declared.split(";")[0] ?? "").trim().toLowerCase();
  return name === mimeType || SAME[mimeType]?.includes(name) === true;
}
