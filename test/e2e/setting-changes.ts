import { createHmac } from "node:crypto";
import { expect } from "vitest";
import { TruncationMode } from "../../gen/toolgate/v1/call_pb.ts";
import { Delivery } from "../../gen/toolgate/v1/tool_pb.ts";

/** Keys of a declaration, or what a caller sees of a tool, by name. */
export type Settings = Readonly<Record<string, unknown>>;

/** A key of a declaration with two values, and what a caller sees once the second is in force and not before. */
export interface Change {
  readonly key: string;
  readonly before: Settings;
  readonly after: Settings;
  readonly seen: Settings;
}

const ID = { name: "id", type: "string", default: "7" };
const ENVELOPE = { success_field: "code", success_value: 0 };
const TAGS = { params: [{ name: "tags", type: "array", default: ["a", "b"] }], query: { t: "{tags}" } };
/** Has the shape of a credential. */
const AWS_KEY = `AKIA${"ABCD".repeat(4)}`;
const SIGNING = { algorithm: "hmac-sha256", secret_ref: "OLD_TOKEN", header_name: "X-Sign", content: "{path}" };

/** The environment of the gateway. */
export const TOKENS = { OLD_TOKEN: "old-token-0123456789", NEW_TOKEN: "new-token-0123456789" };

function signature(text: string, key = TOKENS.OLD_TOKEN, hash = "sha256", encoding: "hex" | "base64" = "hex"): string {
  return createHmac(hash, key).update(text).digest(encoding);
}

/** A change of one key under `signing`, and the headers by which it shows. */
function signing(key: string, change: Settings, headers: Settings, before: Settings = {}): Change {
  return {
    key: `signing.${key}`,
    before: { signing: { ...SIGNING, ...before } },
    after: { signing: { ...SIGNING, ...before, ...change } },
    seen: { headers },
  };
}

