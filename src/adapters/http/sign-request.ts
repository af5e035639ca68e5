import { createHmac, randomUUID } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import type { SecretSource } from "../../core/secrets.ts";
import { headerBytes } from "../shared/header-rules.ts";
import { secretValue } from "../shared/secret-value.ts";
import type { TextTemplate } from "../shared/text-template.ts";
import type { HttpConfig, RequestSigning, SIGNED_NAMES } from "./http-config.ts";
import { type HttpRequest, sentTarget } from "./request.ts";

/** What a signature is made of besides the request. */
export interface SigningSources {
  readonly secrets: SecretSource;
  readonly clock: Clock;
}

/**
 * The request with its signature, or itself where the tool signs none. To be called for each request that goes out,
 * so that no two share a nonce.
 *
 * @throws GatewayError SECRET_MISSING.
 */
export function signRequest(config: HttpConfig, request: HttpRequest, sources: SigningSources): HttpRequest {
  const { signing, method, tool } = config;
  if (signing === undefined) return request;
  const key = secretValue(tool.name, signing.secretRef, sources.secrets);
  const timestamp = timestampText(sources.clock.now(), signing.timestampFormat);
  const nonce = randomUUID();
  const [path = "", ...query] = sentTarget(request).split("?");
  const values = new Map<string, string>([
    ["method", method],
    ["path", path],
    ["query", query.join("?")],
    ["body", typeof request.body === "string" ? request.body : ""],
    ["timestamp", timestamp],
    ["nonce", nonce],
    ["key_id", signing.keyId],
  ] satisfies readonly (readonly [(typeof SIGNED_NAMES)[number], string])[]);
  const mac = createHmac(signing.hash, key);
  for (const part of signing.content) {
    if (typeof part === "object" && part.param === "body" && typeof request.body === "object") {
      for (const piece of request.body.pieces()) mac.update(piece);
    } else mac.update(fill([part], values));
  }
  const signature = mac.digest(signing.encoding);
  const headers = [...request.headers];
  if (signing.timestampHeader !== undefined) headers.push(signing.timestampHeader, timestamp);
  if (signing.nonceHeader !== undefined) headers.push(signing.nonceHeader, nonce);
  headers.push(signing.headerName, headerBytes(fill(signing.prefix, values) + signature));
  return { ...request, headers, masked: [...request.masked, key, signature] };
}

function timestampText(now: number, format: RequestSigning["timestampFormat"]): string {
  switch (format) {
    case "unix":
      return String(Math.floor(now / 1_000));
    case "unix_ms":
      return String(Math.floor(now));
    case "iso8601":
      return new Date(now).toISOString();
  }
}

/** Its names were checked when the tool was declared. */
function fill(template: TextTemplate, values: ReadonlyMap<string, string>): string {
  return template.map((part) => (typeof part === "string" ? part : (values.get(part.param) ?? ""))).join("");
}
