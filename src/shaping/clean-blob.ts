import type { TextCleaner } from "./text-cleaner.ts";

/** Media types of text; others are looked through byte by byte. */
const TEXT = /^text\/|[/+](?:json|xml|yaml|x-yaml|javascript|x-www-form-urlencoded|csv|toml)\b/i;

/** The bytes with secrets in them masked: as text where they are some, else as the bytes that the secret has. */
export function cleanBlob(data: Uint8Array, mimeType: string, cleaner: TextCleaner): Uint8Array {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const text = TEXT.test(mimeType) ? utf8(bytes) : undefined;
  const whole = text ?? bytes.toString("latin1");
  if (cleaner.isClean(whole)) return data;
  return Buffer.from(cleaner.text(whole), text === undefined ? "latin1" : "utf8");
}

function utf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
