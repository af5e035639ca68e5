import { isJsonObject, type JsonObject, ownValue } from "../../core/json.ts";

/** Where a request of the stateless era says its revision. Source: MCP 2026-07-28, basic/index, `_meta`. */
const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";

/** Which field of a method's parameters `Mcp-Name` repeats. Source: MCP 2026-07-28, basic/transports. */
const NAMED_BY: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
};

/** Headers that repeat a request of the stateless era; none for other messages. */
export function modernHeaders(message: JsonObject): Readonly<Record<string, string>> {
  const method = ownValue(message, "method");
  const params = ownValue(message, "params");
  if (typeof method !== "string" || params === undefined || !isJsonObject(params)) return {};
  const meta = ownValue(params, "_meta");
  const version = meta !== undefined && isJsonObject(meta) ? ownValue(meta, VERSION_KEY) : undefined;
  if (typeof version !== "string") return {};
  const key = Object.hasOwn(NAMED_BY, method) ? NAMED_BY[method] : undefined;
  const name = key === undefined ? undefined : ownValue(params, key);
  return {
    "mcp-protocol-version": version,
    "mcp-method": method,
    ...(typeof name === "string" ? { "mcp-name": headerValue(name) } : {}),
  };
}

/** A value as a header of the protocol carries it: as it stands, or in base64 where it could not. */
export function headerValue(value: string): string {
  const plain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !/^=\?base64\?.*\?=$/.test(value);
  return plain ? value : `=?base64?${Buffer.from(value).toString("base64")}?=`;
}
