import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CheckResultSchema, ExplainResponseSchema } from "../../gen/toolgate/v1/operator_service_pb.ts";
import type { DeclarationProblemSchema, RegisterRequest } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { CheckResult, DeclarationProblem, RegisterOptions, ToolExplanation } from "../core/registry.ts";
import { durationMs } from "./durations.ts";
import { CHECK_NUMBERS } from "./enums.ts";
import { optionalText, requestInvalid } from "./request-error.ts";
import { cutUtf8, utf8Length } from "./utf8.ts";

/** Most problems in one message. */
const MAX_PROBLEMS = 1000;
/** Most bytes of one problem's text. */
const MAX_PROBLEM_BYTES = 1024;
/** Largest declaration. */
const MAX_DECLARATION_BYTES = 1024 * 1024;
const DAY_MS = 86_400_000;
/** Longest etag: those of the gateway are hexadecimal digests. */
const MAX_ETAG_LENGTH = 256;

/**
 * What a registration asks for.
 *
 * @throws GatewayError REQUEST_INVALID.
 */
export function decodeRegister(request: RegisterRequest): RegisterOptions {
  const { declaration } = request;
  if (declaration.case === undefined) {
    throw requestInvalid(
      "declaration",
      "MISSING",
      "must be given as declaration_yaml or declaration_json, got nothing",
    );
  }
  const bytes = utf8Length(declaration.value);
  const yaml = declaration.case === "declarationYaml";
  if (bytes > MAX_DECLARATION_BYTES) {
    const field = yaml ? "declaration_yaml" : "declaration_json";
    throw requestInvalid(field, "TOO_LONG", `may have at most ${MAX_DECLARATION_BYTES} bytes, got ${bytes}`);
  }
  return {
    text: declaration.value,
    format: yaml ? "yaml" : "json",
    validateOnly: request.validateOnly,
    etag: decodeEtag(request.etag),
    mustNotExist: request.mustNotExist,
    leaseMs: durationMs("lease", request.lease, { minMs: 1000, maxMs: 30 * DAY_MS, words: "from 1 s to 30 days" }),
  };
}

/** An etag of a request; empty: none. @throws GatewayError REQUEST_INVALID. */
export function decodeEtag(etag: string): string | undefined {
  return optionalText("etag", etag, MAX_ETAG_LENGTH);
}

/** Problems as messages: at most 1,000, each shortened to 1,024 bytes. */
export function encodeProblems(
  problems: readonly DeclarationProblem[],
): MessageInitShape<typeof DeclarationProblemSchema>[] {
  return problems.slice(0, MAX_PROBLEMS).map(({ source, line, column, message, lastGoodServing, note }) => ({
    source,
    line,
    column,
    message: cutUtf8(message, MAX_PROBLEM_BYTES),
    lastGoodServing,
    note,
  }));
}

/** The policy in force as a message. */
export function encodeToolExplanation(explanation: ToolExplanation): MessageInitShape<typeof ExplainResponseSchema> {
  return {
    name: explanation.definition.name,
    etag: explanation.definition.etag,
    values: explanation.values.map(({ key, value, origin }) => ({ key, value, origin })),
    steps: [...explanation.steps],
  };
}

/** A finding as a message. */
export function encodeCheck({
  subject,
  status,
  message,
  mend,
}: CheckResult): MessageInitShape<typeof CheckResultSchema> {
  return { subject, status: CHECK_NUMBERS[status], message, mend };
}
