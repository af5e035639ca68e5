import { expect, test } from "vitest";
import { ERROR_CATALOGUE, GatewayError } from "../../src/core/errors.ts";
import { FAILURE_REASONS } from "../../src/core/failures.ts";

test("every reason has the status it was published with", () => {
  expect(Object.fromEntries(Object.entries(ERROR_CATALOGUE).map(([reason, entry]) => [reason, entry.status]))).toEqual({
    TOOL_NOT_FOUND: "NOT_FOUND",
    TOOL_DISABLED: "FAILED_PRECONDITION",
    TOOL_EXISTS: "ALREADY_EXISTS",
    CREDENTIAL_MISSING: "UNAUTHENTICATED",
    CREDENTIAL_INVALID: "UNAUTHENTICATED",
    CREDENTIALS_THROTTLED: "RESOURCE_EXHAUSTED",
    CREDENTIAL_UNCHECKED: "UNAVAILABLE",
    CALLER_CHANGED: "ABORTED",
    TOOL_NOT_REMOVABLE: "FAILED_PRECONDITION",
    ARGUMENTS_INVALID: "INVALID_ARGUMENT",
    ARGUMENTS_MALFORMED: "INVALID_ARGUMENT",
    DECLARATION_INVALID: "INVALID_ARGUMENT",
    REQUEST_INVALID: "INVALID_ARGUMENT",
    PAGE_TOKEN_INVALID: "INVALID_ARGUMENT",
    REQUEST_ID_REUSED: "INVALID_ARGUMENT",
    REQUEST_TOO_LARGE: "RESOURCE_EXHAUSTED",
    PERMISSION_DENIED: "PERMISSION_DENIED",
    REGISTRY_FULL: "RESOURCE_EXHAUSTED",
    SERVICE_NOT_FOUND: "NOT_FOUND",
    ETAG_MISMATCH: "ABORTED",
    CONTRACT_CHANGED: "FAILED_PRECONDITION",
    NOT_SUPPORTED_YET: "UNIMPLEMENTED",
    SECRET_MISSING: "FAILED_PRECONDITION",
    TEMPLATE_VALUE_REFUSED: "INVALID_ARGUMENT",
    CALL_CANCELLED: "CANCELLED",
    CALL_DEADLINE_EXCEEDED: "DEADLINE_EXCEEDED",
    UPSTREAM_TIMEOUT: "DEADLINE_EXCEEDED",
    UPSTREAM_UNREACHABLE: "UNAVAILABLE",
    UPSTREAM_POOL_EXHAUSTED: "RESOURCE_EXHAUSTED",
    UPSTREAM_ANSWER_LOST: "UNKNOWN",
    RESULT_TOO_LARGE: "RESOURCE_EXHAUSTED",
    RESULT_NOT_FOUND: "NOT_FOUND",
    RESULT_GONE: "NOT_FOUND",
    RESULT_QUERY_INVALID: "INVALID_ARGUMENT",
    CONCURRENCY_LIMIT_REACHED: "RESOURCE_EXHAUSTED",
    CIRCUIT_OPEN: "UNAVAILABLE",
    RATE_LIMITED: "RESOURCE_EXHAUSTED",
    GATEWAY_STOPPING: "UNAVAILABLE",
    WATCH_STALLED: "RESOURCE_EXHAUSTED",
    OUTCOME_UNKNOWN: "UNKNOWN",
    CALL_ALREADY_MADE: "ALREADY_EXISTS",
    LEDGER_UNAVAILABLE: "UNAVAILABLE",
    LEDGER_FULL: "RESOURCE_EXHAUSTED",
    CALL_NOT_FOUND: "NOT_FOUND",
    RESUME_EXPIRED: "OUT_OF_RANGE",
    CONTINUATION_NOT_FOUND: "NOT_FOUND",
    STORE_FAILED: "UNAVAILABLE",
    INTERNAL: "INTERNAL",
  });
});

test("these reasons are retryable and no others", () => {
  const retryable = Object.entries(ERROR_CATALOGUE).filter(([, entry]) => entry.retryable);
  expect(retryable.map(([reason]) => reason)).toEqual([
    "CREDENTIALS_THROTTLED",
    "CREDENTIAL_UNCHECKED",
    "CALLER_CHANGED",
    "CALL_DEADLINE_EXCEEDED",
    "UPSTREAM_TIMEOUT",
    "UPSTREAM_UNREACHABLE",
    "UPSTREAM_POOL_EXHAUSTED",
    "CONCURRENCY_LIMIT_REACHED",
    "RATE_LIMITED",
    "CIRCUIT_OPEN",
    "GATEWAY_STOPPING",
    "WATCH_STALLED",
    "LEDGER_UNAVAILABLE",
    "LEDGER_FULL",
    "STORE_FAILED",
  ]);
});

test("these are the failure reasons of tools", () => {
  expect(Object.keys(FAILURE_REASONS)).toEqual([
    "TOOL_FAILED",
    "UPSTREAM_REJECTED",
    "UPSTREAM_ERROR",
    "UPSTREAM_STATUS",
    "UPSTREAM_UNAUTHORIZED",
    "UPSTREAM_RATE_LIMITED",
    "UPSTREAM_BAD_RESPONSE",
    "INPUT_REQUIRED",
    "EXIT_CODE",
    "FIELD_MISSING",
    "OUTCOME_UNKNOWN",
    "RESULT_TOO_LONG",
  ]);
});

test("an error takes its status and retryability from the catalogue and claims no effect unless told", () => {
  const error = new GatewayError("UPSTREAM_UNREACHABLE", "no connection");
  expect(error).toMatchObject({
    status: "UNAVAILABLE",
    retryable: true,
    effect: "none",
    modelMessage: "no connection",
    violations: [],
    metadata: {},
    retryAfterMs: undefined,
  });
  expect(Object.hasOwn(error, "cause")).toBe(false);
  expect(new GatewayError("INTERNAL", "x", { retryable: true, modelMessage: "y" })).toMatchObject({
    retryable: true,
    modelMessage: "y",
  });
});

test("what is not a GatewayError becomes INTERNAL without its text, and keeps it as cause", () => {
  const cause = new Error("secret detail");
  const error = GatewayError.from(cause);
  expect([error.reason, error.message, error.cause]).toEqual(["INTERNAL", "internal error", cause]);
  expect(GatewayError.from(error)).toBe(error);
});
