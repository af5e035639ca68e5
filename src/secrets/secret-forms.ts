/** A text to mask. */
export interface SecretForm {
  readonly text: string;
  /** Masked only where it stands by itself: a short secret such as `1234` must not tear other words apart. */
  readonly wholeWord: boolean;
}

/** A shorter secret is likely to be a part of ordinary words. */
const SHORT_CHARACTERS = 6;

/** A shorter piece of base64 is likely to stand in other data by chance. */
const MIN_BASE64_CHARACTERS = 8;

/** Every text under which a secret may show up: as it is, in other case, and in the encodings of URLs, JSON and base64. */
export function secretForms(secret: string): SecretForm[] {
  const short = secret.length < SHORT_CHARACTERS;
  const texts = new Set([secret, ...urlForms(secret), ...jsonForms(secret)]);
  if (!short) for (const text of [secret.toUpperCase(), secret.toLowerCase(), ...base64Forms(secret)]) texts.add(text);
  return [...texts].map((text) => ({ text, wholeWord: short }));
}

function urlForms(secret: string): string[] {
  // A lone surrogate has no UTF-8 form, so nothing can carry it in a URL.
  if (/\p{Surrogate}/u.test(secret)) return [];
  const component = encodeURIComponent(secret);
  const strict = component.replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  const form = strict.replaceAll("%20", "+");
  return [component, strict, form].flatMap((text) => [text, text.replace(/%[0-9A-F]{2}/g, (c) => c.toLowerCase())]);
}

function jsonForms(secret: string): string[] {
  const escaped = JSON.stringify(secret).slice(1, -1);
  const ascii = escaped.replace(/[\u0080-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const twice = JSON.stringify(escaped).slice(1, -1);
  return [escaped, ascii, twice].flatMap((text) => [text, text.replaceAll("/", "\\/")]);
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
    .filter((text) => text.length >= MIN_BASE64_CHARACTERS)
    .flatMap((text) => [text, text.replaceAll("+", "-").replaceAll("/", "_")]);
}
