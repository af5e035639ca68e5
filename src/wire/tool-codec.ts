import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { type Tool, ToolSchema } from "../../gen/toolgate/v1/tool_pb.ts";
import { type JsonObject, stringifyJson } from "../core/json.ts";
import type { ToolView } from "../core/registry.ts";
import type { Availability, ToolDefinition } from "../core/tool.ts";
import { toDuration, toTimestamp } from "./durations.ts";
import { DELIVERY_NUMBERS, KIND_NUMBERS, STATE_NUMBERS } from "./enums.ts";
import type { ListedSchemas } from "./schema-form.ts";

/**
 * Tools as messages. What was made once is kept as long as its definition lives, so a page of a List costs a copy of
 * bytes and neither a message nor an encoding for each tool. Messages are shared: never change one.
 */
export interface ToolCodec {
  message(view: ToolView, schemas: ListedSchemas): Tool;
  /** The message in binary form with its length before it, as it stands after the tag of a field of another message. */
  delimited(view: ToolView, schemas: ListedSchemas): Uint8Array;
}

interface Form {
  readonly message: Tool;
  delimited?: Uint8Array;
}

interface Entry {
  readonly availability: Availability;
  readonly forms: Partial<Record<ListedSchemas, Form>>;
}

/** Makes a codec with a memory of its own. `providerSchema` puts a schema of arguments into the form of that name. */
export function createToolCodec(providerSchema: (schema: JsonObject) => JsonObject): ToolCodec {
  const entries = new WeakMap<ToolDefinition, Entry>();

  function form({ definition, availability }: ToolView, schemas: ListedSchemas): Form {
    let entry = entries.get(definition);
    if (entry === undefined || !sameAvailability(entry.availability, availability)) {
      entry = { availability, forms: {} };
      entries.set(definition, entry);
    }
    const found = (entry.forms[schemas] ??= { message: create(ToolSchema, shape(definition, availability, schemas)) });
    return found;
  }

  function shape(
    definition: ToolDefinition,
    availability: Availability,
    schemas: ListedSchemas,
  ): MessageInitShape<typeof ToolSchema> {
    if (schemas === "omitted") return withoutSchemas(definition, availability);
    const { inputSchema } = definition;
    return withSchemas(definition, availability, schemas === "provider" ? providerSchema(inputSchema) : inputSchema);
  }

  return {
    message: (view, schemas) => form(view, schemas).message,
    delimited: (view, schemas) => {
      const found = form(view, schemas);
      found.delimited ??= new BinaryWriter().bytes(toBinary(ToolSchema, found.message)).finish();
      return found.delimited;
    },
  };
}

function withSchemas(
  definition: ToolDefinition,
  availability: Availability,
  inputSchema: JsonObject,
): MessageInitShape<typeof ToolSchema> {
  const { outputSchema } = definition;
  return {
    ...withoutSchemas(definition, availability),
    inputSchemaJson: stringifyJson(inputSchema),
    ...(outputSchema === undefined ? {} : { outputSchemaJson: stringifyJson(outputSchema) }),
  };
}

function withoutSchemas(definition: ToolDefinition, availability: Availability) {
  const { leaseExpireTimeMs } = definition;
  return {
    name: definition.name,
    title: definition.title,
    description: definition.description,
    kind: KIND_NUMBERS[definition.kind],
    hints: { ...definition.claimedHints, ...definition.hints },
    state: STATE_NUMBERS[availability.state],
    stateReason: availability.reason,
    labels: { ...definition.labels },
    source: definition.source,
    etag: definition.etag,
    createTime: toTimestamp(definition.createTimeMs),
    updateTime: toTimestamp(definition.updateTimeMs),
    defaultTimeout: toDuration(definition.defaultTimeoutMs),
    alias: definition.alias,
    contractDigest: definition.contractDigest,
    toolsets: [...definition.toolsets],
    delivery: DELIVERY_NUMBERS[definition.delivery],
    ...(leaseExpireTimeMs === undefined ? {} : { leaseExpireTime: toTimestamp(leaseExpireTimeMs) }),
  };
}

function sameAvailability(a: Availability, b: Availability): boolean {
  return a === b || (a.state === b.state && a.reason === b.reason);
}
