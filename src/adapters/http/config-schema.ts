import type { JsonObject } from "../../core/json.ts";

/** The methods a tool may be declared with. */
export const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** One of them. */
export type HttpMethod = (typeof METHODS)[number];

/** A key that is known and has no effect yet. Editors do not offer it. */
function notYet(description: string): JsonObject {
  return { not: {}, "x-not-supported": true, doNotSuggest: true, description: `Not supported yet. ${description}` };
}

const BODY: JsonObject = {
  type: ["object", "array", "string"],
  description:
    "JSON body. `$param` or `${param}` stands for an argument: alone it keeps its JSON type, inside text it is " +
    "written as text; `$$` is a dollar sign. A key whose argument is absent is left out. A text must be one `$param`.",
};

/** Keys of an HTTP tool. */
export const HTTP_CONFIG_SCHEMA: JsonObject = {
  type: "object",
  required: ["endpoint"],
  properties: {
    endpoint: {
      type: "string",
      minLength: 1,
      description:
        "Absolute http or https URL. `{param}` in path or query stands for an argument, percent-encoded; `{{` and " +
        "`}}` are braces. Scheme, host and port are fixed.",
    },
    method: { enum: [...METHODS], default: "GET", description: "The only method the tool ever sends." },
    query: {
      type: "object",
      additionalProperties: { type: "string" },
      description:
        "Query parameters by name. A value may hold `{param}`: one that is absent drops the pair, an array alone " +
        "repeats it, empty text is sent as `name=`.",
    },
    headers: {
      type: "object",
      additionalProperties: { type: "string" },
      description: "Request headers by name. A value may hold `{param}`; one that is absent drops the header.",
    },
    body: BODY,
    request_body: { ...BODY, description: "The same as `body`; only one of the two may be set." },
    auth: {
      type: "object",
      required: ["header_name", "secret_ref"],
      additionalProperties: false,
      description: "A secret, put into a header at each request.",
      properties: {
        header_name: { type: "string", minLength: 1, description: "Header that takes the secret." },
        secret_ref: { type: "string", minLength: 1, description: "Name of the environment variable that holds it." },
        prefix: {
          type: "string",
          description:
            "Stands before the secret, such as `Bearer`; a space follows a prefix that ends in a letter or digit.",
        },
        query_name: notYet("Query parameter that takes the secret."),
        type: notYet("Kind of credential."),
      },
    },
    signing: notYet("Signature over the request."),
    form: notYet("URL-encoded form as body."),
    multipart: notYet("Multipart form as body."),
    files: notYet("Files to send."),
    query_style: notYet("How lists are written in the query."),
    redirects: notYet("Whether redirects are followed."),
    proxy: notYet("Proxy to go through."),
    tls: notYet("Certificates to trust and to show."),
    pool: notYet("Limits of connections."),
    allow_private: notYet("Private addresses that may be reached."),
  },
};
