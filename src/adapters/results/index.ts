import type { Adapter, Upstream } from "../../core/adapter.ts";
import type { CallContext, ToolCall, UpstreamEvent, UpstreamResult } from "../../core/call.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonArray, type JsonObject, type JsonValue, ownValue, parseJson } from "../../core/json.ts";
import type { ReadRequest, ResultPage, ResultQuery, ResultReader } from "../../core/results.ts";

/** Which of the tools a declaration is. */
type Reads = "pages" | "matches";

/** Room in a result for what stands beside its page. */
const BESIDE = 400;

const DEFAULT_PAGE = 20_000;

/** The adapter for the gateway's own tools, by which models read on in results that are kept. */
export function createResultsAdapter(reader: ResultReader): Adapter<Reads> {
  return {
    kind: "module",
    configSchema: {
      type: "object",
      properties: {
        reads: { enum: ["pages", "matches"], description: "Whether it reads pages or looks for matches." },
      },
    },
    configure: (keys) => ({
      ok: true,
      config: ownValue(keys, "reads") === "matches" ? "matches" : "pages",
      warnings: [],
      readOnly: true,
      upstream: "gateway",
    }),
    explain: (reads) => [{ key: "reads", value: reads }],
    open: async (reads) => resultUpstream(reads, reader),
  };
}

function resultUpstream(reads: Reads, reader: ResultReader): Upstream {
  return {
    availability: () => ({ state: "ready", reason: "" }),
    async *invoke(call: ToolCall, context: CallContext): AsyncGenerator<UpstreamEvent, void, undefined> {
      const result = call.validateOnly ? { content: [], effect: "none" as const } : await read(reads, call, context);
      yield { type: "upstream-result", result };
    },
    probe: async () => ({ ok: true, message: "part of the gateway", mend: "" }),
    async [Symbol.asyncDispose]() {
      // Nothing is open between calls.
    },
  };

  async function read(kind: Reads, call: ToolCall, { principal, signal }: CallContext): Promise<UpstreamResult> {
    const { arguments: args, maxLength } = call;
    try {
      return resultOf(await reader.read(requestOf(kind, args, maxLength), principal, signal));
    } catch (error) {
      if (!(error instanceof GatewayError) || error.reason !== "RESULT_QUERY_INVALID") throw error;
      const { violations } = error;
      const message = `tool "${call.tool}" cannot read that: ${error.message}`;
      throw new GatewayError("ARGUMENTS_INVALID", message, { violations, metadata: { tool: call.tool }, cause: error });
    }
  }
}

function requestOf(reads: Reads, args: JsonObject, callLength: number | undefined): ReadRequest {
  const asked = number(args, "max_length") ?? DEFAULT_PAGE;
  const maxLength = Math.min(asked, (callLength ?? Number.POSITIVE_INFINITY) - BESIDE);
  const base = { handle: text(args, "handle") ?? "", maxLength };
  const cursor = text(args, "cursor");
  if (cursor !== undefined) return { ...base, cursor };
  return { ...base, query: reads === "matches" ? searchOf(args) : pageOf(args) };
}

function searchOf(args: JsonObject): ResultQuery {
  return {
    type: "search",
    pattern: text(args, "pattern") ?? "",
    regex: ownValue(args, "regex") === true,
    ignoreCase: ownValue(args, "ignore_case") === true,
    limit: number(args, "limit") ?? 0,
  };
}

function pageOf(args: JsonObject): ResultQuery | undefined {
  const list = ownValue(args, "columns");
  const columns = isJsonArray(list) ? list.filter((name) => typeof name === "string") : [];
  const path = text(args, "path") ?? "";
  const offset = number(args, "offset") ?? 0;
  const limit = number(args, "limit") ?? 0;
  switch (text(args, "as") ?? usual(columns, path)) {
    case "json":
      return { type: "json", path, offset, limit };
    case "rows":
      return { type: "rows", path, columns, offset, limit };
    case "lines":
      return { type: "lines", start: Math.max(1, offset), count: limit };
    case "bytes":
      return { type: "bytes", offset, length: limit };
    default:
      return undefined;
  }
}

/** How to read where the call does not say. */
function usual(columns: readonly string[], path: string): string {
  if (columns.length > 0) return "rows";
  return path === "" ? "" : "json";
}

function resultOf({ facts, page, cursor }: ResultPage): UpstreamResult {
  const about = { tool: facts.tool, media_type: facts.mediaType, bytes: facts.bytes, complete: facts.complete };
  const value: JsonObject = {
    ...(page.type === "data" ? {} : { page: page.type === "json" ? parseJson(page.text) : page.text }),
    ...(cursor === undefined ? {} : { cursor }),
    result: about,
  };
  const data = page.type === "data" ? page.data : undefined;
  const content = data === undefined ? [] : [{ type: "blob" as const, mimeType: "application/octet-stream", data }];
  return { value, content, effect: "none" };
}

function text(args: JsonObject, name: string): string | undefined {
  const value: JsonValue | undefined = ownValue(args, name);
  return typeof value === "string" && value !== "" ? value : undefined;
}

function number(args: JsonObject, name: string): number | undefined {
  const value = ownValue(args, name);
  return typeof value === "number" ? value : undefined;
}
