import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { ToolgateError } from "../../clients/typescript/src/index.ts";
import manifest from "../../package.json" with { type: "json" };
import { EXIT, exitCodeOf, exitCodeOfFailure } from "../../src/cli/exit-codes.ts";
import { isSupportedRuntime, SUPPORTED_RUNTIMES } from "../../src/cli/runtime-version.ts";
import { ERROR_CATALOGUE } from "../../src/core/errors.ts";
import { FAILURE_REASONS } from "../../src/core/failures.ts";

test("exit codes are what docs/cli.md says", async () => {
  expect(EXIT).toEqual({
    ok: 0,
    failed: 1,
    usage: 2,
    notFound: 3,
    noGateway: 4,
    upstream: 5,
    deadline: 6,
    denied: 7,
    refused: 8,
    needsInput: 9,
    internal: 70,
    interrupted: 130,
    terminated: 143,
  });
  const page = await readFile(new URL("../../docs/cli.md", import.meta.url), "utf8");
  const listed = [...page.matchAll(/^\| (\d+) \| /gm)].map((match) => Number(match[1]));
  expect(listed).toEqual(Object.values(EXIT));
});

test("network, credential and argument problems end with codes of their own [S2-88]", () => {
  const codes = Object.fromEntries(
    Object.entries(ERROR_CATALOGUE).map(([reason, { status }]) => [
      reason,
      exitCodeOf(new ToolgateError(reason, status, "")),
    ]),
  );
  expect(codes).toEqual({
    TOOL_NOT_FOUND: 3,
    SERVICE_NOT_FOUND: 3,
    TOOL_DISABLED: 8,
    TOOL_EXISTS: 8,
    PERMISSION_DENIED: 7,
    CREDENTIAL_MISSING: 7,
    CREDENTIAL_INVALID: 7,
    CREDENTIALS_THROTTLED: 7,
    CREDENTIAL_UNCHECKED: 7,
    CALLER_CHANGED: 8,
    TOOL_NOT_REMOVABLE: 8,
    ARGUMENTS_INVALID: 2,
    ARGUMENTS_MALFORMED: 2,
    DECLARATION_INVALID: 8,
    REQUEST_INVALID: 2,
    PAGE_TOKEN_INVALID: 2,
    REQUEST_ID_REUSED: 2,
    REQUEST_TOO_LARGE: 2,
    ETAG_MISMATCH: 8,
    CONTRACT_CHANGED: 8,
    NOT_SUPPORTED_YET: 2,
    SECRET_MISSING: 7,
    TEMPLATE_VALUE_REFUSED: 2,
    CALL_CANCELLED: 130,
    CALL_DEADLINE_EXCEEDED: 6,
    UPSTREAM_TIMEOUT: 5,
    UPSTREAM_UNREACHABLE: 5,
    UPSTREAM_ANSWER_LOST: 5,
    UPSTREAM_POOL_EXHAUSTED: 5,
    CIRCUIT_OPEN: 5,
    RESULT_TOO_LARGE: 5,
    RESULT_NOT_FOUND: 3,
    RESULT_GONE: 3,
    RESULT_QUERY_INVALID: 2,
    CONCURRENCY_LIMIT_REACHED: 8,
    RATE_LIMITED: 8,
    GATEWAY_STOPPING: 4,
    WATCH_STALLED: 4,
    OUTCOME_UNKNOWN: 5,
    CALL_ALREADY_MADE: 8,
    LEDGER_UNAVAILABLE: 70,
    LEDGER_FULL: 8,
    CALL_NOT_FOUND: 3,
    RESUME_EXPIRED: 3,
    CONTINUATION_NOT_FOUND: 3,
    STORE_FAILED: 70,
    REGISTRY_FULL: 8,
    INTERNAL: 70,
  });
  const failures = Object.keys(FAILURE_REASONS).map((reason) => [reason, exitCodeOfFailure(reason)]);
  expect(failures.filter(([, code]) => code !== 1)).toEqual([["UPSTREAM_UNAUTHORIZED", 7]]);
});

test("a reason that only a newer gateway knows ends by its status", () => {
  expect(exitCodeOf(new ToolgateError("QUOTA_SPENT", "RESOURCE_EXHAUSTED", ""))).toBe(70);
  expect(exitCodeOf(new ToolgateError("ROLE_MISSING", "PERMISSION_DENIED", ""))).toBe(7);
  expect(exitCodeOf(new ToolgateError("RPC_FAILED", "UNAVAILABLE", ""))).toBe(4);
  expect(exitCodeOf(new ToolgateError("constructor", "NOT_FOUND", ""))).toBe(3);
});

test("the supported runtimes are those of package.json", () => {
  expect(SUPPORTED_RUNTIMES).toBe(manifest.engines.node);
  const supported = ["22.23.3", "22.24.0", "24.18.1", "24.21.0", "25.0.0", "26.1.2"];
  const refused = ["18.20.0", "20.20.2", "22.23.2", "22.9.9", "23.11.0", "24.17.9", "24.18.0"];
  expect(supported.filter((version) => !isSupportedRuntime(version))).toEqual([]);
  expect(refused.filter(isSupportedRuntime)).toEqual([]);
});
