import type { JsonObject } from "../../core/json.ts";
import { EGRESS_SCHEMA } from "../shared/network/egress-schema.ts";

/** A text that is not empty. */
function text(description: string, ...examples: readonly string[]): JsonObject {
  return {
    type: "string",
    minLength: 1,
    maxLength: 4_096,
    description,
    ...(examples.length === 0 ? {} : { examples }),
  };
}

const TLS: JsonObject = {
  type: "object",
  minProperties: 1,
  additionalProperties: false,
  description:
    "Of an `https:` address, what is not as the system has it. Files are PEM, relative to the watched folder, and read for each new connection.",
  properties: {
    ca: text(
      "File with the certificates of those who may vouch for the server, instead of those that the system trusts.",
    ),
    cert: text("File with the gateway's own certificate, and those between it and its root."),
    key: text("File with the key of `cert`."),
    server_name: text("Name that the server's certificate has to be for, where it is not the host of `address`."),
  },
};

const METADATA: JsonObject = {
  type: "object",
  maxProperties: 256,
  description:
    "Metadata of every request: a text in which `${VARIABLE}` stands for a secret or variable of the gateway's environment, or `{ secret_ref: NAME }`. Values are read for each request and never shown.",
  examples: [{ authorization: "Bearer ${ORDERS_TOKEN}" }],
  additionalProperties: {
    type: ["string", "object"],
    required: ["secret_ref"],
    additionalProperties: false,
    properties: { secret_ref: text("Name of the secret that is the value.") },
  },
};

/** Keys of a gRPC tool's declaration. */
export const GRPC_CONFIG_SCHEMA: JsonObject = {
  type: "object",
  required: ["grpc"],
  properties: {
    grpc: {
      type: "object",
      required: ["address", "method"],
      additionalProperties: false,
      description: "Which method of which gRPC server the tool is.",
      properties: {
        address: text(
          "Where the server is: `http://HOST:PORT` without TLS, `https://HOST:PORT` with it, or `unix:/PATH` for a socket.",
          "http://127.0.0.1:50051",
        ),
        method: text("Service with its package, and method.", "acme.orders.v1.OrderService/GetOrder"),
        descriptor: text(
          "File with the descriptors of the service and all it imports (a FileDescriptorSet, as `buf build -o` and `protoc --descriptor_set_out --include_imports` make it), relative to the watched folder. Read again when it changes.",
          "orders.binpb",
        ),
        reflection: {
          const: true,
          description: "Ask the server itself for them, by gRPC server reflection, instead of `descriptor`.",
        },
        request: {
          type: "object",
          description:
            "The request message in JSON. `$param` or `${param}` stands for an argument: alone it keeps its JSON type, inside text it is written as text; `$$` is a dollar sign. A key whose argument is absent is left out. Default: each argument is the field of its name.",
        },
        metadata: METADATA,
        tls: TLS,
        allow_private: {
          type: "boolean",
          default: false,
          description: "Whether the name in `address` may lead to an address that is not public.",
        },
        egress: EGRESS_SCHEMA,
      },
    },
  },
};
