import type { CallEvent, CallOutcome, InvokeOptions, ToolgateClient } from "../../../clients/typescript/src/index.ts";
import { isJsonObject, type JsonObject, parseJson, stringifyJson } from "../../core/json.ts";
import { type GivenArguments, jsonText, toolArguments } from "../arguments.ts";
import { CliError } from "../cli-error.ts";
import { type CommandContext, readStdin, writeJson } from "../command.ts";
import { connect } from "../connection.ts";
import { EXIT, type ExitCode, exitCodeOfFailure } from "../exit-codes.ts";
import { eventJson, outcomeJson } from "../json-output.ts";
import { printExplanation, printNeededInput, printVerdict, resultText, statsLine } from "../render-outcome.ts";
import { plain } from "../terminal.ts";

/** Options of `tool call`. */
export interface CallCommandOptions extends GivenArguments {
  /** Print output as it appears. */
  readonly stream?: boolean;
  /** Print the upstream request and status. */
  readonly explain?: boolean;
  readonly validateOnly?: boolean;
  /** What is to be known. */
  readonly question?: string | undefined;
  readonly timeoutMs?: number | undefined;
  /** Key of the call: with the same one it counts once. */
  readonly requestId?: string;
  /** State of a call whose tool asked for input. */
  readonly continue?: string | undefined;
  /** The answers: JSON text, `@file`, or `-` for stdin. */
  readonly input?: string | undefined;
}

/** Calls a tool and prints what it gave. */
export async function callTool(name: string, options: CallCommandOptions, context: CommandContext): Promise<ExitCode> {
  using connection = await connect(context, context.surroundings.env);
  const { client } = connection;
  const args = stringifyJson(
    await toolArguments(
      options,
      () => inputSchema(client, name, context),
      () => readStdin(context),
    ),
  );
  const invoke: InvokeOptions = {
    explain: options.explain,
    validateOnly: options.validateOnly,
    question: options.question,
    // Without --timeout the tool's own limit counts, which may be longer than the client's default.
    timeoutMs: options.timeoutMs ?? Number.POSITIVE_INFINITY,
    requestId: options.requestId,
    signal: context.signal,
    // Who types a command can answer by another one.
    acceptsInput: true,
    continuation: await continuationOf(options, () => readStdin(context)),
  };
  if (options.stream !== true) {
    const outcome = await client.call(name, args, invoke);
    if (context.json) await writeJson(outcomeJson(outcome), context);
    else await printOutcome(outcome, options, context);
    return exitCode(outcome);
  }
  let code: ExitCode = EXIT.ok;
  const printer = new StreamPrinter(options, context);
  for await (const event of client.callStream(name, args, invoke)) {
    await printer.print(event);
    if (event.type === "completed") code = exitCode(event.outcome);
  }
  return code;
}

async function continuationOf(
  options: CallCommandOptions,
  stdin: () => Promise<string>,
): Promise<InvokeOptions["continuation"]> {
  const { continue: state, input } = options;
  if (state === undefined && input === undefined) return undefined;
  if (state === undefined || input === undefined) {
    throw new CliError(EXIT.usage, "--continue and --input go together", {
      mend: "Give the state that the tool's question came with, and the answers by id.",
    });
  }
  return { state, inputs: await jsonText(input, "--input", stdin) };
}

async function inputSchema(client: ToolgateClient, name: string, context: CommandContext): Promise<JsonObject> {
  const tool = await client.get(name, { signal: context.signal });
  const schema = parseJson(tool.inputSchemaJson || "{}");
  return isJsonObject(schema) ? schema : {};
}

function exitCode({ failure, needsInput }: CallOutcome): ExitCode {
  if (needsInput !== undefined) return EXIT.needsInput;
  return failure === undefined ? EXIT.ok : exitCodeOfFailure(failure.reason);
}

/** Explanation first, then the result, then how it went: the order in which it happened. */
async function printOutcome(outcome: CallOutcome, options: CallCommandOptions, context: CommandContext): Promise<void> {
  const { out, err } = context;
  if (outcome.explanation !== undefined) printExplanation(outcome.explanation, err);
  await out.write(resultText(outcome), context.signal);
  printVerdict(outcome, err);
  if (outcome.replayed) err.line(err.paint("dim", "this is the answer of the call that had this --request-id first"));
  if (outcome.needsInput !== undefined) printNeededInput(outcome.needsInput, err);
  if (options.validateOnly === true) err.line("the arguments are valid; the upstream was not reached");
  if (options.explain === true) err.line(err.paint("dim", statsLine(outcome)));
}

/** Prints events as they come. */
class StreamPrinter {
  readonly #options: CallCommandOptions;
  readonly #context: CommandContext;
  /** Whether the last output left its line open, which what follows on a terminal must end first. */
  #openLine = false;

  constructor(options: CallCommandOptions, context: CommandContext) {
    this.#options = options;
    this.#context = context;
  }

  async print(event: CallEvent): Promise<void> {
    const { out, signal, json } = this.#context;
    if (json) {
      await out.write(`${stringifyJson(eventJson(event))}\n`, signal);
      return;
    }
    switch (event.type) {
      case "started":
        return;
      case "output":
        await this.#output(event);
        return;
      case "progress":
        this.#note(progressLine(event));
        return;
      case "queued":
        this.#note(`waits for ${plain(event.limit)}, number ${event.position} in line`);
        return;
      case "log":
        this.#note(`${event.level}: ${plain(event.message)}`);
        return;
      case "completed":
        if (this.#openLine) await out.write("\n", signal);
        await printOutcome(event.outcome, this.#options, this.#context);
    }
  }

  async #output(event: Extract<CallEvent, { type: "output" }>): Promise<void> {
    if (event.data !== undefined) {
      this.#note(
        `[${event.data.length} bytes${event.mimeType === "" ? "" : ` of ${event.mimeType}`}; --output json has them]`,
      );
      return;
    }
    if (event.text === "") return;
    await this.#context.out.write(event.text, this.#context.signal);
    this.#openLine = !event.text.endsWith("\n");
  }

  #note(text: string): void {
    const { out, err } = this.#context;
    if (this.#openLine && out.isTerminal) {
      out.line();
      this.#openLine = false;
    }
    err.line(err.paint("dim", text));
  }
}

function progressLine({ current, total, message }: Extract<CallEvent, { type: "progress" }>): string {
  const share = total === undefined || total === 0 ? String(current) : `${current}/${total}`;
  return `progress ${share}${message === "" ? "" : ` ${plain(message)}`}`;
}
