import type { UpstreamEvent, UpstreamResult } from "../../core/call.ts";
import type { RunningProgram } from "../shared/launcher/running-program.ts";
import { LineSplitter } from "../shared/line-splitter.ts";
import { textPieces } from "../shared/text-pieces.ts";
import { assembleProgram } from "./assemble.ts";
import { CallRun } from "./call-run.ts";
import { callVariables, programEnvironment } from "./environment.ts";
import { streamedResult, wholeResult } from "./outcome.ts";
import { OutputDecoder } from "./output-decoder.ts";

/** Most characters of one line that is passed on as such. */
const MAX_LINE_LENGTH = 1024 * 1024;

/** One call of a script tool that has a program to itself. */
export class ScriptCall extends CallRun {
  protected override async *run(): AsyncGenerator<UpstreamEvent, void, undefined> {
    const { config, secrets, clock } = this.environment;
    const call = assembleProgram(config, this.call.arguments);
    const variables = {
      program: programEnvironment(config, secrets),
      call: callVariables(config.tool.name, this.context, clock.now()),
    };
    if (this.call.validateOnly) {
      if (this.context.explain) yield this.report(call, variables);
      yield { type: "upstream-result", result: { content: [], effect: "none" } };
      return;
    }
    const env = { ...variables.program, ...variables.call };
    const program = await this.start(call, env, call.input !== undefined, (begun) => {
      this.use(begun);
      if (call.input === undefined) return;
      this.took(call.input);
      begun.write(Buffer.from(call.input));
      begun.endInput();
    });
    const streamed = config.tool.delivery === "incremental" && config.settings.format !== "json";
    const result = streamed ? yield* this.#stream(program) : await this.#whole(program);
    if (this.context.explain) yield this.report(call, variables, result);
    yield { type: "upstream-result", result };
  }

  /** Reads all output; it is complete before anything is made of it. */
  async #whole(program: RunningProgram): Promise<UpstreamResult> {
    const { config } = this.environment;
    const { maxResponseBytes } = config.settings;
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of this.#pieces(program)) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > maxResponseBytes) throw this.tooLarge("the program's output is larger", `${maxResponseBytes} bytes`);
    }
    return wholeResult(config, this.outcomeOf(program), Buffer.concat(pieces));
  }

  /** Passes output on as it comes. */
  async *#stream(program: RunningProgram): AsyncGenerator<UpstreamEvent, UpstreamResult, undefined> {
    const { config } = this.environment;
    const decoder = new OutputDecoder(config.encoding);
    const lines = new LineSplitter("lf", {
      maxLength: MAX_LINE_LENGTH,
      exceeded: () => this.tooLarge("one line of the program's output is longer", `${MAX_LINE_LENGTH} characters`),
    });
    const split = (text: string): string => {
      if (!config.lines) return text;
      return lines
        .push(text)
        .map((line) => `${line}\n`)
        .join("");
    };
    for await (const piece of this.#pieces(program)) yield* this.#deltas(split(decoder.push(piece)));
    const outcome = this.outcomeOf(program);
    yield* this.#deltas(split(decoder.end()) + (lines.end() ?? ""));
    if (decoder.flawed) {
      const message = `${config.tool.name}: output is not valid ${config.encoding}`;
      yield { type: "log", level: "warning", message };
    }
    return streamedResult(config, outcome, decoder.flawed);
  }

  async *#pieces(program: RunningProgram): AsyncGenerator<Buffer, void, undefined> {
    while (true) {
      const piece = await this.awaitOutput(program.read());
      if (piece === undefined) return;
      this.gave(piece.length);
      yield piece;
    }
  }

  *#deltas(text: string): Generator<UpstreamEvent, void, undefined> {
    if (text === "") return;
    for (const piece of textPieces(text)) {
      // What came before the call was stopped is not given on after it.
      this.stopped.throwIfAborted();
      yield { type: "upstream-delta", text: piece };
    }
  }
}
