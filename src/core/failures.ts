/**
 * Words a tool's own failure (`result.failure.reason`) can have. These are answers of the tool, not RPC errors.
 * docs/errors.md is generated from this table too.
 */
export const FAILURE_REASONS = {
  TOOL_FAILED: "The tool answered that it failed: `success_field` is not `success_value`, or MCP `isError`.",
  UPSTREAM_REJECTED:
    "The server refused the request by its protocol: no such tool there, or arguments it does not take; `upstream_code` has the JSON-RPC code.",
  UPSTREAM_ERROR:
    "The server answered with an error of its protocol instead of a result; `upstream_code` has the JSON-RPC code.",
  UPSTREAM_STATUS: "The upstream answered with an HTTP or gRPC status that is no success; `upstream_code` has it.",
  UPSTREAM_UNAUTHORIZED:
    "The upstream refused the gateway's credential (HTTP 401 or 403, gRPC UNAUTHENTICATED or PERMISSION_DENIED).",
  UPSTREAM_RATE_LIMITED: "The upstream asks to slow down (HTTP 429, gRPC RESOURCE_EXHAUSTED).",
  UPSTREAM_BAD_RESPONSE: "The upstream's answer cannot be read: not JSON where JSON is due, or a wrong encoding.",
  INPUT_REQUIRED:
    "The tool asks for input, and the caller does not say `accepts_input`: what it asked was declined, and the message says what it was.",
  EXIT_CODE: "The program ended with an exit code that is no success, or by a signal; `upstream_code` has the code.",
  FIELD_MISSING: "The answer lacks the field that `data_field` or `success_field` names, or does not fit `select`.",
  OUTCOME_UNKNOWN:
    "An earlier call with the same `request_id` was interrupted; the result is what the tool's `reconcile` says of it.",
  RESULT_TOO_LONG:
    "The result is longer than `max_length` and `truncation: error` is declared, or `select` takes too many steps on it.",
} as const satisfies Readonly<Record<string, string>>;

/** Stable word for a failure the tool itself reported. */
export type FailureReason = keyof typeof FAILURE_REASONS;

/**
 * Words of what the gateway has to say of a result that is given all the same (`result.notices[].reason`).
 * docs/errors.md is generated from this table too.
 */
export const NOTICE_REASONS = {
  OUTPUT_SCHEMA_MISMATCH:
    "The tool declares an output schema, and what it gave does not fit, or has no structured part. The result is as the tool gave it.",
  CONTENT_UNREADABLE:
    "A part of the result is not as the protocol has it. It stands in the result as the JSON text that came.",
  QUESTION_DECLINED:
    "The server asked for input while several of its calls ran, and did not say for which: it was told no. Call the tool again while no other call of the server runs, if the result wants for an answer.",
  MEDIA_TYPE_MISMATCH:
    "A binary part was declared as another media type than its bytes are: it has the type of its bytes.",
  RESULT_NOT_KEPT:
    "The result was too long and could not be kept for reading on: there is no room, or the disk refuses. What stands here is all there is of it.",
  MASKED:
    "Something in the result was a secret of the gateway's, had the shape of a credential, or is not to be shown by a rule of the tool's (`result.redact`): it stands as `***`.",
  HIDDEN_CHARACTERS:
    "The result had characters that are not seen or turn text around, such as tag characters and direction overrides: they stand as `<U+202E>`, so that they hide nothing from who reads it.",
  RESULT_BUDGET:
    "The result was shortened to what one result may take of the model's window (`model_window`). Read on by its handle, or ask for less.",
  TURN_BUDGET:
    "The result was shortened to what the calls of its turn have left for it of the model's window (`model_window`). Read on by its handle in another turn.",
  RESULT_KEPT_IN_PART:
    "The answer was larger than there was room for: its beginning was kept for reading on, and the rest was not read.",
} as const satisfies Readonly<Record<string, string>>;

/** Stable word for a notice. */
export type NoticeReason = keyof typeof NOTICE_REASONS;
