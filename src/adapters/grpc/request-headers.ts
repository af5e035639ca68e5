import type { OutgoingHttpHeaders } from "node:http2";
import type { CallContext, UpstreamExchange } from "../../core/call.ts";
import type { Clock } from "../../core/clock.ts";
import { type JsonObject, stringifyJson } from "../../core/json.ts";
import type { SecretSource } from "../../core/secrets.ts";
import { VERSION } from "../../core/version.ts";
import { headerBytes, holdsControl } from "../shared/header-rules.ts";
import { secretValue, unusableSecret } from "../shared/secret-value.ts";
import { filledValue } from "../shared/value-template.ts";
import type { Exchange } from "./exchange.ts";
import type { GrpcConfig } from "./grpc-config.ts";
import type { Fields } from "./status.ts";

const MASK = "***";

/** Most characters of a request that are shown. */
const MAX_BODY = 8_192;

/** Source: https://www.w3.org/TR/trace-context/#traceparent-header. */
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Units of `grpc-timeout`, finest first, in milliseconds. Its number has at most 8 digits. */
const UNITS = [
  ["m", 1],
  ["S", 1_000],
  ["M", 60_000],
  ["H", 3_600_000],
] as const;

/** What is left of a call as `grpc-timeout` has it, never more. Source: gRPC over HTTP/2, "Timeout". */
function timeoutText(leftMs: number): string {
  for (const [unit, unitMs] of UNITS) {
    const count = Math.max(1, Math.floor(leftMs / unitMs));
    if (count < 1e8) return `${count}${unit}`;
  }
  return "99999999H";
}

/** The declared metadata with their secrets as they are now. @throws GatewayError SECRET_MISSING. */
export function metadataOf({ tool, metadata }: GrpcConfig, secrets: SecretSource): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const { name, value } of metadata) {
    const text = filledValue(value, (reference) => {
      const secret = secretValue(tool.name, reference, secrets);
      if (!holdsControl(secret)) return secret;
      throw unusableSecret(
        tool.name,
        reference,
        "holds a line break or control character, which no metadata can carry",
      );
    });
    headers[name.toLowerCase()] = headerBytes(text);
  }
  return headers;
}

/** What a request takes over from its call. */
export type CallFacts = Pick<CallContext, "deadlineMs" | "traceparent" | "tracestate" | "baggage">;

/** Headers of a request that goes out now, besides its metadata. Source: gRPC over HTTP/2, "Requests". */
export function requestHeaders(config: GrpcConfig, path: string, facts: CallFacts, clock: Clock): OutgoingHttpHeaders {
  const { traceparent, tracestate, baggage, deadlineMs } = facts;
  const traced = traceparent !== undefined && TRACEPARENT.test(traceparent);
  return {
    ":method": "POST",
    ":path": path,
    ":authority": new URL(config.target.origin).host,
    te: "trailers",
    "content-type": "application/grpc",
    "grpc-timeout": timeoutText(deadlineMs - clock.now()),
    "grpc-accept-encoding": "identity",
    "user-agent": `toolgate/${VERSION}`,
    ...(traced ? { traceparent } : {}),
    ...(traced && tracestate !== undefined ? { tracestate } : {}),
    ...(baggage === undefined ? {} : { baggage }),
  };
}

/** What was sent and got, for people: values of metadata that hold a secret are masked. */
export function reportExchange(
  config: GrpcConfig,
  { headers, request, exchange }: { headers: OutgoingHttpHeaders; request: JsonObject; exchange: Exchange | undefined },
): UpstreamExchange {
  const secret = new Set(
    config.metadata.filter(({ value }) => value.some(isReference)).map(({ name }) => name.toLowerCase()),
  );
  const { service, method } = config.method;
  const text = stringifyJson(request);
  return {
    method: "POST",
    url: `${config.target.address}/${service}/${method}`,
    requestHeaders: Object.entries(headers).map(([name, value]) => [name, secret.has(name) ? MASK : String(value)]),
    requestBody: text.length <= MAX_BODY ? text : text.slice(0, MAX_BODY).toWellFormed(),
    status: exchange === undefined ? undefined : exchange.facts.code,
    responseHeaders: shownFields(exchange?.head ?? {}),
    firstByteMs: exchange?.facts.firstByteMs,
  };
}

function isReference(part: GrpcConfig["metadata"][number]["value"][number]): boolean {
  return typeof part !== "string";
}

function shownFields(fields: Fields): [string, string][] {
  return Object.entries(fields).flatMap(([name, value]): [string, string][] => {
    if (value === undefined || name === "set-cookie") return [];
    return [[name, String(value)]];
  });
}
