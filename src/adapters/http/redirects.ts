import { type AnswerHead, headerOf } from "./exchange.ts";
import type { HttpConfig } from "./http-config.ts";

/** Most redirects one call follows. */
const MAX_REDIRECTS = 5;

/** Statuses that send a request elsewhere. Source: RFC 9110, section 15.4. */
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Where an answer sends the request: to a path and query of the same origin, or where it does not go. */
export type Redirect =
  | { readonly target: string; readonly refused?: undefined }
  /** `refused` goes on after "the upstream". */
  | { readonly refused: string; readonly target?: undefined };

/**
 * What to do about an answer that redirects; `undefined` for any other. Only to the same origin, so that credentials
 * never reach another, and only with a call that changes nothing, so that nothing is done twice.
 */
export function redirectOf(
  config: HttpConfig,
  head: AnswerHead,
  /** Path and query that were asked for. */
  from: string,
  followed: number,
): Redirect | undefined {
  const location = headerOf(head, "location");
  if (location === undefined || !REDIRECTS.has(head.status)) return undefined;
  const { origin } = config.endpoint;
  const to = URL.canParse(location, origin + from) ? new URL(location, origin + from) : undefined;
  const problem = redirectProblem(config, to, followed);
  if (to !== undefined && problem === undefined) return { target: to.pathname + to.search };
  return {
    refused: `redirects to ${shownPlace(to, origin)} (HTTP ${head.status}), and ${problem ?? "redirects are not followed"}`,
  };
}

function redirectProblem(config: HttpConfig, to: URL | undefined, followed: number): string | undefined {
  if (config.redirects === "none") return "redirects are not followed";
  if (to?.origin !== config.endpoint.origin) return "redirects to another origin are not followed";
  if (!config.readOnly || (config.method !== "GET" && config.method !== "HEAD")) {
    return `a ${config.method} that may change something is not sent again`;
  }
  return followed < MAX_REDIRECTS ? undefined : `no more than ${MAX_REDIRECTS} redirects are followed`;
}

/** For models, which are not told hosts; nor the query, which may hold a secret. Who wants to know more has the call explained. */
function shownPlace(url: URL | undefined, origin: string): string {
  if (url === undefined) return "an address that is no URL";
  if (url.origin === origin) return url.pathname.length > 200 ? `${url.pathname.slice(0, 200)}…` : url.pathname;
  return url.origin === "null" ? `a ${url.protocol} address` : "another host";
}
