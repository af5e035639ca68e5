import type { ContentPart, UpstreamResult } from "../../core/call.ts";
import type { Effect } from "../../core/effect.ts";
import { GatewayError } from "../../core/errors.ts";
import { parseJson } from "../../core/json.ts";
import type { OpenOverflow } from "../../core/results.ts";
import type { BodySource, ReadPiece } from "./decompress.ts";
import { DeltaReader, MAX_PIECE_LENGTH } from "./delta-reader.ts";
import { type AnswerHead, headerOf } from "./exchange.ts";
import type { HttpConfig } from "./http-config.ts";
import { isEventStream, isJson, isJsonLines, isText, type MediaType } from "./media-type.ts";
import { type ReadBody, readOrOverflow } from "./overflow.ts";
import { isWebPage, pageTitle } from "./page-title.ts";
import { decodeText, isUtf8Text } from "./text-decoding.ts";
import { UnreadableAnswer } from "./unreadable-answer.ts";

/** An answer whose beginning is there. */
export interface Answer {
  readonly config: HttpConfig;
  readonly head: AnswerHead;
  readonly media: MediaType;
  /** What the call changed, by the answer's status. */
  readonly effect: Effect;
  readonly body: BodySource;
  /** Where the answer redirects to and why that is not followed; goes on after "the upstream". */
  readonly redirectRefused: string | undefined;
}

/**
 * Whether a successful answer is given on as it comes: where the tool is declared so and the answer is text. One JSON
 * value makes no sense in pieces.
 */
export function isStreamed({ config, head, media }: Answer): boolean {
  const { format } = config.settings;
  if (config.tool.delivery !== "incremental" || head.status >= 300) return false;
  if (isEventStream(media) || isJsonLines(media) || format === "text") return true;
  return format === "auto" && !isJson(media) && isText(media) !== false;
}

/**
 * Reads a successful answer as a whole; one that is too large for memory goes to `overflow`, where there is that and
 * nobody has to look into the answer, and the result is its beginning.
 *
 * @throws GatewayError RESULT_TOO_LARGE, or what the connection came to; UnreadableAnswer.
 */
export async function readResult(answer: Answer, overflow?: OpenOverflow): Promise<UpstreamResult> {
  const { config, media, head, effect } = answer;
  const outcome = { upstreamCode: head.status, effect };
  const { format, looksInside = false } = config.settings;
  if (format !== "json" && (isEventStream(media) || isJsonLines(media))) {
    const text = await readFramedText(answer, limitedRead(answer));
    return { ...outcome, content: [{ type: "text", text }] };
  }
  const bytes = await readBody(answer, looksInside ? undefined : overflow);
  if (!Buffer.isBuffer(bytes)) return { ...outcome, ...bytes };
  if (bytes.length === 0) return { ...outcome, content: [] };
  if (format === "json" || (format === "auto" && isJson(media))) {
    const text = decodeText(bytes, media.charset);
    return text.trim() === ""
      ? { ...outcome, content: [] }
      : { ...outcome, content: [], value: parseAnswer(text, media) };
  }
  return { ...outcome, content: [contentPart(bytes, media, format === "text")] };
}

/** Reads text as it comes. Throws as {@link readResult} does. */
export function deltaReader(answer: Answer): DeltaReader {
  return new DeltaReader(answer.body.read, answer.media, (what) => pieceTooLarge(answer, what));
}

async function readFramedText(answer: Answer, read: ReadPiece): Promise<string> {
  const reader = new DeltaReader(read, answer.media, (what) => pieceTooLarge(answer, what));
  let text = "";
  for (let pieces = await reader.next(); pieces !== undefined; pieces = await reader.next()) text += pieces.join("");
  return text;
}

function contentPart(bytes: Buffer, media: MediaType, asText: boolean): ContentPart {
  if (asText || (isText(media) ?? isUtf8Text(bytes))) return { type: "text", text: decodeText(bytes, media.charset) };
  return { type: "blob", mimeType: media.name === "" ? "application/octet-stream" : media.name, data: bytes };
}

/** The first `maxBytes` of a body, or less; nothing where they cannot be decoded. */
export async function readBeginning(read: ReadPiece, maxBytes: number): Promise<Buffer> {
  let left = maxBytes;
  const limited: ReadPiece = async () => {
    const piece = left > 0 ? await read() : undefined;
    left -= piece?.length ?? 0;
    return piece;
  };
  try {
    return (await readAll(limited)).subarray(0, maxBytes);
  } catch (error) {
    if (error instanceof UnreadableAnswer) return Buffer.alloc(0);
    throw error;
  }
}

async function readAll(read: ReadPiece): Promise<Buffer> {
  const first = await read();
  if (first === undefined) return Buffer.alloc(0);
  const pieces = [first];
  for (let piece = await read(); piece !== undefined; piece = await read()) pieces.push(piece);
  return pieces.length === 1 ? first : Buffer.concat(pieces);
}

async function readBody(answer: Answer, overflow: OpenOverflow | undefined): Promise<ReadBody> {
  if (overflow === undefined) return readAll(limitedRead(answer));
  const { body, media, config } = answer;
  const announced = announcedBytes(answer);
  return readOrOverflow({ read: body.read, media, limit: config.settings.maxResponseBytes, announced }, overflow);
}

/** Reads on while the body stays within the limit for conclusive answers. */
function limitedRead(answer: Answer): ReadPiece {
  const limit = answer.config.settings.maxResponseBytes;
  if (announcedBytes(answer) > limit) throw tooLarge(answer);
  let total = 0;
  return async () => {
    const piece = await answer.body.read();
    total += piece?.length ?? 0;
    if (total > limit) throw tooLarge(answer);
    return piece;
  };
}

/** Bytes the answer says it brings; 0 where it does not say, or says something else by it. */
function announcedBytes({ config, head }: Answer): number {
  if (config.method === "HEAD" || headerOf(head, "content-encoding") !== undefined) return 0;
  return Number(headerOf(head, "content-length") ?? 0);
}

function tooLarge(answer: Answer): GatewayError {
  return overLimit(answer, "the upstream's answer is larger", `${answer.config.settings.maxResponseBytes} bytes`);
}

function pieceTooLarge(answer: Answer, what: string): GatewayError {
  return overLimit(answer, `one ${what} of the upstream's answer is longer`, `${MAX_PIECE_LENGTH} characters`);
}

function overLimit({ config, effect }: Answer, what: string, limit: string): GatewayError {
  const { name } = config.tool;
  return new GatewayError("RESULT_TOO_LARGE", `${name}: ${what} than the limit of ${limit}`, {
    effect,
    metadata: { tool: name, limit },
  });
}

function parseAnswer(text: string, media: MediaType): ReturnType<typeof parseJson> {
  try {
    return parseJson(text);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new UnreadableAnswer(notJson(text, media), cause);
  }
}

function notJson(text: string, media: MediaType): string {
  const got = media.name === "" ? "an answer without a content type" : media.name;
  if (isWebPage(text, media)) {
    const title = pageTitle(text);
    const titled = title === "" ? "" : ` titled "${title}"`;
    return `expected JSON, got a web page (${got})${titled}; is a login or credential missing?`;
  }
  return isJson(media) ? `expected JSON, got broken JSON (${got})` : `expected JSON, got ${got}`;
}
