import type { ContinuationInput } from "../../gen/toolgate/v1/call_pb.ts";
import type { GatewayError } from "../core/errors.ts";
import type { Continuation, InputAnswer } from "../core/input-request.ts";
import {
  hasDuplicateNames,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  jsonPointer,
  ownValue,
  parseJson,
} from "../core/json.ts";
import { jsonFault } from "../core/json-fault.ts";
import { optionalText, requestInvalid } from "./request-error.ts";

const STATE = "invocation.continuation.state";
const INPUTS = "invocation.continuation.inputs_json";

/** Longest state: more than any the gateway gives. */
const MAX_STATE_LENGTH = 256;

/** Most answers, and the longest id of one. */
const MAX_ANSWERS = 100;
const MAX_ID_LENGTH = 256;

/**
 * Reads the answers to a tool that asked for input.
 *
 * @throws GatewayError REQUEST_INVALID.
 */
export function decodeContinuation({ state, inputsJson }: ContinuationInput): Continuation {
  const handle = optionalText(STATE, state, MAX_STATE_LENGTH);
  if (handle === undefined) throw requestInvalid(STATE, "MISSING", "must be the state of `needs_input`, got nothing");
  const inputs = parseInputs(inputsJson);
  const ids = Object.keys(inputs);
  if (ids.length > MAX_ANSWERS) {
    throw requestInvalid(INPUTS, "TOO_MANY", `may have at most ${MAX_ANSWERS} answers, got ${ids.length}`);
  }
  return { state: handle, answers: new Map(ids.map((id) => [id, decodeAnswer(id, ownValue(inputs, id))])) };
}

function parseInputs(text: string): JsonObject {
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch {
    throw unreadable(text);
  }
  if (hasDuplicateNames(text, value)) throw unreadable(text);
  if (isJsonObject(value)) return value;
  throw requestInvalid(INPUTS, "WRONG_TYPE", 'must be a JSON object such as {"ID": {"action": "decline"}}');
}

function unreadable(text: string): GatewayError {
  const fault = jsonFault(text) ?? { reason: "NOT_JSON", description: "is not valid JSON" };
  return requestInvalid(INPUTS, fault.reason, fault.description);
}

function decodeAnswer(id: string, answer: JsonValue | undefined): InputAnswer {
  optionalText(INPUTS, id, MAX_ID_LENGTH);
  const field = `${INPUTS}${jsonPointer([id])}`;
  const action = answer !== undefined && isJsonObject(answer) ? ownValue(answer, "action") : undefined;
  const content = answer !== undefined && isJsonObject(answer) ? ownValue(answer, "content") : undefined;
  if (action === "decline" || action === "cancel") return { action };
  if (action !== "accept") {
    throw requestInvalid(field, "WRONG_VALUE", "must have `action`: accept, decline or cancel");
  }
  // Who only has to agree, as to go to an address, has nothing more to say.
  return { action, content: content ?? {} };
}
