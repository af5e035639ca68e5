import { GatewayError } from "../../core/errors.ts";
import type { ProgramProblem } from "../shared/launcher/examine.ts";
import { findProgramProblem } from "../shared/launcher/examine.ts";
import { startedProgram } from "./environment.ts";
import type { ScriptConfig } from "./script-config.ts";

/** Codes of a system that has no room for one more process now. */
const SHORT_OF = new Set(["EAGAIN", "ENOMEM", "EMFILE", "ENFILE"]);

/** A program that was not started, and what keeps it from starting until somebody mends it. */
export interface StartFailure {
  readonly error: GatewayError;
  readonly problem: ProgramProblem | undefined;
}

/** Finds out why the system refused to start a program. `code` is the system's word. */
export async function startFailure(config: ScriptConfig, code: string, args: readonly string[]): Promise<StartFailure> {
  const tool = config.tool.name;
  if (SHORT_OF.has(code)) return { error: noRoom(config, code), problem: undefined };
  if (code === "E2BIG") {
    const bytes = args.reduce((sum, arg) => sum + Buffer.byteLength(arg), 0);
    const text = `${tool}: the arguments are too long for a command line (${bytes} bytes); send less, or declare \`stdin\`; the program was not started`;
    return {
      error: new GatewayError("TEMPLATE_VALUE_REFUSED", text, { metadata: { tool, code } }),
      problem: undefined,
    };
  }
  const problem = (await findProgramProblem(startedProgram(config))) ?? {
    message: `the system refuses to run \`command\` ${commandOf(config)} (${code})`,
    mend: "Run the command as the gateway's user to see why.",
  };
  const error = new GatewayError("UPSTREAM_UNREACHABLE", `${tool}: the program cannot be started: ${problem.message}`, {
    modelMessage: `${tool}: the tool's program cannot be started, its operator must mend it; nothing was changed`,
    // It takes a change by somebody.
    retryable: false,
    metadata: { tool, code },
  });
  return { error, problem };
}

/** The error for a call that finds no room for its process. */
export function noRoom({ tool }: ScriptConfig, code: string): GatewayError {
  const text = `${tool.name}: the program cannot be started now: too many processes or open files (${code}); call again later`;
  return new GatewayError("UPSTREAM_UNREACHABLE", text, { metadata: { tool: tool.name, code } });
}

function commandOf({ command }: ScriptConfig): string {
  return command.kind === "shell" ? "/bin/sh" : command.file;
}
