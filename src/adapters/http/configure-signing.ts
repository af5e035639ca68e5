import { isJsonObject, type JsonObject, ownValue } from "../../core/json.ts";
import { nearestWords } from "../../core/nearest.ts";
import { spacedPrefix } from "../shared/header-rules.ts";
import { textOf } from "../shared/template-checker.ts";
import { parseBraces, type TextTemplate } from "../shared/text-template.ts";
import { SIGNATURE_ENCODINGS, SIGNING_ALGORITHMS, TIMESTAMP_FORMATS } from "./config-schema.ts";
import type { DeclarationChecker } from "./declaration-checker.ts";
import { type RequestSigning, SIGNED_NAMES } from "./http-config.ts";

/** What a prefix may name: the rest is no text for a header. */
const PREFIX_NAMES = ["timestamp", "nonce", "key_id"] as const;

const HASHES = { "hmac-sha256": "sha256", "hmac-sha512": "sha512" } as const;

/** Compiles `signing`; its problems go to the checker. Claims the headers it sets. */
export function configureSigning(checker: DeclarationChecker): RequestSigning | undefined {
  const declared = ownValue(checker.keys, "signing");
  if (!isJsonObject(declared)) return undefined;
  const prefixText = spacedPrefix(keyText(declared, "prefix"));
  const content = template(checker, "content", keyText(declared, "content"), SIGNED_NAMES);
  const prefix = template(checker, "prefix", prefixText, PREFIX_NAMES);
  const keyId = keyText(declared, "key_id");
  const timestampHeader = optionalText(declared, "timestamp_header");
  const nonceHeader = optionalText(declared, "nonce_header");
  checker.claimHeader("/signing/header_name", keyText(declared, "header_name"), prefixText + keyId);
  if (timestampHeader !== undefined) checker.claimHeader("/signing/timestamp_header", timestampHeader, "");
  if (nonceHeader !== undefined) checker.claimHeader("/signing/nonce_header", nonceHeader, "");
  const algorithm = SIGNING_ALGORITHMS.find((name) => name === declared["algorithm"]) ?? "hmac-sha256";
  const signing: RequestSigning = {
    hash: HASHES[algorithm],
    secretRef: keyText(declared, "secret_ref"),
    headerName: keyText(declared, "header_name"),
    prefix,
    encoding: SIGNATURE_ENCODINGS.find((name) => name === declared["encoding"]) ?? "hex",
    content,
    timestampHeader,
    timestampFormat: TIMESTAMP_FORMATS.find((name) => name === declared["timestamp_format"]) ?? "unix",
    nonceHeader,
    keyId,
  };
  checkUse(checker, signing);
  return signing;
}

function keyText(declared: JsonObject, key: string): string {
  return textOf(ownValue(declared, key));
}

function optionalText(declared: JsonObject, key: string): string | undefined {
  const text = keyText(declared, key);
  return text === "" ? undefined : text;
}

function template(
  checker: DeclarationChecker,
  key: "content" | "prefix",
  text: string,
  allowed: readonly string[],
): TextTemplate {
  const parsed = parseBraces(text);
  if (!parsed.ok) {
    checker.issue(`/signing/${key}`, parsed.problem);
    return [];
  }
  for (const part of parsed.parts) {
    if (typeof part === "string" || allowed.includes(part.param)) continue;
    const [nearest] = nearestWords(part.param, allowed);
    const mend = nearest === undefined ? "" : `; did you mean \`{${nearest}}\`?`;
    const names = allowed.map((name) => `{${name}}`).join(", ");
    checker.issue(`/signing/${key}`, `\`{${part.param}}\` is nothing that ${key} can hold: ${names}${mend}`);
  }
  return parsed.parts;
}

/** What is signed must reach the upstream, and what is sent should be signed. */
function checkUse(checker: DeclarationChecker, signing: RequestSigning): void {
  const { content, prefix, keyId } = signing;
  if (!content.some((part) => typeof part === "object")) {
    const message = "signs nothing of the request; write what is signed, such as {method}{path}{body}";
    checker.issue("/signing/content", message);
  }
  checkSent(checker, signing, "timestamp", signing.timestampHeader);
  checkSent(checker, signing, "nonce", signing.nonceHeader);
  const usesKeyId = refersTo(content, "key_id") || refersTo(prefix, "key_id");
  if (usesKeyId && keyId === "") checker.issue("/signing", "`{key_id}` stands for `key_id`, which is not set");
  if (!usesKeyId && keyId !== "") {
    checker.issue("/signing/key_id", "has no effect: write `{key_id}` in `prefix` or `content`");
  }
}

function checkSent(
  checker: DeclarationChecker,
  { content, prefix }: RequestSigning,
  name: "timestamp" | "nonce",
  header: string | undefined,
): void {
  const isSigned = refersTo(content, name);
  const isSent = header !== undefined || refersTo(prefix, name);
  if (isSigned && !isSent) {
    const mend = `set \`${name}_header\` or write \`{${name}}\` in \`prefix\``;
    checker.issue("/signing/content", `\`{${name}}\` is signed and not sent, so nobody can check it; ${mend}`);
  }
  if (isSent && !isSigned) {
    checker.warn("/signing/content", `the ${name} is sent and not signed; write \`{${name}}\` in \`content\``);
  }
}

function refersTo(parts: TextTemplate, name: (typeof SIGNED_NAMES)[number]): boolean {
  return parts.some((part) => typeof part === "object" && part.param === name);
}
