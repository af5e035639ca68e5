import type { UpstreamExchange } from "../core/call.ts";
import type { Redactor } from "../core/secrets.ts";
import { wellFormed } from "../core/text.ts";

/** The exchange with secrets masked in its address, header values and body. */
export function redactExchange(exchange: UpstreamExchange, redactor: Redactor): UpstreamExchange {
  const clean = (text: string): string => redactor.text(wellFormed(text));
  const headers = (pairs: UpstreamExchange["requestHeaders"]): UpstreamExchange["requestHeaders"] =>
    pairs.map(([name, value]) => [clean(name), clean(value)]);
  return {
    ...exchange,
    url: clean(exchange.url),
    requestHeaders: headers(exchange.requestHeaders),
    requestBody: clean(exchange.requestBody),
    responseHeaders: headers(exchange.responseHeaders),
  };
}
