import { DURATION_SCHEMA } from "../../core/durations.ts";
import type { JsonObject } from "../../core/json.ts";
import { EGRESS_SCHEMA } from "../shared/network/egress-schema.ts";
import { BY_ROLE_SCHEMA } from "../shared/secret-choice.ts";

/** Words of `transport`. */
const TRANSPORTS = ["auto", "streamable_http", "sse", "stdio"] as const;

/** Words of `client_auth`. */
export const CLIENT_AUTHS = ["basic", "post", "private_key_jwt"] as const;

/** Words of `protocol`. */
export const PROTOCOLS = ["auto", "legacy", "2026-07-28"] as const;

/** Words of `start`. */
export const STARTS = ["eager", "lazy"] as const;

const SECRET_REF: JsonObject = {
  type: "string",
  minLength: 1,
  description: "Name of the environment variable, or of the entry of `secrets` in gateway.yaml, that holds the value.",
};

/** A text, or a secret by reference. */
function textOrSecret(description: string): JsonObject {
  return {
    type: "object",
    additionalProperties: {
      type: ["string", "object"],
      required: ["secret_ref"],
      additionalProperties: false,
      properties: {
        secret_ref: SECRET_REF,
        by_role: { doNotSuggest: true, description: "Refused: `auth.bearer` of a remote server takes it." },
      },
    },
    description,
  };
}

function duration(standard: string, description: string): JsonObject {
  return { ...DURATION_SCHEMA, default: standard, description };
}

const OAUTH: JsonObject = {
  type: "object",
  additionalProperties: false,
  description:
    "A login by a person (OAuth 2.1, authorization code with PKCE): `toolgate login SERVER` makes it, the gateway keeps it alive. Without a key everything is found out by the metadata of the server.",
  properties: {
    client_id: {
      type: "string",
      minLength: 1,
      description:
        "Name of the gateway where it was registered by hand. Default: it registers itself at the first login.",
    },
    secret_ref: {
      ...SECRET_REF,
      description: "Name of the environment variable that holds the secret of that client, or its private key (PEM).",
    },
    client_auth: {
      enum: CLIENT_AUTHS,
      description: "How that client shows its secret. Default: what the metadata say, else `basic`.",
    },
    client_metadata_url: {
      type: "string",
      minLength: 1,
      description:
        "Address of a document that describes the gateway as a client; https. Its name where the authorization server takes such.",
    },
    issuer: { type: "string", minLength: 1, description: "Who has to give the tokens, as its metadata say." },
    scopes: {
      type: "array",
      items: { type: "string", minLength: 1 },
      description: "What the tokens are to be good for. Default: what the server asks for.",
    },
    resource: {
      type: "string",
      minLength: 1,
      description: "Resource that the tokens are for (RFC 8707); default: what the server calls itself.",
    },
    redirect_port: {
      type: "integer",
      minimum: 1,
      maximum: 65_535,
      description: "Port of 127.0.0.1 that the browser is sent back to. Default: any that is free.",
    },
  },
};

const AUTH: JsonObject = {
  type: "object",
  additionalProperties: false,
  description: "How the gateway identifies itself to a remote server.",
  properties: {
    oauth: OAUTH,
    bearer: {
      type: "object",
      required: ["secret_ref"],
      additionalProperties: false,
      description: "A token that is sent as `Authorization: Bearer …`, read anew for each request.",
      properties: {
        secret_ref: SECRET_REF,
        by_role: { ...BY_ROLE_SCHEMA, maxProperties: 32, examples: [{ admin: "GITHUB_ADMIN_TOKEN" }] },
      },
    },
    client_credentials: {
      type: "object",
      required: ["client_id", "secret_ref"],
      additionalProperties: false,
      description:
        "OAuth 2.0 client credentials: a token is fetched when it is needed, kept, and renewed before its end.",
      properties: {
        token_url: {
          type: "string",
          minLength: 1,
          description: "Address that gives tokens; http or https. Default: found out by the metadata of the server.",
        },
        issuer: {
          type: "string",
          minLength: 1,
          description: "Who has to give the tokens, as its metadata say: nobody else gets the secret.",
        },
        client_id: { type: "string", minLength: 1, description: "Name of the gateway there." },
        secret_ref: {
          ...SECRET_REF,
          description: "Name of the environment variable that holds the client's secret, or its private key (PEM).",
        },
        scopes: {
          type: "array",
          items: { type: "string", minLength: 1 },
          description: "What the token is to be good for. Default: what the server asks for.",
        },
        client_auth: {
          enum: CLIENT_AUTHS,
          description:
            "Whether name and secret go along as HTTP Basic or in the body, or a JSON Web Token that the key signs (RFC 7523). Default: what the metadata say, else `basic`.",
        },
        resource: {
          type: "string",
          minLength: 1,
          description: "Resource that the token is for (RFC 8707); default: `url`.",
        },
      },
    },
  },
};