/** Every key in force. `UP` and `MUTE` in an endpoint stand for the upstream and for one that takes connections and says nothing. */
export const CHANGES: readonly Change[] = [
  { key: "title", before: { title: "old" }, after: { title: "new" }, seen: { title: "new" } },
  {
    key: "description",
    before: { description: "修改前的描述 the description before" },
    after: { description: "修改后的描述 the description after" },
    seen: { description: "修改后的描述 the description after" },
  },
  { key: "toolset", before: { toolset: "old" }, after: { toolset: ["new"] }, seen: { toolsets: ["new"] } },
  { key: "enabled", before: { enabled: true }, after: { enabled: false }, seen: { reason: "TOOL_DISABLED" } },
  { key: "labels", before: { labels: { a: "1" } }, after: { labels: { a: "2" } }, seen: { labels: { a: "2" } } },
  ...["read_only", "destructive", "idempotent", "open_world"].map((hint) => ({
    key: `hints.${hint}`,
    before: { hints: { [hint]: true } },
    after: { hints: { [hint]: false } },
    seen: { hints: { [hint.replace(/_(.)/, (_, letter: string) => letter.toUpperCase())]: false } },
  })),
  {
    key: "egress.allow",
    before: { egress: { allow: ["127.0.0.0/8"] } },
    after: { egress: { allow: ["api.example.com"] } },
    seen: { reason: "UPSTREAM_UNREACHABLE" },
  },
  {
    key: "egress.deny",
    before: { egress: { deny: ["api.example.com"] } },
    after: { egress: { deny: ["127.0.0.1"] } },
    seen: { reason: "UPSTREAM_UNREACHABLE" },
  },
  {
    key: "idempotency_field",
    before: { method: "POST", idempotency_field: "old_id" },
    after: { method: "POST", idempotency_field: "new_id" },
    seen: { body: expect.stringMatching(/^\{"new_id":"[0-9a-f-]{36}"\}$/) },
  },
  {
    key: "delivery",
    before: { delivery: "conclusive" },
    after: { delivery: "incremental" },
    seen: { delivery: Delivery.INCREMENTAL },
  },
  {
    key: "params",
    before: { params: [ID] },
    after: { params: [{ ...ID, default: "8" }] },
    seen: { target: "/echo/params?id=8" },
  },
  {
    key: "input_schema",
    before: { input_schema: { properties: { id: { type: "string", default: "7" } } } },
    after: { input_schema: { properties: { id: { type: "string", default: "8" } } } },
    seen: { target: "/echo/input_schema?id=8" },
  },
  {
    key: "output_schema",
    before: { output_schema: { type: "object" } },
    after: { output_schema: { type: "array" } },
    seen: { outputSchema: '{"type":"array"}' },
  },
  {
    key: "endpoint",
    before: { endpoint: "http://UP/echo/endpoint/old" },
    after: { endpoint: "http://UP/echo/endpoint/new" },
    seen: { target: "/echo/endpoint/new" },
  },
  { key: "method", before: { method: "POST" }, after: { method: "PUT" }, seen: { method: "PUT" } },
  { key: "query", before: { query: { q: "1" } }, after: { query: { q: "2" } }, seen: { target: "/echo/query?q=2" } },
  {
    key: "headers",
    before: { headers: { "X-Part": "old" } },
    after: { headers: { "X-Part": "new" } },
    seen: { headers: { "x-part": "new" } },
  },
  ...["body", "request_body"].map((key) => ({
    key,
    before: { method: "POST", params: [ID], [key]: { id: "$id" } },
    after: { method: "POST", params: [ID], [key]: { order: "$id" } },
    seen: { body: '{"order":"7"}' },
  })),
  {
    key: "auth.header_name",
    before: { auth: { header_name: "X-Old", secret_ref: "OLD_TOKEN" } },
    after: { auth: { header_name: "X-New", secret_ref: "OLD_TOKEN" } },
    seen: { headers: { "x-new": "old-token-0123456789" } },
  },
  {
    key: "auth.query_name",
    before: { auth: { query_name: "old", secret_ref: "OLD_TOKEN" } },
    after: { auth: { query_name: "new", secret_ref: "OLD_TOKEN" } },
    seen: { target: "/echo/auth.query_name?new=old-token-0123456789" },
  },
  {
    key: "auth.secret_ref",
    before: { auth: { header_name: "X-Key", secret_ref: "OLD_TOKEN" } },
    after: { auth: { header_name: "X-Key", secret_ref: "NEW_TOKEN" } },
    seen: { headers: { "x-key": "new-token-0123456789" } },
  },
  {
    key: "auth.by_role",
    before: { auth: { header_name: "X-Key", secret_ref: "OLD_TOKEN", by_role: { others: "NEW_TOKEN" } } },
    after: { auth: { header_name: "X-Key", secret_ref: "OLD_TOKEN", by_role: { operator: "NEW_TOKEN" } } },
    seen: { headers: { "x-key": "new-token-0123456789" } },
  },
  {
    key: "auth.prefix",
    before: { auth: { header_name: "X-Key", secret_ref: "OLD_TOKEN", prefix: "Old" } },
    after: { auth: { header_name: "X-Key", secret_ref: "OLD_TOKEN", prefix: "New" } },
    seen: { headers: { "x-key": "New old-token-0123456789" } },
  },
  {
    key: "query_style",
    before: { ...TAGS, query_style: "repeat" },
    after: { ...TAGS, query_style: "comma" },
    seen: { target: "/echo/query_style?t=a,b" },
  },
  {
    key: "content_type",
    before: { method: "POST", body: "a", content_type: "text/plain" },
    after: { method: "POST", body: "a", content_type: "text/csv" },
    seen: { headers: { "content-type": expect.stringMatching(/^text\/csv\b/) } },
  },
  {
    key: "deadline_header",
    before: { deadline_header: "none" },
    after: { deadline_header: "x-time-left" },
    seen: { headers: { "x-time-left": expect.stringMatching(/^[1-9]\d{0,4}$/) } },
  },
  {
    key: "form",
    before: { method: "POST", form: { a: "1" } },
    after: { method: "POST", form: { a: "2" } },
    seen: { body: "a=2" },
  },
  {
    key: "multipart",
    before: { method: "POST", multipart: { a: "1" } },
    after: { method: "POST", multipart: { a: "2" } },
    seen: { body: expect.stringContaining('name="a"\r\n\r\n2\r\n') },
  },
  signing(
    "algorithm",
    { algorithm: "hmac-sha512" },
    { "x-sign": signature("/echo/signing.algorithm", TOKENS.OLD_TOKEN, "sha512") },
  ),
  signing(
    "secret_ref",
    { secret_ref: "NEW_TOKEN" },
    { "x-sign": signature("/echo/signing.secret_ref", TOKENS.NEW_TOKEN) },
  ),
  signing("header_name", { header_name: "X-New" }, { "x-new": signature("/echo/signing.header_name") }),
  signing("content", { content: "{method}" }, { "x-sign": signature("GET") }),
  signing(
    "encoding",
    { encoding: "base64" },
    { "x-sign": signature("/echo/signing.encoding", TOKENS.OLD_TOKEN, "sha256", "base64") },
  ),
  signing("prefix", { prefix: "New" }, { "x-sign": expect.stringMatching(/^New /) }, { prefix: "Old" }),
  signing(
    "key_id",
    { key_id: "new" },
    { "x-sign": expect.stringMatching(/^new:/) },
    { key_id: "old", prefix: "{key_id}:" },
  ),
  signing(
    "timestamp_header",
    { timestamp_header: "X-New" },
    { "x-new": expect.stringMatching(/^\d+$/) },
    { content: "{timestamp}", timestamp_header: "X-Old" },
  ),
  signing(
    "timestamp_format",
    { timestamp_format: "iso8601" },
    { "x-time": expect.stringMatching(/^\d{4}-.*Z$/) },
    { content: "{timestamp}", timestamp_header: "X-Time" },
  ),
  signing(
    "nonce_header",
    { nonce_header: "X-New" },
    { "x-new": expect.stringMatching(/^[0-9a-f-]{36}$/) },
    { content: "{nonce}", nonce_header: "X-Old" },
  ),
  {
    key: "redirects",
    before: { endpoint: "http://UP/moved/redirects", redirects: "same_origin" },
    after: { endpoint: "http://UP/moved/redirects", redirects: "none" },
    seen: { failure: "UPSTREAM_STATUS" },
  },
  {
    key: "result.format",
    before: { result: { format: "json" } },
    after: { result: { format: "text" } },
    seen: { text: expect.stringMatching(/^\{"code":0,/) },
  },
  {
    key: "result.success_field",
    before: { result: ENVELOPE },
    after: { result: { ...ENVELOPE, success_field: "data.flag" } },
    seen: { failure: "TOOL_FAILED" },
  },
  {
    key: "result.success_value",
    before: { result: ENVELOPE },
    after: { result: { ...ENVELOPE, success_value: 1 } },
    seen: { failure: "TOOL_FAILED" },
  },
  {
    key: "result.data_field",
    before: { result: { data_field: "data.text" } },
    after: { result: { data_field: "data.flag" } },
    seen: { value: 1 },
  },
  {
    key: "result.max_length",
    before: { result: { data_field: "data.text", max_length: 90 } },
    after: { result: { data_field: "data.text", max_length: 60 } },
    seen: { text: expect.stringMatching(/^.{1,60}$/s) },
  },
  {
    key: "result.loose",
    before: { result: { ...ENVELOPE, success_value: "0", loose: true } },
    after: { result: { ...ENVELOPE, success_value: "0", loose: false } },
    seen: { failure: "TOOL_FAILED" },
  },
  {
    key: "result.error_field",
    before: { result: { error_field: "data.none" } },
    after: { result: { error_field: "data.flag" } },
    seen: { failure: "TOOL_FAILED" },
  },
  {
    key: "result.fields.keep",
    before: { result: { data_field: "data", fields: { keep: ["text"] } } },
    after: { result: { data_field: "data", fields: { keep: ["flag"] } } },
    seen: { value: { flag: 1 } },
  },
  {
    key: "result.fields.drop",
    before: { result: { data_field: "data", fields: { drop: ["flag"] } } },
    after: { result: { data_field: "data", fields: { drop: ["text"] } } },
    seen: { value: { flag: 1 } },
  },
  {
    key: "result.fields.rename",
    before: { result: { data_field: "data", fields: { keep: ["flag"], rename: { flag: "old" } } } },
    after: { result: { data_field: "data", fields: { keep: ["flag"], rename: { flag: "new" } } } },
    seen: { value: { new: 1 } },
  },
  {
    key: "result.select",
    before: { result: { select: "data.flag" } },
    after: { result: { select: "data.{it: flag}" } },
    seen: { value: { it: 1 } },
  },
  {
    key: "result.template",
    before: { result: { data_field: "data", template: "flag {flag}" } },
    after: { result: { data_field: "data", template: "it is {flag}" } },
    seen: { text: "it is 1" },
  },
  {
    key: "result.max_tokens",
    before: { result: { data_field: "data.text", max_tokens: 30 } },
    after: { result: { data_field: "data.text", max_tokens: 20 } },
    seen: { text: expect.stringMatching(/^.{1,60}$/s) },
  },
  {
    key: "result.redact.tokens",
    before: { result: { data_field: "data", template: AWS_KEY, redact: { tokens: true } } },
    after: { result: { data_field: "data", template: AWS_KEY, redact: { tokens: false } } },
    seen: { text: AWS_KEY },
  },
  {
    key: "result.redact.fields",
    before: { result: { data_field: "data", fields: { keep: ["flag"] }, redact: { fields: ["text"] } } },
    after: { result: { data_field: "data", fields: { keep: ["flag"] }, redact: { fields: ["data.flag"] } } },
    seen: { value: { flag: "***" } },
  },
  {
    key: "result.redact.patterns",
    before: { result: { data_field: "data", template: "flag {flag}", redact: { patterns: ["\\d+"] } } },
    after: { result: { data_field: "data", template: "flag {flag}", redact: { patterns: ["[a-z]+"] } } },
    seen: { text: "*** 1" },
  },
  {
    key: "result.early_stop.match",
    before: { delivery: "incremental", result: { format: "text", early_stop: { match: "data" } } },
    after: { delivery: "incremental", result: { format: "text", early_stop: { match: '"m[a-z]+' } } },
    seen: { text: '{"code":0,"message' },
  },
  {
    key: "result.early_stop.max_length",
    before: { delivery: "incremental", result: { format: "text", early_stop: { max_length: 10 } } },
    after: { delivery: "incremental", result: { format: "text", early_stop: { max_length: 7 } } },
    seen: { text: '{"code"' },
  },
  {
    key: "result.early_stop.max_tokens",
    before: { delivery: "incremental", result: { format: "text", early_stop: { max_tokens: 4 } } },
    after: { delivery: "incremental", result: { format: "text", early_stop: { max_tokens: 3 } } },
    seen: { text: '{"code":0' },
  },
  {
    key: "result.hidden_characters",
    before: { result: { data_field: "data", template: "a\u202eb", hidden_characters: "keep" } },
    after: { result: { data_field: "data", template: "a\u202eb", hidden_characters: "show" } },
    seen: { text: "a<U+202E>b" },
  },
  {
    key: "result.trust",
    before: { result: { data_field: "data", template: "flag {flag}", trust: "full" } },
    after: { result: { data_field: "data", template: "flag {flag}", trust: "wrapped" } },
    seen: { text: expect.stringMatching(/^\[data from result\.trust, .*\nflag 1\n\[end of data [0-9a-f]{18}\]$/s) },
  },
  {
    key: "result.truncation",
    before: { result: { data_field: "data.text", max_length: 60, truncation: "head" } },
    after: { result: { data_field: "data.text", max_length: 60, truncation: "tail" } },
    seen: { truncation: TruncationMode.TAIL },
  },
  {
    key: "timeout.connect",
    before: { endpoint: "https://MUTE/", timeout: { connect: "300ms" } },
    after: { endpoint: "https://MUTE/", timeout: { connect: "200ms" } },
    seen: { reason: "UPSTREAM_TIMEOUT", message: expect.stringMatching(/ 200 ms \(timeout\.connect\)/) },
  },
  {
    key: "timeout.read",
    before: { endpoint: "http://UP/silent", timeout: { read: "300ms" } },
    after: { endpoint: "http://UP/silent", timeout: { read: "200ms" } },
    seen: { reason: "UPSTREAM_TIMEOUT", message: expect.stringMatching(/ 200 ms \(timeout\.read\)/) },
  },
  {
    key: "timeout.idle",
    before: { endpoint: "http://UP/stuck", timeout: { idle: "300ms" } },
    after: { endpoint: "http://UP/stuck", timeout: { idle: "200ms" } },
    seen: { reason: "UPSTREAM_TIMEOUT", message: expect.stringMatching(/ 200 ms \(timeout\.idle\)/) },
  },
  {
    key: "timeout.total",
    before: { endpoint: "http://UP/silent", timeout: { total: "300ms" } },
    after: { endpoint: "http://UP/silent", timeout: { total: "200ms" } },
    seen: { reason: "CALL_DEADLINE_EXCEEDED", message: expect.stringContaining("200 ms") },
  },
];
