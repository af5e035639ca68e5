import type { UpstreamExchange } from "../../core/call.ts";
import { isCredentialHeader, maskPairs, maskUrl } from "./credential-names.ts";
import type { AnswerHead } from "./exchange.ts";
import type { HttpConfig } from "./http-config.ts";
import { type HttpRequest, sentTarget } from "./request.ts";

const MASK = "***";

/** Most characters of a request body that are shown. */
const MAX_BODY = 8_192;

/** What was sent and got, for people, with secrets masked. `head`: absent where there was no answer. */
export function reportExchange(config: HttpConfig, request: HttpRequest, head?: AnswerHead): UpstreamExchange {
  const mask = maskOf(request.masked);
  const requestHeaders: [string, string][] = [];
  for (let i = 0; i < request.headers.length; i += 2) {
    const name = (request.headers[i] ?? "").toLowerCase();
    requestHeaders.push([name, mask(shownHeader(config, name, request.headers[i + 1] ?? ""))]);
  }
  return {
    method: config.method,
    url: mask(maskUrl(config.endpoint.origin + sentTarget(request))),
    requestHeaders,
    requestBody: firstCharacters(mask(shownBody(config, request))),
    status: head?.status,
    responseHeaders: Object.entries(head?.headers ?? {}).flatMap(([name, values]) =>
      [values ?? []].flat().map((value): [string, string] => [name, isCredentialHeader(name) ? MASK : mask(value)]),
    ),
    firstByteMs: head?.firstByteMs,
  };
}

function shownBody({ body: declared }: HttpConfig, { body = "" }: HttpRequest): string {
  if (typeof body !== "string") return body.shown;
  return declared?.kind === "form" ? maskPairs(body) : body;
}

function shownHeader(config: HttpConfig, name: string, value: string): string {
  const { auth } = config;
  if (auth?.place === "header" && name === auth.headerName.toLowerCase()) return auth.prefix + MASK;
  return isCredentialHeader(name) ? MASK : Buffer.from(value, "latin1").toString("utf8");
}

/** Masks secrets wherever they show up; a short one would tear other words apart, and is left to the redactor. */
function maskOf(secrets: readonly string[]): (text: string) => string {
  const forms = secrets
    .filter((secret) => secret.length >= 6)
    .flatMap((secret) => [secret, encodeURIComponent(secret.replace(/\p{Surrogate}/gu, "\ufffd"))]);
  return (text) => forms.reduce((masked, form) => masked.replaceAll(form, () => MASK), text);
}

function firstCharacters(text: string): string {
  if (text.length <= MAX_BODY) return text;
  const cut = text.charCodeAt(MAX_BODY - 1);
  return text.slice(0, cut >= 0xd800 && cut <= 0xdbff ? MAX_BODY - 1 : MAX_BODY);
}
