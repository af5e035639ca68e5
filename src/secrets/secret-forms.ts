import type { Form } from "./form-matcher.ts";

/** A shorter secret is likely to be a part of ordinary words. */
const SHORT_CHARACTERS = 6;

/** A shorter piece of base64 or of hexadecimal digits is likely to stand in other data by chance. */
const MIN_ENCODED_CHARACTERS = 8;

/**
 * Every text under which a secret may show up: as it is, and in the encodings of URLs, forms, JSON, HTML, CSV, base64 and
 * hexadecimal digits. The case of ASCII letters is left to who looks for them.
 */
export function secretForms(secret: string): Form[] {
  const short = secret.length < SHORT_CHARACTERS;
  const texts = new Set([secret, ...urlForms(secret), ...jsonForms(secret), ...quotedForms(secret)]);
  if (!short) for (const text of [...caseForms(secret), ...base64Forms(secret), ...hexForms(secret)]) texts.add(text);
  return [...texts].map((text) => ({ text, wholeWord: short }));
}

function caseForms(secret: string): string[] {
  return /[\u0080-\uffff]/.test(secret) ? [secret.toUpperCase(), secret.toLowerCase()] : [];
}

function urlForms(secret: string): string[] {
  // A lone surrogate has no UTF-8 form, so nothing can carry it in a URL.
  if (/\p{Surrogate}/u.test(secret)) return [];
  const component = encodeURIComponent(secret);
  const strict = component.replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
  const form = new URLSearchParams({ k: secret }).toString().slice("k=".length);
  const forms = [strict.replaceAll("%20", "+"), form, form.replaceAll("+", "%20")];
  const twice = encodeURIComponent(component);
  return [encodeURI(secret), component, strict, ...forms, twice, everyByte(secret, "%")];
}

function jsonForms(secret: string): string[] {
  const escaped = JSON.stringify(secret).slice(1, -1);
  const ascii = escaped.replace(/[\u0080-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  // How JSON is written that may stand in HTML.
  const html = escaped.replace(/[<>&'+=]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const twice = JSON.stringify(escaped).slice(1, -1);
  return [escaped, ascii, html, twice].flatMap((text) => [text, text.replaceAll("/", "\\/")]);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** In HTML and in CSV, and as UTF-8 that is read as Latin-1, which is what its bytes are. */
function quotedForms(secret: string): string[] {
  return [
    secret.replace(/[&<>"']/g, (c) => ENTITIES[c] ?? c),
    secret.replaceAll('"', '""'),
    Buffer.from(secret, "utf8").toString("latin1"),
  ];
}

/**
 * Base64 of the secret alone, and of its part that is the same wherever it stands in longer data, such as the
 * `user:secret` of a Basic credential: three bytes make four characters, so there are three ways to be aligned.
 */
function base64Forms(secret: string): string[] {
  const bytes = Buffer.from(secret, "utf8");
  const whole = bytes.toString("base64");
  const cores = [0, 1, 2].map((skip) => {
    const groups = Math.floor((bytes.length - skip) / 3);
    return bytes.subarray(skip, skip + groups * 3).toString("base64");
  });
  return [whole, whole.replace(/=+$/, ""), ...cores]
    .filter((text) => text.length >= MIN_ENCODED_CHARACTERS)
    .flatMap((text) => [text, text.replaceAll("+", "-").replaceAll("/", "_")]);
}

function hexForms(secret: string): string[] {
  return ["", "\\x"].map((before) => everyByte(secret, before));
}

function everyByte(secret: string, before: string): string {
  return [...Buffer.from(secret, "utf8")].map((byte) => before + byte.toString(16).padStart(2, "0")).join("");
}
