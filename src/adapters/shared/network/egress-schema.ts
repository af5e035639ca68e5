import { egressListSchema } from "../../../core/egress.ts";
import type { JsonObject } from "../../../core/json.ts";

/** Where the connections of one declaration may lead. */
export const EGRESS_SCHEMA: JsonObject = {
  type: "object",
  minProperties: 1,
  additionalProperties: false,
  description:
    "Where connections may lead, besides what `egress` of gateway.yaml says: hosts, addresses and networks, each with a port or ports where only those are meant.",
  properties: {
    allow: egressListSchema(
      "The only places that are reached. What a network here holds may be private, link-local or a metadata address, which names otherwise must not lead to.",
    ),
    deny: egressListSchema("Places that are never reached; counts before `allow`."),
  },
};
