import { constants } from "node:fs";
import { access, readFile, stat } from "node:fs/promises";
import { type GatewayConfig, parseGatewayConfig } from "../config/gateway-config.ts";
import { isLoopbackHost } from "../config/listen-address.ts";
import { GatewayError } from "../core/errors.ts";
import { isJsonArray, isJsonObject, ownValue, parseJson } from "../core/json.ts";
import { addressText } from "../core/listen-address.ts";
import { OPERATOR_ROLE } from "../core/principal.ts";
import type { ApiKeys } from "./api-keys.ts";
import { systemReason } from "./arguments.ts";
import type { Check } from "./check.ts";
import { CliError } from "./cli-error.ts";
import type { CommandContext, Surroundings } from "./command.ts";
import { findSettings, problemLines, readConfig, userFolder } from "./gateway-settings.ts";
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
    if (outcome.ok) return [{ subject, status: "ok", message: "valid", mend: "" }, ...exposureChecks(outcome.config)];
    return problemLines(source.file, outcome.problems).map((message) => {
      return { subject, status: "failed", message, mend: "Correct the place named." };
    });
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return [{ subject: "settings", status: "failed", message: error.message, mend: "Make the file readable." }];
  }
}

/** What is allowed and weak: what crosses a network in plain sight, and who may do more than it has to. */
function exposureChecks({ listen, tls, identity }: GatewayConfig): Check[] {
  if (identity === undefined) return [];
  const checks: Check[] = [];
  const outside = "host" in listen && !isLoopbackHost(listen.host);
  if (outside && tls === undefined) {
    const message = `${addressText(listen)} can be reached from outside without TLS, so keys and tokens can be read on their way`;
    const mend = "Set `tls` in gateway.yaml, or see that something before the gateway speaks TLS.";
    checks.push({ subject: "transport", status: "warning", message, mend });
  }
  if (identity.anonymousRoles?.includes(OPERATOR_ROLE) === true) {
    const message = `callers that show nothing have the role \`${OPERATOR_ROLE}\``;
    const mend = "Take it out of `identity.anonymous_roles` in gateway.yaml.";
    checks.push({ subject: "anonymous callers", status: outside ? "failed" : "warning", message, mend });
  }
  return checks;
}

/** Whether the files that tell callers apart can be used, and which keys have lost their use. */
export async function identityChecks({ surroundings, loadApiKeys }: CommandContext): Promise<Check[]> {
  const config = await readConfig({}, surroundings).then(
    (found) => found.config,
    // Said already, with every problem.
    () => undefined,
  );
  if (config?.identity === undefined) return [];
  const { apiKeys, jwt } = config.identity;
  const files = jwt.flatMap(({ jwks }) => ("file" in jwks ? [jwksCheck(jwks.file)] : []));
  return [...(apiKeys ? await keyChecks(await loadApiKeys(config)) : []), ...(await Promise.all(files))];
}

async function keyChecks(keys: ApiKeys): Promise<Check[]> {
  const subject = "API keys";
  try {
    const all = (await keys.list()).filter(({ revokeTimeMs }) => revokeTimeMs === undefined);
    const ended = all.filter(({ expireTimeMs }) => expireTimeMs !== undefined && expireTimeMs <= Date.now());
    const expired = ended.map(({ id, name }): Check => {
      const mend = `toolgate key create --name ${name}, then toolgate key revoke ${id}`;
      return { subject: `API key ${id} of "${name}"`, status: "warning", message: "has expired", mend };
    });
    const message = `${all.length - ended.length} can be used`;
    return [{ subject, status: "ok", message, mend: "" }, ...expired];
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return [{ subject, status: "failed", message: error.message, mend: "Mend the file, or its permissions." }];
  }
}

async function jwksCheck(file: string): Promise<Check> {
  const subject = `jwks_file ${file}`;
  const mend = "Write there what the issuer publishes as its JSON Web Key Set.";
  try {
    const value = parseJson(await readFile(file, "utf8"));
    const keys = isJsonObject(value) ? ownValue(value, "keys") : undefined;
    if (!isJsonArray(keys)) return { subject, status: "failed", message: "holds no list of `keys`", mend };
    return { subject, status: "ok", message: `${keys.length} keys`, mend: "" };
  } catch (error) {
    const message = error instanceof SyntaxError ? "is no JSON" : systemReason(error);
    return { subject, status: "failed", message, mend };
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
