import { randomBytes } from "node:crypto";
import { isJsonArray, type JsonObject, stringifyJson } from "../../core/json.ts";
import { headIndex } from "../../core/text.ts";
import { type BodyTemplate, fillBody } from "../shared/body-template.ts";
import { holdsControl } from "../shared/header-rules.ts";
import { argumentOf, fillText, namesIn, scalarText, type TextTemplate, ValueRefused } from "../shared/text-template.ts";
import { base64Length, base64Pieces, isBase64 } from "./base64.ts";
import { isMediaType } from "./media-type.ts";
import type { StreamedBody } from "./streamed-body.ts";

/** One part of a multipart form. */
export type MultipartPart = {
  /** As declared. */
  readonly name: string;
} & (
  | { readonly kind: "text"; readonly text: TextTemplate; readonly contentType: string | undefined }
  | { readonly kind: "json"; readonly template: BodyTemplate; readonly contentType: string }
  | {
      readonly kind: "file";
      /** Parameter that holds its bytes as base64. */
      readonly param: string;
      readonly filename: TextTemplate | undefined;
      readonly contentType: TextTemplate | undefined;
      /** Infinite where the declaration sets no limit. */
      readonly maxBytes: number;
    }
);

/** Most characters of a file's name. */
const MAX_FILENAME_LENGTH = 200;

const BINARY_TYPE = "application/octet-stream";

/** Text, or base64 that stands for bytes. */
type Piece = { readonly text: string } | { readonly base64: string };

/**
 * Fills a multipart form. A part whose argument is absent is left out. Source: RFC 7578.
 *
 * @param keepsNull parameters whose schema allows null; for others null means absent.
 * @throws ValueRefused for an argument that cannot stand where it belongs.
 */
export function fillMultipart(
  parts: readonly MultipartPart[],
  args: JsonObject,
  keepsNull: ReadonlySet<string>,
): StreamedBody {
  // Nobody can put it into an argument, since nobody knows it before.
  const boundary = `toolgate-${randomBytes(18).toString("hex")}`;
  const filled = parts.flatMap((part) => fillPart(part, args, keepsNull));
  const pieces: Piece[] = filled.flatMap(({ headers, content }) => [
    { text: `--${boundary}\r\n${headers}\r\n\r\n` },
    content,
    { text: "\r\n" },
  ]);
  pieces.push({ text: `--${boundary}--\r\n` });
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    length: pieces.reduce((sum, piece) => sum + byteLength(piece), 0),
    pieces: () => bytesOf(pieces),
    get shown() {
      return pieces.map(shown).join("");
    },
  };
}

interface FilledPart {
  /** Without the line break after them. */
  readonly headers: string;
  readonly content: Piece;
}

function fillPart(part: MultipartPart, args: JsonObject, keepsNull: ReadonlySet<string>): FilledPart[] {
  switch (part.kind) {
    case "text":
      return textsOf(part.text, args).map((text) => ({
        headers: headersOf(part.name, part.contentType),
        content: { text },
      }));
    case "json": {
      const value = fillBody(part.template, args, keepsNull);
      if (value === undefined) return [];
      return [{ headers: headersOf(part.name, part.contentType), content: { text: stringifyJson(value) } }];
    }
    case "file":
      return fillFile(part, args);
  }
}

/** A list alone makes a part of each of its entries. */
function textsOf(template: TextTemplate, args: JsonObject): string[] {
  const [only] = template;
  const value = template.length === 1 && typeof only === "object" ? argumentOf(only, args) : undefined;
  if (typeof only === "object" && isJsonArray(value)) {
    return value.map((item) => scalarText(only.param, item, "an entry of a list in the form"));
  }
  const text = fillText(template, args, "a part of the form");
  return text === undefined ? [] : [text];
}

function fillFile(part: MultipartPart & { readonly kind: "file" }, args: JsonObject): FilledPart[] {
  const { param, maxBytes } = part;
  const value = argumentOf({ param }, args);
  if (value === undefined) return [];
  if (typeof value !== "string" || !isBase64(value)) {
    throw new ValueRefused(
      param,
      "is no base64: the file's bytes in the standard alphabet, padded, without line breaks",
    );
  }
  const bytes = base64Length(value);
  if (bytes > maxBytes) throw new ValueRefused(param, `is a file of ${bytes} bytes, and at most ${maxBytes} are sent`);
  return [
    {
      headers: headersOf(part.name, fileType(part.contentType, args), filenameOf(part, args)),
      content: { base64: value },
    },
  ];
}

function fileType(template: TextTemplate | undefined, args: JsonObject): string {
  const type = template === undefined ? undefined : fillText(template, args, "a content type");
  if (template === undefined || type === undefined) return BINARY_TYPE;
  if (isMediaType(type)) return type;
  throw new ValueRefused(namesIn(template)[0] ?? "", "is no content type, such as image/png");
}

/** The last step of a path alone, so that no upstream that takes it for one is led elsewhere. */
function filenameOf({ name, filename }: MultipartPart & { readonly kind: "file" }, args: JsonObject): string {
  const given = filename === undefined ? undefined : fillText(filename, args, "a file name");
  if (filename === undefined || given === undefined) return name;
  if (holdsControl(given) || given.includes("\t")) {
    throw new ValueRefused(
      namesIn(filename)[0] ?? "",
      "holds a line break or control character, which no file name has",
    );
  }
  const last = given.toWellFormed().split(/[/\\]/).at(-1) ?? "";
  const short = last.slice(0, headIndex(last, MAX_FILENAME_LENGTH));
  return /^\.{0,2}$/.test(short) ? name : short;
}

function headersOf(name: string, contentType: string | undefined, filename?: string): string {
  const file = filename === undefined ? "" : `; filename="${quoted(filename)}"`;
  const disposition = `content-disposition: form-data; name="${quoted(name)}"${file}`;
  return contentType === undefined ? disposition : `${disposition}\r\ncontent-type: ${contentType}`;
}

/** As browsers write it. Source: https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data. */
function quoted(text: string): string {
  return text.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function byteLength(piece: Piece): number {
  return "text" in piece ? Buffer.byteLength(piece.text) : base64Length(piece.base64);
}

function* bytesOf(pieces: readonly Piece[]): Generator<Buffer, void, undefined> {
  for (const piece of pieces) {
    if ("base64" in piece) yield* base64Pieces(piece.base64);
    else yield Buffer.from(piece.text);
  }
}

function shown(piece: Piece): string {
  return "text" in piece ? piece.text : `(${base64Length(piece.base64)} bytes)`;
}
