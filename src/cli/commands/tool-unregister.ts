import { type CommandContext, writeJson } from "../command.ts";
import { connect } from "../connection.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";

/** Options of `tool unregister`. */
export interface UnregisterCommandOptions {
  readonly etag?: string | undefined;
  readonly allowMissing?: boolean;
}

/** Removes a tool that was registered over the service. */
export async function unregisterTool(
  name: string,
  options: UnregisterCommandOptions,
  context: CommandContext,
): Promise<ExitCode> {
  using connection = await connect(context, context.surroundings.env);
  const revision = await connection.client.unregister(name, { ...options, signal: context.signal });
  if (context.json) await writeJson({ name, revision }, context);
  else {
    // The gateway does not say whether there was anything to remove.
    const state = options.allowMissing === true ? "is not registered" : "is not registered any more";
    context.err.line(`${name} ${state} (revision ${revision})`);
  }
  return EXIT.ok;
}
