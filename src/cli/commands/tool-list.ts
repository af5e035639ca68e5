import type { DeclarationProblem, Tool } from "../../../clients/typescript/src/index.ts";
import { CliError } from "../cli-error.ts";
import { type CommandContext, writeJson } from "../command.ts";
import { connect } from "../connection.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { problemJson, toolJson } from "../json-output.ts";
import { printProblems, printToolTable } from "../render-tool.ts";
import { KIND_WORDS, STATE_WORDS } from "../words.ts";

/** Options of `tool list`; each narrows. */
export interface ToolListOptions {
  readonly kind?: readonly string[];
  readonly state?: readonly string[];
  readonly label?: readonly string[];
  readonly name?: readonly string[];
  readonly toolset?: readonly string[];
}

/** Lists tools, disabled ones too, and what is wrong with declarations. */
export async function listTools(options: ToolListOptions, context: CommandContext): Promise<ExitCode> {
  const { name = [], kind = [], state = Object.keys(STATE_WORDS), label = [], toolset = [] } = options;
  const selection = {
    names: name,
    toolsets: toolset,
    kinds: kind.map((word) => wordValue("--kind", KIND_WORDS, word)),
    states: state.map((word) => wordValue("--state", STATE_WORDS, word)),
    labels: Object.fromEntries(label.map(labelPair)),
  };
  const tools: Tool[] = [];
  const problems: DeclarationProblem[] = [];
  let revision = 0n;
  using connection = await connect(context, context.surroundings.env);
  const pages = connection.client.listPages({
    ...selection,
    pageSize: 1000,
    omitSchemas: !context.json,
    signal: context.signal,
  });
  for await (const page of pages) {
    tools.push(...page.tools);
    problems.push(...page.problems);
    revision = page.revision;
  }
  if (context.json) {
    await writeJson({ revision, tools: tools.map(toolJson), problems: problems.map(problemJson) }, context);
    return EXIT.ok;
  }
  if (tools.length > 0) printToolTable(tools, context.out, context.err);
  else
    context.err.line(
      Object.keys(options).length > 0 ? "No tool matches." : "No tools yet: put a YAML file into the tools folder.",
    );
  if (problems.length > 0) context.err.line();
  printProblems(problems, context.err);
  return EXIT.ok;
}

function wordValue<T extends number>(option: string, words: Readonly<Record<string, T>>, word: string): T {
  const value = Object.hasOwn(words, word) ? words[word] : undefined;
  if (value !== undefined) return value;
  throw new CliError(EXIT.usage, `${option} takes one of ${Object.keys(words).join(", ")}; got "${word}"`);
}

function labelPair(label: string): [string, string] {
  const at = label.indexOf("=");
  if (at < 1) throw new CliError(EXIT.usage, `--label takes key=value, got "${label}"`);
  return [label.slice(0, at), label.slice(at + 1)];
}
