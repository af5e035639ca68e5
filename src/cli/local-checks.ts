import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { parseGatewayConfig } from "../config/gateway-config.ts";
import { systemReason } from "./arguments.ts";
import type { Check } from "./check.ts";
import { CliError } from "./cli-error.ts";
import type { Surroundings } from "./command.ts";
import { findSettings, problemLines, userFolder } from "./gateway-settings.ts";
import { isSupportedRuntime, SUPPORTED_RUNTIMES } from "./runtime-version.ts";

/** Variables that other programs take a proxy from. */
const PROXY_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/** Whether this runtime is one the gateway runs on. */
export function runtimeCheck(version: string): Check {
  const subject = "runtime";
  return isSupportedRuntime(version)
    ? { subject, status: "ok", message: `Node.js ${version}`, mend: "" }
    : {
        subject,
        status: "failed",
        message: `Node.js ${version}, and the gateway needs ${SUPPORTED_RUNTIMES}`,
        mend: "Install a supported Node.js.",
      };
}

/** Whether the user's own folder can be used: what it holds is configuration, declarations and registrations. */
export async function folderCheck(surroundings: Surroundings): Promise<Check> {
  const folder = userFolder(surroundings);
  const subject = `folder ${folder}`;
  try {
    if (!(await stat(folder)).isDirectory()) {
      return { subject, status: "failed", message: "it is no folder", mend: `Move ${folder} away.` };
    }
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return { subject, status: "ok", message: "readable and writable", mend: "" };
  } catch (error) {
    if (isMissing(error)) {
      return { subject, status: "ok", message: "not there yet; `toolgate serve` makes it when it needs it", mend: "" };
    }
    const mend = `Give yourself the right to read and write it: chmod u+rwx ${folder}`;
    return { subject, status: "failed", message: systemReason(error), mend };
  }
}

/** Whether the settings that `toolgate serve` would take here can be read. */
export async function settingsCheck(surroundings: Surroundings): Promise<Check[]> {
  try {
    const { path, text, source } = await findSettings(undefined, surroundings);
    if (path === undefined) return [];
    const subject = `settings ${path}`;
    const outcome = parseGatewayConfig(text, source);
    if (outcome.ok) return [{ subject, status: "ok", message: "valid", mend: "" }];
    return problemLines(source.file, outcome.problems).map((message) => {
      return { subject, status: "failed", message, mend: "Correct the place named." };
    });
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return [{ subject: "settings", status: "failed", message: error.message, mend: "Make the file readable." }];
  }
}

/** A note where a proxy is set that the gateway does not use. */
export function proxyCheck(env: NodeJS.ProcessEnv): Check[] {
  const names = PROXY_VARIABLES.filter((name) => (env[name] ?? "") !== "");
  if (names.length === 0) return [];
  const message = `${names.join(", ")} set, and the gateway reaches upstreams directly`;
  return [
    { subject: "proxy", status: "warning", message, mend: "Make sure the upstreams can be reached without a proxy." },
  ];
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
