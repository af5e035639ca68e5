import type { JsonObject } from "../../core/json.ts";
import { EGRESS_SCHEMA } from "../shared/network/egress-schema.ts";
import { BY_ROLE_SCHEMA } from "../shared/secret-choice.ts";

/** The methods a tool may be declared with. */
export const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** One of them. */
export type HttpMethod = (typeof METHODS)[number];

/** How a list is written in a query or form. */
export const QUERY_STYLES = ["repeat", "comma", "brackets"] as const;

/** One of them. */
export type QueryStyle = (typeof QUERY_STYLES)[number];

/** Longest endpoint, in characters; many servers take no longer line either. */
const MAX_ENDPOINT = 8_192;

/** Most entries of `query`, of `headers` and of `form`. */
const MAX_ENTRIES = 256;

/** A key that is known and has no effect yet. Editors do not offer it. */
function notYet(description: string): JsonObject {
  return { not: {}, "x-not-supported": true, doNotSuggest: true, description: `Not supported yet. ${description}` };
}

const BODY: JsonObject = {
  type: ["object", "array", "string"],
  description:
    "JSON body. `$param` or `${param}` stands for an argument: alone it keeps its JSON type, inside text it is " +
    "written as text; `$$` is a dollar sign. A key whose argument is absent is left out. A text is one `$param`, or, " +
    "with a `content_type` that is no JSON, the body itself.",
};

/** Hashes a request may be signed with. */
export const SIGNING_ALGORITHMS = ["hmac-sha256", "hmac-sha512"] as const;

/** How the signature's bytes are written. */
export const SIGNATURE_ENCODINGS = ["hex", "base64"] as const;

/** How the time of signing is written. */
export const TIMESTAMP_FORMATS = ["unix", "unix_ms", "iso8601"] as const;

/** Header that tells how many milliseconds are left of a call, where the declaration names no other. */
export const DEADLINE_HEADER = "x-request-timeout-ms";

/** A text key that is not empty. */
function text(description: string): JsonObject {
  return { type: "string", minLength: 1, description };
}

/** A whole number from `minimum` on. */
function count(minimum: number, description: string): JsonObject {
  return { type: "integer", minimum, maximum: 65_535, description };
}

const SIGNING: JsonObject = {
  type: "object",
  required: ["algorithm", "secret_ref", "header_name", "content"],
  additionalProperties: false,
  description: "A signature over each request, made anew each time it is sent, and put into a header.",
  properties: {
    algorithm: { enum: [...SIGNING_ALGORITHMS], description: "HMAC with this hash." },
    secret_ref: text("Name of the environment variable that holds the key; its UTF-8 bytes are the key."),
    header_name: text("Header that takes the signature."),
    prefix: {
      type: "string",
      description:
        "Stands before the signature, such as `HMAC`; a space follows a prefix that ends in a letter or digit. May " +
        "hold `{timestamp}`, `{nonce}` and `{key_id}`.",
    },
    encoding: {
      enum: [...SIGNATURE_ENCODINGS],
      default: "hex",
      description: "How the signature is written: `hex` in small letters, or `base64` with padding.",
    },
    content: text(
      "What is signed: text with `{method}`, `{path}` and `{query}` (encoded as they are sent, the query without `?`), " +
        "`{body}`, `{timestamp}`, `{nonce}`, `{key_id}`; `{{` and `}}` are braces.",
    ),
    timestamp_header: text("Header that takes the time of signing."),
    timestamp_format: {
      enum: [...TIMESTAMP_FORMATS],
      default: "unix",
      description: "How `{timestamp}` is written: seconds or milliseconds since 1970, or `2024-10-01T08:00:00.000Z`.",
    },
    nonce_header: text("Header that takes a UUID that no other request has."),
    key_id: text("Names the key to the upstream; no secret. Stands where `content` or `prefix` say `{key_id}`."),
  },
};

const CLIENT_CREDENTIALS: JsonObject = {
  type: "object",
  required: ["token_url", "client_id", "secret_ref"],
  additionalProperties: false,
  description:
    "OAuth 2.0 client credentials: a token is got from `token_url` when it is needed, kept, renewed before its end, and sent as `Authorization: Bearer …`. Tools with the same ones share it.",
  properties: {
    token_url: text("Address that gives tokens; http or https."),
    client_id: text("Name of the gateway there."),
    secret_ref: text("Name of the environment variable, or of the entry of `secrets`, that holds the client's secret."),
    scopes: {
      type: "array",
      maxItems: 100,
      items: { type: "string", minLength: 1 },
      description: "What the token is to be good for.",
    },
    client_auth: {
      enum: ["basic", "post"],
      default: "basic",
      description: "Whether name and secret go along as HTTP Basic or in the body.",
    },
    resource: text("Resource that the token is for (RFC 8707)."),
    audience: text("Audience that the token is for, where the server takes that."),
  },
};

