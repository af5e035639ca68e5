import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import {
  type ListRequest,
  type ListResponse,
  ListResponseSchema,
} from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { ToolRegistry, ToolView } from "../core/registry.ts";
import { toolSelection } from "../wire/filter.ts";
import { keepMessageBytes } from "../wire/message-bytes.ts";
import { encodeProblems } from "../wire/registry-codec.ts";
import { requestInvalid } from "../wire/request-error.ts";
import { listedSchemas } from "../wire/schema-form.ts";
import type { ToolCodec } from "../wire/tool-codec.ts";
import { afterName, type PageScope, pageToken } from "./page-token.ts";
import type { Rpc } from "./rpc.ts";

const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1000;
/** A page ends early here, below the 4 MiB that gRPC clients take: 1,000 tools may have schemas of any size. */
const MAX_PAGE_BYTES = 3 * 1024 * 1024;
/** Number of `ListResponse.tools`. */
const TOOLS_FIELD = ListResponseSchema.field.tools.number;
/** What stands before each of them in a response. */
const TOOLS_TAG = new BinaryWriter().tag(TOOLS_FIELD, WireType.LengthDelimited).finish();

/** What listing takes. */
export interface ListDeps {
  readonly registry: ToolRegistry;
  readonly tools: ToolCodec;
}

/** One page of the tools the caller may see. @throws GatewayError REQUEST_INVALID, PAGE_TOKEN_INVALID. */
export function listTools(request: ListRequest, rpc: Rpc, { registry, tools }: ListDeps): ListResponse {
  const selection = toolSelection(request.filter);
  const schemas = listedSchemas(request);
  const scope: PageScope = { principalId: rpc.principal.id, filterKey: selection.key, schemas };
  const after = afterName(request.pageToken, scope);
  const size = pageSize(request.pageSize);
  const listing = registry.list(rpc.principal);
  const page: ToolView[] = [];
  const encoded: Uint8Array[] = [];
  let bytes = 0;
  let next = "";
  for (let i = after === undefined ? 0 : firstAfter(listing.tools, after); i < listing.tools.length; i++) {
    const tool = listing.tools[i];
    if (tool === undefined) continue;
    // Asked once: to find out whether a tool is available takes longer than to copy it.
    const view: ToolView = { definition: tool.definition, availability: tool.availability };
    if (!selection.matches(view)) continue;
    const message = tools.delimited(view, schemas);
    bytes += message.byteLength;
    const last = page.at(-1);
    if (last !== undefined && (page.length === size || bytes > MAX_PAGE_BYTES)) {
      next = pageToken(last.definition.name, scope);
      break;
    }
    page.push(view);
    encoded.push(message);
  }
  const response = create(ListResponseSchema, {
    nextPageToken: next,
    revision: BigInt(listing.revision),
    problems: after === undefined ? encodeProblems(listing.problems) : [],
  });
  if (!rpc.binary) response.tools = page.map((view) => tools.message(view, schemas));
  else if (encoded.length > 0) appendTools(response, encoded);
  return response;
}

/**
 * Adds tools to a response whose other fields are there, with one copy of their bytes: neither are they made nor encoded
 * again, and who writes the response may take the bytes of the whole as they stand.
 */
function appendTools(response: ListResponse, messages: readonly Uint8Array[]): void {
  const rest = toBinary(ListResponseSchema, response);
  const tags = messages.length * TOOLS_TAG.byteLength;
  const bytes = Buffer.allocUnsafe(messages.reduce((sum, { byteLength }) => sum + byteLength, rest.byteLength + tags));
  bytes.set(rest);
  let at = rest.byteLength;
  for (const message of messages) {
    bytes.set(TOOLS_TAG, at);
    bytes.set(message, at + TOOLS_TAG.byteLength);
    at += TOOLS_TAG.byteLength + message.byteLength;
  }
  // A field that protobuf does not know is written as it stands, with the tag of the first before it.
  const data = bytes.subarray(rest.byteLength + TOOLS_TAG.byteLength);
  response.$unknown = [{ no: TOOLS_FIELD, wireType: WireType.LengthDelimited, data }];
  keepMessageBytes(response, bytes);
}

function pageSize(asked: number): number {
  if (asked < 0) throw requestInvalid("page_size", "OUT_OF_RANGE", `must not be negative, got ${asked}`);
  return asked === 0 ? DEFAULT_PAGE_SIZE : Math.min(asked, MAX_PAGE_SIZE);
}

/** Index of the first tool whose name comes after `name`. */
function firstAfter(tools: readonly ToolView[], name: string): number {
  let low = 0;
  let high = tools.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const view = tools[middle];
    if (view !== undefined && view.definition.name <= name) low = middle + 1;
    else high = middle;
  }
  return low;
}
