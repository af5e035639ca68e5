import type { CallContext } from "../../core/call.ts";
import type { SecretSource } from "../../core/secrets.ts";
import type { NamedProgram } from "../shared/launcher/examine.ts";
import { pathOf } from "../shared/launcher/inherited-environment.ts";
import { secretValue, unusableSecret } from "../shared/secret-value.ts";
import type { ScriptConfig } from "./script-config.ts";

/** Names that the gateway sets itself. */
export const RESERVED_VARIABLE: RegExp = /^(TOOLGATE_|TRACEPARENT$|TRACESTATE$|BAGGAGE$)/i;

/** Source: https://www.w3.org/TR/trace-context/#traceparent-header. What looks otherwise is not passed on. */
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** References of all secrets a tool needs. */
export function secretRefsOf(config: ScriptConfig): readonly string[] {
  return config.env.flatMap((entry) => ("secretRef" in entry ? [entry.secretRef] : []));
}

/**
 * The environment of a program, whatever the call. Secrets are read now, so that rotation works.
 *
 * @throws GatewayError SECRET_MISSING.
 */
export function programEnvironment({ env, tool }: ScriptConfig, secrets: SecretSource): Record<string, string> {
  const values = env.map((entry): [string, string] => {
    if (!("secretRef" in entry)) return [entry.name, entry.value];
    const secret = secretValue(tool.name, entry.secretRef, secrets);
    if (secret.includes("\0")) throw unusableSecret(tool.name, entry.secretRef, "holds a NUL, which no variable can");
    return [entry.name, secret];
  });
  return Object.fromEntries(values);
}

/** What a program is told of its call, by name of the variable. */
export function callVariables(tool: string, context: CallContext, nowMs: number): Record<string, string> {
  const { traceparent, tracestate, baggage, deadlineMs } = context;
  const known: Readonly<Record<string, string | undefined>> = {
    TOOLGATE_TOOL: tool,
    TOOLGATE_CALL_ID: context.callId,
    TOOLGATE_ATTEMPT: String(context.attempt),
    TOOLGATE_DEADLINE_MS: String(Math.floor(deadlineMs)),
    TOOLGATE_TIMEOUT_MS: String(Math.max(0, Math.floor(deadlineMs - nowMs))),
    TOOLGATE_SESSION_ID: context.sessionId,
    TOOLGATE_TURN_ID: context.turnId,
    TOOLGATE_TASK_ID: context.taskId,
    TOOLGATE_TOOL_CALL_ID: context.toolCallId,
    TRACESTATE: tracestate,
    BAGGAGE: baggage,
    TRACEPARENT: traceparent !== undefined && TRACEPARENT.test(traceparent) ? traceparent : undefined,
  };
  const usable = Object.entries(known).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !entry[1].includes("\0"),
  );
  return Object.fromEntries(usable);
}

/** What a call of the tool starts. */
export function startedProgram({ command, cwd, env }: ScriptConfig): NamedProgram {
  return { command: command.kind === "shell" ? "/bin/sh" : command.file, cwd, path: pathOf(env) };
}