const RESTART: JsonObject = {
  type: "object",
  additionalProperties: false,
  description: "What follows a start that failed, or a server that ended.",
  properties: {
    first: duration("1s", "Wait before the second attempt; each next one is twice as long, give or take a quarter."),
    max: duration("1m", "Longest wait."),
    attempts: {
      type: "integer",
      minimum: 1,
      maximum: 1_000,
      default: 5,
      description: "Attempts that may fail one after the other; from then on one is made every five minutes.",
    },
  },
};

/** Keys of the block `mcp`. */
const MCP_BLOCK: JsonObject = {
  type: "object",
  additionalProperties: false,
  description: "Where the MCP server is: `command` for a program of this machine, or `url` for a remote one.",
  properties: {
    command: {
      type: "string",
      minLength: 1,
      description:
        "Program that speaks MCP over its standard input and output: a name that is looked up in PATH, or a path. Never a shell.",
      examples: ["npx"],
    },
    args: { type: "array", items: { type: "string" }, description: "Its arguments, as they stand." },
    cwd: {
      type: "string",
      minLength: 1,
      description: "Its working folder; a relative one begins at the watched folder, which is the default.",
    },
    env: textOrSecret(
      "Variables of its environment by name: a text, or `{ secret_ref: NAME }`. Besides these it gets PATH, HOME, USER, LOGNAME, SHELL, LANG, LANGUAGE, LC_*, TZ and TMPDIR of the gateway.",
    ),
    inherit_env: {
      type: "array",
      uniqueItems: true,
      items: { type: "string", pattern: "^[^=\\u0000]+$" },
      description: "More variables of the gateway's environment that it gets where they are set.",
    },
    url: {
      type: "string",
      minLength: 1,
      description: "Address of a remote server; http or https.",
      examples: ["https://mcp.example.com/github"],
    },
    headers: textOrSecret(
      "Headers of every request to a remote server: a text in which `${VARIABLE}` stands for a variable of the gateway's environment, or `{ secret_ref: NAME }`. Values are read for each request and never shown.",
    ),
    auth: AUTH,
    allow_private: {
      type: "boolean",
      default: false,
      description: "Whether the name in `url` may lead to an address that is not public.",
    },
    egress: EGRESS_SCHEMA,
    transport: {
      enum: [...TRANSPORTS],
      default: "auto",
      description:
        "How the server is spoken to. `auto`: standard input and output with `command`; with `url` streamable HTTP, and the older HTTP with SSE where the server refuses that.",
    },
    protocol: {
      enum: [...PROTOCOLS],
      default: "auto",
      description:
        "Which era of MCP is spoken: `legacy` is every revision up to 2025-11-25. `auto` asks the server and remembers the answer.",
    },
    start: {
      enum: [...STARTS],
      default: "eager",
      description:
        "When the server is started: with the gateway, or `lazy` with the first call, once its tools are known.",
    },
    start_timeout: duration("30s", "Longest time from the start of a server until it has listed its tools."),
    idle_timeout: {
      ...DURATION_SCHEMA,
      description:
        "How long a server may be without a call before it is stopped; the next call starts it. Default: never.",
    },
    restart: RESTART,
  },
};

/** Keys of an MCP server's declaration that are about its connection. */
export const MCP_CONFIG_SCHEMA: JsonObject = {
  type: "object",
  required: ["mcp"],
  properties: {
    mcp: MCP_BLOCK,
    cwd: {
      type: "string",
      minLength: 1,
      description: "The same as `cwd` in `mcp`.",
    },
  },
};
