/** W3C trace context, as a call carries it. Source: https://www.w3.org/TR/trace-context/. */
export interface TraceContext {
  /** `00-…`, well formed. Absent: the caller has none. */
  readonly traceparent: string | undefined;
  /** Absent where there is no `traceparent`. */
  readonly tracestate?: string;
  /** Source: https://www.w3.org/TR/baggage/. */
  readonly baggage?: string;
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/;

/** The headers of a call as it passes them on. What is malformed or longer than its standard asks for is left out. */
export function readTraceContext(header: (name: string) => string | null): TraceContext {
  const parent = header("traceparent") ?? "";
  const traceparent = parent.length <= 128 && TRACEPARENT.test(parent) ? parent : undefined;
  const tracestate = traceparent === undefined ? undefined : visible(header("tracestate"), 512);
  const baggage = visible(header("baggage"), 8_192);
  return {
    traceparent,
    ...(tracestate === undefined ? {} : { tracestate }),
    ...(baggage === undefined ? {} : { baggage }),
  };
}

/** The parts of a well-formed `traceparent`. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  /** Bit 1: sampled. */
  readonly flags: number;
}

/** Takes a `traceparent` apart; `undefined` where it is none, or all zeros, which means none. */
export function parseTraceparent(text: string | undefined): TraceParent | undefined {
  const parts = text === undefined ? null : TRACEPARENT.exec(text);
  const [, traceId = "", spanId = "", flags = ""] = parts ?? [];
  if (parts === null || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

/** Writes one. */
export function formatTraceparent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-${(flags & 1).toString(16).padStart(2, "0")}`;
}

function visible(text: string | null, maxLength: number): string | undefined {
  return text !== null && text.length > 0 && text.length <= maxLength && /^[\x20-\x7e]+$/.test(text) ? text : undefined;
}
