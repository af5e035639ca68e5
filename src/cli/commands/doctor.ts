import { durationMs } from "@bufbuild/protobuf/wkt";
import type { DeclarationProblem, DiagnoseResponse } from "../../../clients/typescript/src/index.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Check } from "../check.ts";
import { type CommandContext, writeJson } from "../command.ts";
import { connect } from "../connection.ts";
import { durationWords } from "../durations.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { problemJson } from "../json-output.ts";
import { folderCheck, identityChecks, proxyCheck, runtimeCheck, settingsCheck } from "../local-checks.ts";
import { asFailure, mendOf } from "../render-error.ts";
import { problemPlace } from "../render-tool.ts";
import { type Output, type Paint, plain } from "../terminal.ts";
import { statusWord } from "../words.ts";

/** The gateway ends its own examination within 20 s; the whole command stays below 30 s. */
const GATEWAY_LIMIT_MS = 25_000;

/** How `doctor` is asked. */
export interface DoctorOptions {
  /** What is only worth a look counts as broken. */
  readonly strict?: boolean;
}

/** Examines this machine and the gateway. Ends with 1 where something is broken; a warning breaks nothing, unless asked. */
export async function examine({ strict = false }: DoctorOptions, context: CommandContext): Promise<ExitCode> {
  const { surroundings } = context;
  const gateway = await askGateway(context);
  const checks = [
    runtimeCheck(surroundings.runtime),
    await folderCheck(surroundings),
    ...(await settingsCheck(surroundings)),
    ...(await identityChecks(context)),
    ...proxyCheck(surroundings.env),
    ...gateway.checks,
  ];
  if (context.json) await writeJson(reportJson(checks, gateway, context), context);
  else printReport(checks, context.out, context.err);
  const bad = checks.some(({ status }) => status === "failed" || (strict && status === "warning"));
  return bad ? EXIT.failed : EXIT.ok;
}

interface GatewayReport {
  readonly checks: readonly Check[];
  readonly diagnosis: DiagnoseResponse | undefined;
}

async function askGateway(context: CommandContext): Promise<GatewayReport> {
  const subject = `gateway ${context.address}`;
  try {
    using connection = await connect(context, context.surroundings.env);
    const diagnosis = await connection.client.diagnose({ signal: context.signal, timeoutMs: GATEWAY_LIMIT_MS });
    const uptime = diagnosis.uptime === undefined ? "" : `, up for ${durationWords(durationMs(diagnosis.uptime))}`;
    const message = `toolgate ${plain(diagnosis.version)} on ${plain(diagnosis.runtime)}${uptime}`;
    // The gateway's checks name refused declarations too; the problems themselves have line and column apart.
    const declared = diagnosis.problems.filter(({ source }) => !source.startsWith("server:"));
    const refused = new Set(declared.map(({ source }) => source));
    const others = diagnosis.checks.filter((check) => !refused.has(check.subject));
    const checks: Check[] = [
      { subject, status: "ok", message, mend: "" },
      ...versionCheck(diagnosis.version, context.version),
      ...others.map((check) => ({
        subject: plain(check.subject),
        status: checkStatus(statusWord(check.status)),
        message: plain(check.message),
        mend: plain(check.mend),
      })),
      ...declared.map(problemCheck),
    ];
    return { checks, diagnosis };
  } catch (error) {
    if (context.signal.aborted) throw error;
    const failure = asFailure(error);
    const check: Check = { subject, status: "failed", message: plain(failure.message), mend: mendOf(failure) };
    return { checks: [check], diagnosis: undefined };
  }
}

function versionCheck(gateway: string, own: string): Check[] {
  if (gateway === own) return [];
  const message = `the gateway is toolgate ${plain(gateway)}, this command ${own}`;
  return [{ subject: "versions", status: "warning", message, mend: "Use the same version of both." }];
}

function problemCheck(problem: DeclarationProblem): Check {
  const serving = problem.lastGoodServing ? "; the last good version keeps serving" : "";
  return {
    subject: "declaration",
    status: problem.note ? "warning" : "failed",
    message: `${problemPlace(problem)} ${plain(problem.message)}${serving}`,
    mend: problem.note ? "" : "Correct the file; it is read again as soon as it is written.",
  };
}

function checkStatus(word: string): Check["status"] {
  return word === "ok" || word === "failed" ? word : "warning";
}

function printReport(checks: readonly Check[], out: Output, err: Output): void {
  for (const { subject, status, message, mend } of checks) {
    out.line(`${out.paint(PAINTS[status], LABELS[status])}  ${out.paint("bold", subject)}: ${message}`);
    if (mend !== "" && status !== "ok") out.line(`         ${out.paint("cyan", "mend:")} ${mend}`);
  }
  const count = (status: Check["status"]): number => checks.filter((check) => check.status === status).length;
  err.line(`${count("ok")} ok, ${count("warning")} to look at, ${count("failed")} broken`);
}

const LABELS: Readonly<Record<Check["status"], string>> = { ok: "ok     ", warning: "look at", failed: "broken " };

const PAINTS: Readonly<Record<Check["status"], Paint>> = { ok: "green", warning: "yellow", failed: "red" };

function reportJson(checks: readonly Check[], { diagnosis }: GatewayReport, context: CommandContext): JsonObject {
  return {
    version: context.version,
    checks: checks.map(({ subject, status, message, mend }) => ({ subject, status, message, mend })),
    gateway:
      diagnosis === undefined
        ? null
        : {
            address: context.address,
            version: diagnosis.version,
            runtime: diagnosis.runtime,
            ...(diagnosis.uptime === undefined ? {} : { uptimeMs: durationMs(diagnosis.uptime) }),
            problems: diagnosis.problems.map(problemJson),
          },
  };
}
