import { type CommandContext, writeJson } from "../command.ts";
import { connect } from "../connection.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { toolJson } from "../json-output.ts";
import { printTool } from "../render-tool.ts";

/** Shows one tool with its parameters. */
export async function getTool(name: string, context: CommandContext): Promise<ExitCode> {
  using connection = await connect(context, context.surroundings.env);
  const tool = await connection.client.get(name, { signal: context.signal });
  if (context.json) await writeJson(toolJson(tool), context);
  else printTool(tool, context.out);
  return EXIT.ok;
}
