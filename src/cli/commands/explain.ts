import { type CommandContext, writeJson } from "../command.ts";
import { connect } from "../connection.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { tableLines } from "../table.ts";
import { plain } from "../terminal.ts";

/** Shows the policy in force for a tool and where each value came from. */
export async function explainTool(name: string, context: CommandContext): Promise<ExitCode> {
  using connection = await connect(context, context.surroundings.env);
  const policy = await connection.client.explain(name, { signal: context.signal });
  if (context.json) {
    const values = policy.values.map(({ key, value, origin }) => ({ key, value, origin }));
    await writeJson({ name: policy.name, etag: policy.etag, values, steps: policy.steps }, context);
    return EXIT.ok;
  }
  const { out } = context;
  const rows = policy.values.map(({ key, value, origin }) => [plain(key), plain(origin), plain(value)]);
  const [header = "", ...lines] = tableLines([["KEY", "FROM", "VALUE"], ...rows], out.columns);
  out.line(out.paint("bold", header));
  for (const line of lines) out.line(line);
  out.line();
  out.line(`A call passes: ${policy.steps.map(plain).join(" → ")}`);
  return EXIT.ok;
}
