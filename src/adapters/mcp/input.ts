import { GatewayError } from "../../core/errors.ts";
import type { Continuation, InputAnswer, InputRequest, NeededInput } from "../../core/input-request.ts";
import { isJsonObject, type JsonObject, type JsonValue, ownValue, parseJson, stringifyJson } from "../../core/json.ts";
import type { RpcError } from "./result-error.ts";

/** What a server may ask of the gateway for a caller that accepts input. Not `roots`: some servers obey them as limits. */
export const ASKING_CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {} };

/** What refuses a request whose answer knows no no. Source: MCP 2025-11-25, sampling, error handling. */
const REJECTED: RpcError = { code: -1, message: "the user rejected the request" };

/** What the gateway tells a server that asked, as JSON-RPC has it. */
export type InputReply = { readonly result: JsonObject } | { readonly error: RpcError };

type InputKind = InputRequest["kind"];

/** Reads what a server asks in the middle of a call; `undefined`: it is nothing that a caller is asked. */
export function inputRequest(method: JsonValue | undefined, params: JsonValue | undefined): InputRequest | undefined {
  const given = params !== undefined && isJsonObject(params) ? params : {};
  const message = textOf(given, "message");
  switch (method) {
    case "elicitation/create": {
      if (ownValue(given, "mode") === "url") return { kind: "url", message, url: textOf(given, "url"), params: given };
      const schema = ownValue(given, "requestedSchema");
      const form = { kind: "form", message, params: given } as const;
      return schema !== undefined && isJsonObject(schema) ? { ...form, schema } : form;
    }
    case "sampling/createMessage":
      return { kind: "sampling", message: textOf(given, "systemPrompt"), params: given };
    case "roots/list":
      return { kind: "roots", message, params: given };
    default:
      return undefined;
  }
}

/** What a caller's answer is to the server that asked over a request of its own. */
export function inputReply(kind: InputKind, answer: InputAnswer): InputReply {
  const said = inputResponse(kind, answer);
  return answer.action === "accept" || kind === "form" || kind === "url" ? { result: said } : { error: REJECTED };
}

/** What the server asks in a result of the stateless era; `undefined`: nothing that can be read. */
export function neededInput(raw: JsonObject): NeededInput | undefined {
  const asked = ownValue(raw, "inputRequests") ?? {};
  const requestState = ownValue(raw, "requestState");
  if (!isJsonObject(asked) || (requestState !== undefined && typeof requestState !== "string")) return undefined;
  const requests = new Map<string, InputRequest>();
  for (const [id, each] of Object.entries(asked)) {
    const request = isJsonObject(each) ? inputRequest(ownValue(each, "method"), ownValue(each, "params")) : undefined;
    if (request === undefined) return undefined;
    requests.set(id, request);
  }
  const kinds = Object.fromEntries([...requests].map(([id, { kind }]) => [id, kind]));
  return { requests, state: stringifyJson({ kinds, ...(requestState === undefined ? {} : { requestState }) }) };
}

/**
 * What a call of the stateless era has besides, to go on where the server asked.
 *
 * @throws GatewayError INTERNAL for a state that {@link neededInput} did not make.
 */
export function continuedParams({ state, answers }: Continuation): JsonObject {
  const kept = parseJson(state);
  const kinds = isJsonObject(kept) ? ownValue(kept, "kinds") : undefined;
  if (!isJsonObject(kept) || kinds === undefined || !isJsonObject(kinds)) {
    throw new GatewayError("INTERNAL", "internal error", { cause: new Error("a state is none of this adapter's") });
  }
  const requestState = ownValue(kept, "requestState");
  const responses = [...answers].map(([id, answer]): [string, JsonObject] => {
    return [id, inputResponse(ownValue(kinds, id), answer)];
  });
  return {
    ...(responses.length === 0 ? {} : { inputResponses: Object.fromEntries(responses) }),
    ...(requestState === undefined ? {} : { requestState }),
  };
}

function inputResponse(kind: JsonValue | undefined, answer: InputAnswer): JsonObject {
  if (answer.action !== "accept") return kind === "roots" ? { roots: [] } : { action: answer.action };
  if (kind === "url") return { action: "accept" };
  if (kind === "form") return { action: "accept", content: answer.content };
  return isJsonObject(answer.content) ? answer.content : {};
}

function textOf(object: JsonObject, key: string): string {
  const value = ownValue(object, key);
  return typeof value === "string" ? value : "";
}