const MULTIPART: JsonObject = {
  type: "object",
  minProperties: 1,
  description:
    "Parts of a form by name, sent as `multipart/form-data` instead of a `body`: a text with `{param}`, or a map with " +
    "one of `text`, `json` and `file`. A part whose argument is absent is left out.",
  additionalProperties: {
    type: ["string", "object"],
    additionalProperties: false,
    properties: {
      text: { type: "string", description: "Text with `{param}`; a list alone makes a part of each of its entries." },
      json: {
        type: ["object", "array", "string"],
        description: "JSON with `$param`, as in `body`.",
      },
      file: {
        type: "string",
        description: "`{param}` alone: a parameter with `contentEncoding: base64` that holds the file's bytes.",
      },
      filename: {
        type: "string",
        minLength: 1,
        description:
          "Name of the file, which may hold `{param}`; default: the part's name. Only the last step of a path is sent.",
      },
      content_type: {
        type: "string",
        minLength: 1,
        description:
          "Content type of the part; of a file it may hold `{param}`. Default: none for text, `application/json`, " +
          "`application/octet-stream` for a file.",
      },
      max_bytes: {
        type: "integer",
        minimum: 1,
        description: "Most bytes of the file; `limits.request_bytes` bounds it too.",
      },
    },
  },
};

/** Keys of an HTTP tool. */
export const HTTP_CONFIG_SCHEMA: JsonObject = {
  type: "object",
  required: ["endpoint"],
  properties: {
    endpoint: {
      type: "string",
      minLength: 1,
      maxLength: MAX_ENDPOINT,
      description:
        "Absolute http or https URL. `{param}` in path or query stands for an argument, percent-encoded; `{{` and " +
        "`}}` are braces. Scheme, host and port are fixed.",
    },
    method: { enum: [...METHODS], default: "GET", description: "The only method the tool ever sends." },
    query: {
      type: "object",
      maxProperties: MAX_ENTRIES,
      additionalProperties: { type: "string" },
      description:
        "Query parameters by name. A value may hold `{param}`: one that is absent drops the pair, a list alone is " +
        "written as `query_style` says, empty text is sent as `name=`.",
    },
    query_style: {
      enum: [...QUERY_STYLES],
      default: "repeat",
      description:
        "How a list is written in query and form: `repeat` as `tag=a&tag=b`, `comma` as `tag=a,b`, `brackets` as " +
        "`tag[]=a&tag[]=b`.",
    },
    headers: {
      type: "object",
      maxProperties: MAX_ENTRIES,
      additionalProperties: { type: "string" },
      description: "Request headers by name. A value may hold `{param}`; one that is absent drops the header.",
    },
    body: BODY,
    request_body: { ...BODY, description: "The same as `body`; only one of the two may be set." },
    content_type: {
      type: "string",
      minLength: 1,
      description:
        "Content type of the body; `application/json` where it is not set. With one that is no JSON, `body` is a text. " +
        "In XML and HTML arguments are escaped, in other text they stand as they are. Text is sent in UTF-8.",
    },
    form: {
      type: "object",
      maxProperties: MAX_ENTRIES,
      additionalProperties: { type: "string" },
      description:
        "Form fields by name, sent as `application/x-www-form-urlencoded` instead of a `body`. A value may hold " +
        "`{param}`, as in `query`.",
    },
    multipart: MULTIPART,
    auth: {
      type: "object",
      additionalProperties: false,
      description: "A secret, put into a header or the query at each request, or a token that is got with one.",
      properties: {
        header_name: { type: "string", minLength: 1, description: "Header that takes the secret." },
        query_name: {
          type: "string",
          minLength: 1,
          description:
            "Query parameter that takes the secret instead of a header. URLs stand in logs of upstreams and proxies: " +
            "use a header where the upstream takes one.",
        },
        secret_ref: {
          type: "string",
          minLength: 1,
          description: "Name of the environment variable, or of the entry of `secrets` in gateway.yaml, that holds it.",
        },
        by_role: BY_ROLE_SCHEMA,
        prefix: {
          type: "string",
          description:
            "Stands before the secret, such as `Bearer`; a space follows a prefix that ends in a letter or digit.",
        },
        client_credentials: CLIENT_CREDENTIALS,
        type: notYet("Kind of credential."),
      },
    },
    signing: SIGNING,
    redirects: {
      enum: ["same_origin", "none"],
      default: "same_origin",
      description:
        "Which redirects are followed: with `same_origin` up to 5 by a GET or HEAD that changes nothing, never to " +
        "another scheme, host or port; with `none` no redirect.",
    },
    allow_private: {
      type: "boolean",
      default: false,
      description:
        "Whether the endpoint's host name may lead to a private, loopback, link-local or metadata address. An " +
        "address or `localhost` written in `endpoint` needs no leave.",
    },
    egress: EGRESS_SCHEMA,
    deadline_header: {
      type: "string",
      minLength: 1,
      default: DEADLINE_HEADER,
      description:
        "Header that tells the upstream how many milliseconds are left of the call; `none` sends none. By default it is left out where the declaration sets such a header itself.",
    },
    proxy: notYet("Proxy to go through."),
    tls: notYet("Certificates to trust and to show."),
    pool: {
      type: "object",
      minProperties: 1,
      additionalProperties: false,
      description:
        "Limits of the connections to the endpoint's scheme, host and port, which all tools with the same ones share: " +
        "of what they declare the least counts. Default: gateway.yaml's `defaults.pool`.",
      properties: {
        max_connections: count(
          1,
          "Most open at a time; a call beyond them waits in a line, as long as `timeout.connect`.",
        ),
        max_waiting: count(0, "Most calls in that line; one more is refused."),
        max_idle: count(0, "Most kept open for later calls."),
      },
    },
  },
};
