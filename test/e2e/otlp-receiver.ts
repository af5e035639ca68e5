import { once } from "node:events";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** A span as it arrived. */
export interface SpanSeen {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: it has none. */
  readonly parentId: string;
  readonly kind: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** 2: error. */
  readonly status: number;
}

/** Takes OTLP over HTTP, on a free port of loopback. */
export interface OtlpReceiver extends AsyncDisposable {
  readonly endpoint: string;
  readonly spans: SpanSeen[];
  /** Names of metrics, in each message. */
  readonly metrics: string[][];
  /** When messages of metrics came, in milliseconds. */
  readonly times: number[];
  /** What it answers from now on. */
  status: number;
}

/** Starts one. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const receiver = { spans: [] as SpanSeen[], metrics: [] as string[][], times: [] as number[], status: 200 };
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      const bytes = request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body;
      if (request.url === "/v1/traces") receiver.spans.push(...spansIn(bytes));
      if (request.url === "/v1/metrics") {
        receiver.metrics.push(metricsIn(bytes));
        receiver.times.push(performance.now());
      }
      response.writeHead(receiver.status, { "content-type": "application/x-protobuf" }).end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  return Object.assign(receiver, {
    endpoint: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

type Fields = ReadonlyMap<number, readonly (Uint8Array | number)[]>;

/** Source: opentelemetry/proto/trace/v1/trace.proto. */
function spansIn(bytes: Uint8Array): readonly SpanSeen[] {
  return below(bytes, 1, 2, 2).map((span) => {
    const fields = fieldsOf(span);
    const [status] = messages(fields, 15).map(fieldsOf);
    return {
      name: text(fields, 5),
      traceId: hex(fields, 1),
      spanId: hex(fields, 2),
      parentId: hex(fields, 4),
      kind: number(fields, 6),
      attributes: Object.fromEntries(messages(fields, 9).map(attributeOf)),
      status: status === undefined ? 0 : number(status, 3),
    };
  });
}

/** Source: opentelemetry/proto/metrics/v1/metrics.proto. */
function metricsIn(bytes: Uint8Array): string[] {
  return below(bytes, 1, 2, 2).map((metric) => text(fieldsOf(metric), 1));
}

/** The messages that stand at a path of fields. */
function below(bytes: Uint8Array, ...path: readonly number[]): readonly Uint8Array[] {
  return path.reduce<readonly Uint8Array[]>((all, no) => all.flatMap((one) => messages(fieldsOf(one), no)), [bytes]);
}

function attributeOf(bytes: Uint8Array): readonly [string, string | number] {
  const fields = fieldsOf(bytes);
  const [value = new Map()] = messages(fields, 2).map(fieldsOf);
  return [text(fields, 1), value.has(1) ? text(value, 1) : number(value, 3)];
}

function fieldsOf(bytes: Uint8Array): Fields {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, (Uint8Array | number)[]>();
  while (reader.pos < reader.len) {
    const [no, type] = reader.tag();
    const values = fields.get(no) ?? [];
    if (type === WireType.LengthDelimited) values.push(reader.bytes());
    else if (type === WireType.Varint) values.push(Number(reader.int64()));
    else reader.skip(type, no);
    fields.set(no, values);
  }
  return fields;
}

function messages(fields: Fields, no: number): readonly Uint8Array[] {
  return (fields.get(no) ?? []).filter((value) => typeof value !== "number");
}

function text(fields: Fields, no: number): string {
  return Buffer.from(messages(fields, no)[0] ?? []).toString();
}

function hex(fields: Fields, no: number): string {
  return Buffer.from(messages(fields, no)[0] ?? []).toString("hex");
}

function number(fields: Fields, no: number): number {
  const [value] = fields.get(no) ?? [];
  return typeof value === "number" ? value : 0;
}
